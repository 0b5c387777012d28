//! A scripted server.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

/// How a server handles a request.
#[derive(Clone)]
pub enum Act {
    /// Answers a chat request with this text.
    Say(&'static str),
    /// Like `Say`, after taking a permit of the semaphore.
    SayAfter(Arc<Semaphore>, &'static str),
    /// Answers with a status, additional headers (each ending in CRLF) and a JSON body.
    Status(u16, &'static str, String),
    /// Writes this and closes the connection.
    Raw(&'static str),
    /// Does not answer until the client disconnects.
    Hang,
    /// Sends an endless response.
    Flood,
}

/// A received request.
#[derive(Clone, Debug)]
pub struct Request {
    /// In lower case.
    pub head: String,
    pub body: String,
}

impl Request {
    pub fn is_probe(&self) -> bool {
        self.head.starts_with("get ")
    }
}

/// What a server has received.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub requests: Vec<Request>,
    /// Unanswered requests.
    pub in_flight: usize,
    pub in_flight_max: usize,
    /// Clients that disconnected before an answer.
    pub gone: usize,
}

/// Stops with the test's runtime.
pub struct Server {
    pub url: String,
    seen: watch::Receiver<Seen>,
    accepting: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Server {
    /// The `n`-th request, counted from 0, gets `script(n, request)`.
    pub async fn start(script: impl Fn(usize, &Request) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());

        let (sender, seen) = watch::channel(Seen::default());
        let (sender, script) = (Arc::new(sender), Arc::new(script));

        let accepting = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (sender, script) = (Arc::clone(&sender), Arc::clone(&script));
                tokio::spawn(async move { converse(stream, &sender, &*script).await });
            }
        });
        Self { url, seen, accepting }
    }

    /// Plays the acts in order and repeats the last one.
    pub async fn playing(acts: Vec<Act>) -> Self {
        Self::start(move |at, _| acts[at.min(acts.len() - 1)].clone()).await
    }

    pub fn seen(&self) -> Seen {
        self.seen.borrow().clone()
    }

    /// Waits for a condition.
    pub async fn until(&self, so: impl FnMut(&Seen) -> bool) {
        self.seen.clone().wait_for(so).await.unwrap();
    }

    /// The pool's name for it: host, port and model.
    pub fn name(&self) -> String {
        format!("{} m", self.url.trim_start_matches("http://").trim_end_matches("/v1"))
    }
}

/// The URL of a closed port.
pub async fn nobody() -> String {
    let listener = Arc::new(Mutex::new(TcpListener::bind("127.0.0.1:0").await.unwrap()));
    format!("http://{}/v1", listener.lock().unwrap().local_addr().unwrap())
}

async fn converse(
    mut stream: TcpStream,
    seen: &watch::Sender<Seen>,
    script: &(dyn Fn(usize, &Request) -> Act + Send + Sync),
) {
    let mut bytes = Vec::new();
    while let Some(request) = request(&mut stream, &mut bytes).await {
        let mut at = 0;
        seen.send_modify(|seen| {
            at = seen.requests.len();
            seen.requests.push(request.clone());
            seen.in_flight += 1;
            seen.in_flight_max = seen.in_flight_max.max(seen.in_flight);
        });
        let act = script(at, &request);

        if let Act::SayAfter(gate, _) = &act {
            gate.acquire().await.unwrap().forget();
        }

        // Before answering: the client may immediately send the next request.
        if !matches!(act, Act::Hang | Act::Flood) {
            seen.send_modify(|seen| seen.in_flight -= 1);
        }

        let is_gone = match act {
            Act::Say(text) | Act::SayAfter(_, text) => {
                let answer =
                    serde_json::json!({"choices": [{"message": {"content": text}}]}).to_string();
                stream.write_all(whole(200, "", &answer).as_bytes()).await.is_err()
            }
            Act::Status(status, headers, body) => {
                stream.write_all(whole(status, headers, &body).as_bytes()).await.is_err()
            }
            Act::Raw(text) => {
                stream.write_all(text.as_bytes()).await.unwrap();
                return;
            }
            Act::Hang => {
                // The client sends nothing more; this returns when it disconnects.
                while stream.read_buf(&mut bytes).await.is_ok_and(|count| count > 0) {}
                true
            }
            Act::Flood => {
                let head =
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"choices\":[\"";
                stream.write_all(head.as_bytes()).await.unwrap();
                while stream.write_all(&[b'a'; 8_192]).await.is_ok() {}
                true
            }
        };

        if is_gone {
            return seen.send_modify(|seen| seen.gone += 1);
        }
    }
}

fn whole(status: u16, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{headers}\
         Content-Length: {length}\r\n\r\n{body}"
    )
}

async fn request(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<Request> {
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
            let length =
                head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
            let whole = end + 4 + length.parse::<usize>().unwrap();
            if bytes.len() >= whole {
                let body = String::from_utf8(bytes[end + 4..whole].to_vec()).unwrap();
                bytes.drain(..whole);
                return Some(Request { head, body });
            }
        }
        if stream.read_buf(bytes).await.ok()? == 0 {
            return None;
        }
    }
}
