//! `prime-agents mcp`: the tools of the Model Context Protocol over standard input and output, with
//! runs in this process or in a daemon.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use async_trait::async_trait;
use clap::Args;
use serde_json::{Map, Value};
use tokio::runtime::Builder;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};

use super::runs::{Client, ClientError, Post, authorization};
use super::{Configuration, remote, start_log};
use prime_daemon::mcp::{Backend, EVENTS_MAX, ToolError, Watch, serve_stdio, serve_stdio_here};
use prime_http_client::sse::{Events, Message};
use prime_service::app::App;

#[derive(Args)]
pub struct McpArguments {
    /// The daemon that has the runs, as http://HOST:PORT; its key is read from PRIME_API_KEY.
    /// Without it, this process carries out the runs, by the configuration and with its journal.
    /// Repeatable for daemons that share one journal: if one does not answer, the next is asked
    #[arg(long = "url", value_name = "URL")]
    urls: Vec<String>,
    #[command(flatten)]
    configuration: Configuration,
}

/// A daemon, or several that share one journal, asked over HTTP.
struct Remote(Arc<Client>);

type Event = (u64, Value);

fn refused(error: impl std::fmt::Display) -> ToolError {
    ToolError(error.to_string())
}

impl Remote {
    /// Asks on a thread that may block.
    async fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&Client) -> Result<T, ClientError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let client = Arc::clone(&self.0);
        spawn_blocking(move || ask(&client)).await.map_err(refused)?.map_err(refused)
    }

    /// Reads a path, with the arguments of a call as its query.
    async fn get(&self, path: &'static str, query: Map<String, Value>) -> Result<Value, ToolError> {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        self.ask(move |client| {
            let given = query.iter().filter(|(_, value)| !value.is_null());
            let query: Vec<_> = given.map(|(name, value)| (name.as_str(), text(value))).collect();
            client.get(path, &query)?.json()
        })
        .await
    }

    /// Sends a request that has the same effect if several daemons get it.
    async fn post(&self, path: String, body: Option<Value>) -> Result<Value, ToolError> {
        self.ask(move |client| {
            let post =
                Post { path: &path, body: body.as_ref(), is_idempotent: true, ..Post::default() };
            client.post(&post)?.json::<Value>()
        })
        .await
    }
}

/// Reads the events that are there already, or else waits for the first ones.
fn first_events(client: &Client, id: &str, after: u64) -> Result<Vec<Event>, ClientError> {
    let (url, reader) = client.events(id, after)?.into_reader();
    let broken = |error: &dyn std::fmt::Display| ClientError::BrokenOff {
        url: url.clone(),
        reason: error.to_string(),
    };

    let mut messages = Events::new(reader);
    let mut found = Vec::new();
    while let Some(message) = messages.next_message().map_err(|error| broken(&error))? {
        if let Message::Event { id: Some(seq), data, .. } = message {
            found.push((seq, serde_json::from_str(&data).map_err(|error| broken(&error))?));
        }
        if found.len() == EVENTS_MAX || (messages.is_drained() && !found.is_empty()) {
            break;
        }
    }

    Ok(found)
}

/// Like [`first_events`], from the next daemon when one breaks off.
fn first_events_of_any(client: &Client, id: &str, after: u64) -> Result<Vec<Event>, ClientError> {
    for _ in 1..client.daemons() {
        match first_events(client, id, after) {
            Err(error) if error.may_pass() => client.turn_to_next(),
            done => return done,
        }
    }

    first_events(client, id, after)
}

#[async_trait]
impl Backend for Remote {
    async fn verify(&self, request: Map<String, Value>) -> Result<Value, ToolError> {
        self.post("/v1/verify".to_owned(), Some(request.into())).await
    }

    async fn start(&self, request: Map<String, Value>) -> Result<Value, ToolError> {
        let request = Value::from(request);
        self.ask(move |client| {
            // A second daemon that gets the request with the same key starts no second run.
            let key = client.own_key();
            let header = key.as_deref().map(|key| ("Idempotency-Key", key));
            let is_idempotent = key.is_some();

            client
                .post(&Post {
                    path: "/v1/runs",
                    header,
                    body: Some(&request),
                    is_idempotent,
                    ..Post::default()
                })?
                .json()
        })
        .await
    }

    async fn list(&self, query: Map<String, Value>) -> Result<Value, ToolError> {
        self.get("/v1/runs", query).await
    }

    async fn read(&self, id: &str) -> Result<Value, ToolError> {
        let path = format!("/v1/runs/{id}");
        self.ask(move |client| client.get(&path, &[])?.json()).await
    }

    async fn events(&self, id: &str, watch: Watch) -> Result<Vec<Event>, ToolError> {
        let deadline = Instant::now() + watch.wait;

        let (id, client) = (id.to_owned(), Arc::clone(&self.0));
        // A channel, because nobody waits for a thread that is still reading at the deadline; the
        // next keep-alive ends it.
        let (sender, mut events) = mpsc::channel(1);
        spawn_blocking(move || {
            drop(sender.blocking_send(first_events_of_any(&client, &id, watch.after)));
        });

        match timeout_at(deadline, events.recv()).await {
            Ok(Some(events)) => events.map_err(refused),
            Ok(None) | Err(_) => Ok(Vec::new()),
        }
    }

    async fn retry(&self, id: &str, request: Map<String, Value>) -> Result<Value, ToolError> {
        self.post(format!("/v1/runs/{id}/retry"), Some(request.into())).await
    }

    async fn cancel(&self, id: &str) -> Result<Value, ToolError> {
        self.post(format!("/v1/runs/{id}/cancel"), None).await
    }

    async fn approvals(&self, query: Map<String, Value>) -> Result<Value, ToolError> {
        self.get("/v1/approvals", query).await
    }

    async fn decide(
        &self,
        id: &str,
        number: u32,
        decision: Map<String, Value>,
    ) -> Result<Value, ToolError> {
        self.post(format!("/v1/runs/{id}/approvals/{number}"), Some(decision.into())).await
    }
}

pub fn mcp(arguments: &McpArguments) -> anyhow::Result<ExitCode> {
    match &arguments.urls[..] {
        urls @ [_, ..] => {
            let bases = urls.iter().map(|url| remote::given(url)).collect::<Result<_, _>>()?;

            let client = Arc::new(Client::new(bases, authorization()?)?);
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let served = runtime.block_on(serve_stdio(Arc::new(Remote(client))));
            // A thread may still read events of a run.
            runtime.shutdown_background();
            served?;
        }
        [] => {
            let settings = arguments.configuration.load()?;
            drop(start_log(&settings));
            actix::System::new().block_on(async {
                let app = App::start(settings)?;
                serve_stdio_here(app)
                    .await
                    .context("the runs of this process (give --url for those of a daemon)")
            })?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
