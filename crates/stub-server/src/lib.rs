//! An in-process server that speaks enough of OpenAI's API to measure everything in front of a
//! model. An answer is a function of the request.

#![warn(missing_docs)]

use std::io;
use std::net::{Ipv4Addr, TcpListener as StdListener};
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

/// Maximum bytes of a request's head, and of its body.
const HEAD_BYTES_MAX: usize = 65_536;
const BODY_BYTES_MAX: usize = 64 << 20;

/// A running server. Stops when it is dropped.
pub struct StubServer {
    /// Such as `http://127.0.0.1:40123/v1`.
    pub url: String,
    /// Dropping it stops the thread.
    _stop: oneshot::Sender<()>,
}

/// A request, as a script sees it.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Such as `/v1/chat/completions`.
    pub path: String,
    /// Null if there is none.
    pub body: Value,
}

/// What a script answers.
#[derive(Clone, Debug)]
pub enum Reply {
    /// A status and JSON.
    Json(u16, Value),
    /// A status, a content type and a text.
    Text(u16, &'static str, String),
    /// Server-sent events with this data; then the connection is closed.
    Events(Vec<String>),
    /// The same event, for ever.
    Endless(String),
    /// Nothing, until the client goes.
    Silence,
}

type Script = Arc<dyn Fn(&Asked) -> io::Result<Reply> + Send + Sync>;

impl StubServer {
    /// Starts a thread that answers chats and completions with `answer` of the request's body,
    /// requests to `/score` and `/pooling` with the number that it writes as the score, and
    /// everything else with an empty list of models. Requests on one connection are answered in
    /// order.
    ///
    /// # Errors
    /// No port or thread is available.
    pub fn start(answer: impl Fn(&Value) -> String + Send + Sync + 'static) -> io::Result<Self> {
        Self::scripted_fallibly(move |asked| response(&asked.path, &asked.body, &answer))
    }

    /// Starts a thread that answers each request as the script says.
    ///
    /// # Errors
    /// No port or thread is available.
    pub fn scripted(script: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> io::Result<Self> {
        Self::scripted_fallibly(move |asked| Ok(script(asked)))
    }

    fn scripted_fallibly(
        script: impl Fn(&Asked) -> io::Result<Reply> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = StdListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let url = format!("http://{}/v1", listener.local_addr()?);

        let runtime = Builder::new_current_thread().enable_all().build()?;
        // A thread of its own, so that callers need no runtime.
        let (stop, stopped) = oneshot::channel::<()>();
        std::thread::Builder::new().name("stub".to_owned()).spawn(move || {
            runtime.block_on(async move {
                let serving = serve(listener, Arc::new(script));
                tokio::select! {
                    _ = stopped => {}
                    result = serving => if let Err(error) = result {
                        tracing::error!(%error, "the stub server stopped");
                    },
                }
            });
        })?;

        Ok(Self { url, _stop: stop })
    }
}

async fn serve(listener: StdListener, script: Script) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    loop {
        let (stream, _) = listener.accept().await?;
        let script = Arc::clone(&script);
        // A client that disconnects or sends nonsense loses its connection only.
        tokio::spawn(async move { drop(converse(stream, &script).await) });
    }
}

async fn converse(mut stream: TcpStream, script: &Script) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut bytes = Vec::with_capacity(4_096);
    while let Some((head, body)) = request(&mut stream, &mut bytes).await? {
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        match script(&Asked { path, body })? {
            Reply::Json(status, body) => {
                write(&mut stream, status, "application/json", &body.to_string()).await?;
            }
            Reply::Text(status, kind, body) => write(&mut stream, status, kind, &body).await?,
            Reply::Events(events) => {
                stream.write_all(EVENTS.as_bytes()).await?;
                for event in events {
                    stream.write_all(format!("data: {event}\n\n").as_bytes()).await?;
                }
                return stream.shutdown().await;
            }
            Reply::Endless(event) => {
                stream.write_all(EVENTS.as_bytes()).await?;
                loop {
                    stream.write_all(format!("data: {event}\n\n").as_bytes()).await?;
                }
            }
            Reply::Silence => {
                // The client sends nothing more: this returns when it goes.
                while stream.read_buf(&mut bytes).await? > 0 {}
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The head of a streamed response, which ends with its connection.
const EVENTS: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";

async fn write(stream: &mut TcpStream, status: u16, kind: &str, body: &str) -> io::Result<()> {
    let length = body.len();
    let reply = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(reply.as_bytes()).await
}

fn response(path: &str, body: &Value, answer: &dyn Fn(&Value) -> String) -> io::Result<Reply> {
    let is_chat = path.ends_with("/chat/completions");
    let is_scoring = path.ends_with("/score") || path.ends_with("/pooling");
    if !path.ends_with("/completions") && !is_scoring {
        return Ok(Reply::Json(200, json!({ "object": "list", "data": [] })));
    }
    if body.is_null() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a body that is not JSON"));
    }

    let text = answer(body);

    // A word counts as a token.
    let words = |text: &str| text.split_whitespace().count();
    let usage =
        json!({ "prompt_tokens": words(&body.to_string()), "completion_tokens": words(&text) });

    if is_scoring {
        let score = text.trim().parse::<f64>().ok();
        let entry = if path.ends_with("/score") {
            json!({ "index": 0, "object": "score", "score": score })
        } else {
            json!({ "index": 0, "object": "pooling", "data": [score] })
        };
        return Ok(Reply::Json(
            200,
            json!({ "object": "list", "data": [entry], "model": body["model"], "usage": usage }),
        ));
    }

    let choice = if is_chat {
        let message = json!({ "role": "assistant", "content": text });
        json!({ "index": 0, "finish_reason": "stop", "message": message })
    } else {
        json!({ "index": 0, "finish_reason": "stop", "text": text })
    };

    // Whole, also where a stream is asked for: what is measured is what is in front of a model.
    Ok(Reply::Json(200, json!({ "model": body["model"], "choices": [choice], "usage": usage })))
}

/// The next request of a connection, head and body; `None` once the client has closed it. `bytes`
/// holds what was read but not yet consumed.
async fn request(
    stream: &mut TcpStream,
    bytes: &mut Vec<u8>,
) -> io::Result<Option<(String, Vec<u8>)>> {
    let bad = |reason: &str| io::Error::new(io::ErrorKind::InvalidData, reason.to_owned());

    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if bytes.len() > HEAD_BYTES_MAX {
            return Err(bad("a head without an end"));
        }
        if stream.read_buf(bytes).await? == 0 {
            return Ok(None);
        }
    };

    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length:")).map_or("0", str::trim);
    let length: usize = length.parse().map_err(|_| bad("a length that is not a number"))?;
    if length > BODY_BYTES_MAX {
        return Err(bad("a body that is too long"));
    }

    while bytes.len() < end + length {
        if stream.read_buf(bytes).await? == 0 {
            return Ok(None);
        }
    }

    // What follows the body belongs to the next request.
    let body = bytes[end..end + length].to_vec();
    bytes.drain(..end + length);
    Ok(Some((head, body)))
}
