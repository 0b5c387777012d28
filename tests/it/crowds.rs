//! Crowds of connections: what they hold is limited, and nobody else is silenced.

use std::io::{ErrorKind, Read as _};
use std::net::TcpStream;

use serde_json::json;

use crate::daemon::{Daemon, PATIENCE, long_run};
use crate::raw::{Raw, get};

#[test]
fn hundreds_of_quiet_streams_and_idle_connections_silence_nobody() {
    let daemon = Daemon::start(&["log.level=warn"]);
    let run = daemon.submitted(&long_run());

    // Streams on which nothing comes until the run ends.
    let quiet = get(&format!("{run}/events?after={}", u32::MAX));
    let open = || {
        let mut raw = Raw::connect(&daemon.address);
        raw.send(&quiet);
        let mut status = [0; "HTTP/1.1 200".len()];
        raw.stream.read_exact(&mut status).unwrap();
        (raw, String::from_utf8_lossy(&status).into_owned())
    };

    let streams: Vec<_> = (0..256).map(|_| open()).collect();
    let count = |wanted: &str| streams.iter().filter(|(_, status)| status == wanted).count();
    assert_eq!((count("HTTP/1.1 200"), count("HTTP/1.1 429")), (128, 128), "server.streams_max");

    let mut idle: Vec<_> =
        (0..1_000).map(|_| TcpStream::connect(&daemon.address).unwrap()).collect();

    // Those that are idle longest make room.
    for connection in &mut idle[..900] {
        connection.set_read_timeout(Some(PATIENCE)).unwrap();
        // A slow machine may have said that it waited too long for a request.
        if let Err(error) = connection.read_to_end(&mut Vec::new()) {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        }
    }

    for path in ["/livez", "/readyz"] {
        for _ in 0..20 {
            assert_eq!(Raw::connect(&daemon.address).ask(&get(path)).status, 200, "{path}");
        }
    }

    let other = daemon.submitted(&json!({"task": "dfa-simulation"}));
    daemon.until(&other, |record| record["status"] == "verified");
}
