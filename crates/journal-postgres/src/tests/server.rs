//! A PostgreSQL server for all tests, and connections to it that fail on demand.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use tempfile::TempDir;

pub(super) struct Server {
    pub(super) folder: PathBuf,
    pub(super) port: u16,
    /// Its input ends with the tests' process, and then the server stops.
    _shell: Child,
}

/// The folder of the newest PostgreSQL, where Debian or others install it.
fn binaries() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();

    let folders = versions
        .map(|version| version.path().join("bin"))
        .filter(|bin| bin.join("initdb").exists());

    let bin = ["/usr/bin", "/usr/local/bin"]
        .map(PathBuf::from)
        .into_iter()
        .filter(|bin| bin.join("initdb").exists());

    folders
        .max()
        .or_else(|| bin.max())
        .expect("PostgreSQL's server is missing: run scripts/setup --postgres")
}

fn start() -> Server {
    // In /tmp, because its path and a socket's name must fit into 107 bytes.
    let folder =
        tempfile::Builder::new().prefix("prime-postgres-").tempdir_in("/tmp").unwrap().keep();

    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut shell = Command::new("/bin/sh")
        .args(["-c", include_str!("server.sh"), "server.sh"])
        .args([folder.as_path(), binaries().as_path()])
        .arg(port.to_string())
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();

    let mut said = String::new();
    BufReader::new(shell.stdout.take().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, "ready\n", "PostgreSQL does not start");
    Server { folder, port, _shell: shell }
}

pub(super) fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(start)
}

/// The administrator's psql, which prints columns bare. With `pipes`, it reads what is written to
/// it.
pub(super) fn psql(pipes: bool) -> Command {
    let server = server();

    let mut command = Command::new(binaries().join("psql"));
    command
        .args([
            "--no-psqlrc",
            "--quiet",
            "--tuples-only",
            "--no-align",
            "--set=ON_ERROR_STOP=1",
            "--username=prime",
        ])
        .arg(format!("--host={}", server.folder.display()))
        .arg(format!("--port={}", server.port))
        .arg("--dbname=postgres");
    if pipes {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
    }
    command
}

/// Executes statements as the administrator, and returns the first column of the rows.
pub(super) fn sql(statements: &str) -> Vec<String> {
    let command = psql(false).args(["--command", statements]).output().unwrap();
    assert!(command.status.success(), "{statements}: {}", String::from_utf8_lossy(&command.stderr));
    String::from_utf8(command.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// A schema of a test's own.
pub(super) struct Schema {
    pub(super) name: String,
}

impl Schema {
    pub(super) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);

        let name = format!("t{}", COUNT.fetch_add(1, Ordering::Relaxed));
        sql(&format!("CREATE SCHEMA {name}"));
        Self { name }
    }

    pub(super) fn url(&self) -> String {
        self.url_at(&server().folder.display().to_string())
    }

    /// Through a socket in another folder.
    pub(super) fn url_at(&self, folder: &str) -> String {
        let (port, name) = (server().port, &self.name);
        format!(
            "postgres://prime@/postgres?host={folder}&port={port}&application_name={name}&options=-csearch_path%3D{name}"
        )
    }

    pub(super) fn sql(&self, statements: &str) -> Vec<String> {
        sql(&format!("SET search_path = {}; {statements}", self.name))
    }
}

/// A proxy before the server's socket. It can pass on a request and drop the answer along with the
/// connection.
pub(super) struct Proxy {
    pub(super) folder: TempDir,
    drops_answers: Arc<AtomicBool>,
}

impl Proxy {
    pub(super) fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("prime-proxy-").tempdir_in("/tmp").unwrap();
        let name = format!(".s.PGSQL.{}", server().port);

        let listener = UnixListener::bind(folder.path().join(&name)).unwrap();
        let drops_answers = Arc::new(AtomicBool::new(false));
        let drops = Arc::clone(&drops_answers);

        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let upstream = UnixStream::connect(server().folder.join(&name)).unwrap();

                let (from_client, to_server) =
                    (client.try_clone().unwrap(), upstream.try_clone().unwrap());

                let drops = Arc::clone(&drops);
                std::thread::spawn(move || copy(from_client, to_server, || false));
                std::thread::spawn(move || {
                    copy(upstream, client, || drops.swap(false, Ordering::SeqCst));
                });
            }
        });
        Self { folder, drops_answers }
    }

    /// Makes the proxy lose the next answer, with its connection.
    pub(super) fn drop_an_answer(&self) {
        self.drops_answers.store(true, Ordering::SeqCst);
    }

    pub(super) fn has_dropped(&self) -> bool {
        !self.drops_answers.load(Ordering::SeqCst)
    }
}

/// Copies until one side ends, or until `cuts` returns true when there is something to copy. Then
/// it closes both connections.
fn copy(mut from: UnixStream, mut to: UnixStream, cuts: impl Fn() -> bool) {
    let mut buffer = [0; 1 << 14];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if cuts() || to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }

    // They may be closed already.
    drop(from.shutdown(Shutdown::Both));
    drop(to.shutdown(Shutdown::Both));
}
