//! `prime-agents webhooks`: the messages that a daemon holds for webhooks.

use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::output::{Output, note, print, print_json};
use super::runs::{Common, Post, as_refusal, known};
use super::table::Table;
use prime_service::runs::{WebhookMessage, WebhookReport};

/// Messages per request.
const PAGE: usize = 1_000;

#[derive(Args)]
pub struct WebhooksArguments {
    #[command(subcommand)]
    command: WebhooksCommand,
}

#[derive(Subcommand)]
enum WebhooksCommand {
    /// List the webhooks of a daemon, with what waits and what was given up
    List(ListArguments),
    /// List the messages to a webhook that were given up, or that wait
    Messages(MessagesArguments),
    /// Send messages again that were given up
    Resend(ResendArguments),
}

#[derive(Args)]
struct ListArguments {
    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
enum State {
    /// Those that are not sent again by themselves
    GivenUp,
    /// Those that are still sent
    Waiting,
}

#[derive(Args)]
struct MessagesArguments {
    /// The name of a webhook
    #[arg(value_parser = name)]
    name: String,
    /// Which messages
    #[arg(long, value_enum, default_value = "given_up")]
    state: State,
    #[command(flatten)]
    common: Common,
}

#[derive(Args)]
struct ResendArguments {
    /// The name of a webhook
    #[arg(value_parser = name)]
    name: String,
    /// Ids of messages; all that were given up by default
    #[arg(value_name = "MESSAGE")]
    ids: Vec<String>,
    #[command(flatten)]
    common: Common,
}

/// Checks that a name is safe within a path; that the webhook exists is checked by the daemon.
fn name(text: &str) -> Result<String, String> {
    if prime_settings::is_name(text) {
        Ok(text.to_owned())
    } else {
        Err("a webhook's name has lower-case letters, digits, `-` and `_`".to_owned())
    }
}

fn list(arguments: &ListArguments) -> anyhow::Result<()> {
    let answer: Value = arguments.common.client()?.get("/v1/webhooks", &[])?.json()?;
    if arguments.common.output() == Output::Json {
        return Ok(print_json(&answer)?);
    }

    let webhooks: Vec<WebhookReport> = known("the webhooks", &answer["webhooks"])?;
    let rows = webhooks.iter().map(|webhook| {
        [
            webhook.name.clone(),
            webhook.host.clone().unwrap_or_else(|| "(not configured)".to_owned()),
            webhook.waiting.to_string(),
            webhook.given_up.to_string(),
            webhook.oldest_waiting_at.clone().unwrap_or_default(),
            webhook.events.join(" "),
        ]
    });
    let columns = ["name", "host", "waiting", "given up", "oldest waiting", "events"];
    print(Table::new(columns, rows).may_drop(&["events", "oldest waiting"]))?;
    for webhook in &webhooks {
        if let Some(failure) = &webhook.last_failure {
            note!("{} failed last at {}: {}", webhook.name, failure.failed_at, failure.reason);
        }
    }
    Ok(())
}

fn messages(arguments: &MessagesArguments) -> anyhow::Result<()> {
    let MessagesArguments { name, state, common } = arguments;
    let (client, path) = (common.client()?, format!("/v1/webhooks/{name}/messages"));
    let state = match state {
        State::GivenUp => "given_up",
        State::Waiting => "waiting",
    };

    let (mut all, mut after) = (Vec::new(), 0);
    loop {
        let query = [
            ("state", state.to_owned()),
            ("after", after.to_string()),
            ("limit", PAGE.to_string()),
        ];
        let mut page: Value = client.get(&path, &query)?.json()?;
        if let Some(messages) = page["messages"].as_array_mut() {
            all.append(messages);
        }
        // A page that leads back would never end.
        match page["next"].as_u64().filter(|next| *next > after) {
            Some(next) => after = next,
            None => break,
        }
    }
    let all = Value::Array(all);
    if common.output() == Output::Json {
        return Ok(print_json(&json!({ "messages": all }))?);
    }

    let listed: Vec<WebhookMessage> = known("the messages", &all)?;
    let rows = listed.into_iter().map(|message| {
        let (at, reason) = message
            .last_failure
            .map_or_else(Default::default, |failure| (failure.failed_at, failure.reason));
        [message.id, message.r#type, message.failed_attempts.to_string(), at, reason]
    });
    let table = Table::new(["id", "type", "failed attempts", "last attempt", "reason"], rows);
    Ok(print(table.may_drop(&["last attempt", "failed attempts"]))?)
}

fn resend(arguments: &ResendArguments) -> anyhow::Result<()> {
    let ResendArguments { name, ids, common } = arguments;
    let body = if ids.is_empty() { json!({}) } else { json!({ "ids": ids }) };
    let path = format!("/v1/webhooks/{name}/resend");
    let post = Post { path: &path, body: Some(&body), is_idempotent: true, ..Post::default() };
    let answer: Value = common.client()?.post(&post)?.json()?;
    if common.output() == Output::Json {
        return Ok(print_json(&answer)?);
    }
    let sent = answer["messages"].as_u64().unwrap_or_default();
    Ok(print(format_args!("{sent} messages to {name} are sent again\n"))?)
}

pub fn webhooks(arguments: &WebhooksArguments) -> anyhow::Result<ExitCode> {
    let done = match &arguments.command {
        WebhooksCommand::List(arguments) => list(arguments),
        WebhooksCommand::Messages(arguments) => messages(arguments),
        WebhooksCommand::Resend(arguments) => resend(arguments),
    };
    as_refusal(done.map(|()| ExitCode::SUCCESS))
}
