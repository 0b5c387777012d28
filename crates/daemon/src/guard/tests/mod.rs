//! The guard over real sockets: a server on a thread of its own, and clients that send bytes.

mod admission;
mod bodies;
mod crowds;
mod heads;
mod readers;
mod silence;
mod versions;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::rt::System;
use actix_web::web::{self, ServiceConfig};
use serde_json::Value;

use super::{Connections, bind};
use prime_settings::{Server, Settings};

/// Longest wait for anything that must happen; far above what it takes, because the machine may be
/// busy.
const PATIENCE: Duration = Duration::from_mins(5);

/// The shipped limits, on any free port.
fn settings() -> Server {
    Server { bind: "127.0.0.1:0".parse().unwrap(), ..Settings::default().server }
}

/// A server, stopped when dropped.
struct Running {
    address: SocketAddr,
    connections: Arc<Connections>,
    handle: ServerHandle,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn start(
        server: Server,
        configure: impl Fn(&mut ServiceConfig) + Clone + Send + 'static,
    ) -> Self {
        let (sender, receiver) = channel();
        let serve = move || {
            System::new().block_on(async move {
                let bound = bind(&server, |_| {}, configure).unwrap();
                sender.send((bound.address, bound.connections, bound.running.handle())).unwrap();
                bound.running.await.unwrap();
            });
        };

        let thread = std::thread::spawn(serve);
        let (address, connections, handle) = receiver.recv_timeout(PATIENCE).expect("a server");
        Self { address, connections, handle, thread: Some(thread) }
    }

    /// Like [`Running::start`], with a route `/wait` that never answers and tells when it begins
    /// and ends.
    fn start_with_wait(
        server: Server,
        configure: fn(&mut ServiceConfig),
    ) -> (Self, Receiver<&'static str>) {
        let (tell, happens) = channel();
        let wait = move || {
            let end = Tell(tell.clone(), "end");
            tell.send("begin").unwrap();
            async move {
                std::future::pending::<()>().await;
                drop(end);
                "never"
            }
        };

        let server = Self::start(server, move |config| {
            config.route("/wait", web::get().to(wait.clone())).configure(configure);
        });
        (server, happens)
    }

    /// A connection on which this was sent.
    fn send(&self, text: &str) -> Client {
        let mut client = Client(BufReader::new(TcpStream::connect(self.address).unwrap()));
        client.0.get_ref().set_read_timeout(Some(PATIENCE)).unwrap();
        client.write(text);
        client
    }

    /// `GET` of a path with these header lines, on a connection of its own.
    fn get(&self, path: &str, headers: &str) -> Answer {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n")).answer()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.handle.stop(false));
        drop(self.thread.take().map(JoinHandle::join));
    }
}

/// One connection.
struct Client(BufReader<TcpStream>);

impl Client {
    fn write(&mut self, text: &str) {
        self.0.get_mut().write_all(text.as_bytes()).unwrap();
    }

    /// The head of the next response.
    fn head(&mut self) -> Answer {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "closed after {lines:?}");
            match line.trim_end() {
                "" => break,
                text => lines.push(text.to_owned()),
            }
        }

        let status = lines[0].split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines[1..].iter().map(|line| line.split_once(": ").unwrap());
        let headers =
            headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
        Answer { status, headers, body: Vec::new() }
    }

    /// The next response, of which the length is said.
    fn answer(&mut self) -> Answer {
        let mut answer = self.head();

        let length = answer.header("content-length").expect("a length").parse().unwrap();
        answer.body = vec![0; length];
        self.0.read_exact(&mut answer.body).unwrap();
        answer
    }

    /// Waits for the end of the connection; gives what came before it.
    fn rest(mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        match self.0.read_to_end(&mut rest) {
            Ok(_) => rest,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => rest,
            Err(error) => panic!("the connection stays open: {error}"),
        }
    }
}

#[derive(Debug)]
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|header| header.0 == name).map(|header| header.1.as_str())
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// Fails unless this is an error of this status and code with these parts in its message.
    fn refused(&self, status: u16, code: &str, parts: &[&str]) {
        let body: Value =
            serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:?}"));
        let error = &body["error"];
        assert_eq!((self.status, error["code"].as_str()), (status, Some(code)), "{body}");
        let message = error["message"].as_str().unwrap();
        for part in parts {
            assert!(message.contains(part), "{part:?} is missing in {message:?}");
        }
    }
}

/// Tells when it is dropped.
struct Tell(Sender<&'static str>, &'static str);

impl Drop for Tell {
    fn drop(&mut self) {
        // The test may be over, and nobody listen.
        self.0.send(self.1).unwrap_or_default();
    }
}

/// Waits for what is told next.
fn told(receiver: &Receiver<&'static str>) -> &'static str {
    receiver.recv_timeout(PATIENCE).expect("something happens")
}
