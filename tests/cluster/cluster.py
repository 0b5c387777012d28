"""A private PostgreSQL and nodes on it, which can be cut off from it; and clients that follow runs through faults."""

import hashlib
import http.server
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from harness import PATIENCE_S, Daemon, Refused, ask, events, program, until  # noqa: E402
from harness.waiting import POLL_S  # noqa: E402

PRIME = program()


def binaries():
    """The folder of PostgreSQL's programs, of the newest version; None without them."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    if found:
        return found[-1].parent
    program = shutil.which("initdb")
    return Path(program).parent if program else None


class Postgres:
    """A server with a data directory and a socket of its own. PostgreSQL refuses to run as root."""

    def __init__(self, tmpfs=None):
        """`tmpfs` is the size of a file system of its own. PermissionError where none can be mounted."""
        self.folder = Path(tempfile.mkdtemp(prefix="prime-cluster-", dir="/tmp"))
        self.binaries = binaries()
        as_root = os.geteuid() == 0

        self.is_mounted = tmpfs is not None
        if self.is_mounted:
            mount = ["mount", "-t", "tmpfs", "-o", f"size={tmpfs}", "tmpfs", self.folder]
            done = subprocess.run(mount, stderr=subprocess.PIPE, text=True, check=False)
            if done.returncode != 0:
                self.folder.rmdir()
                raise PermissionError(done.stderr.strip())

        self.user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if as_root else []
        if as_root:
            # After the mount, whose root is another folder than the one before.
            shutil.chown(self.folder, "postgres", "postgres")
            self.folder.chmod(0o755)

        self.log = open(self.folder / "log", "wb")
        initdb = [self.binaries / "initdb", "--pgdata", self.folder / "data", "--username", "prime"]
        initdb += ["--auth", "trust", "--encoding", "UTF8", "--no-locale", "--no-sync"]
        subprocess.run([*self.user, *initdb], check=True, stdout=self.log, stderr=self.log, cwd=self.folder)

        # The port only names the socket's file: the server listens on no network.
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"postgres://prime@/postgres?host={self.folder}&port={self.port}"
        self.process = None
        self.start()

    def start(self):
        """Starts the server, if need be on what a kill has left."""
        settings = ["listen_addresses=", f"port={self.port}", "max_connections=200"]
        command = [self.binaries / "postgres", "-D", self.folder / "data", "-k", self.folder]
        command += [word for setting in settings for word in ("-c", setting)]

        def is_ready():
            # After a kill, the first attempts may find that old processes still use the data.
            if self.process is None or self.process.poll() is not None:
                self.process = subprocess.Popen(
                    [*self.user, *command], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, cwd=self.folder
                )
            ready = [self.binaries / "pg_isready", "--quiet", "--host", self.folder, "--port", str(self.port)]
            return subprocess.run(ready, check=False).returncode == 0

        until(is_ready, "PostgreSQL starts")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def sql(self, statement):
        """The rows as lists of texts."""
        command = [self.binaries / "psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--username=prime"]
        command += [f"--host={self.folder}", f"--port={self.port}", "--dbname=postgres", "--command", statement]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        return [line.split("|") for line in done.stdout.splitlines()]

    def close(self):
        if self.process:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait()
        self.log.close()
        if self.is_mounted:
            subprocess.run(["umount", self.folder], check=True)
        shutil.rmtree(self.folder)


class Proxy:
    """A socket in front of a server's. While a direction is cut, its bytes are withheld, as by a broken network."""

    def __init__(self, postgres):
        self.folder = Path(tempfile.mkdtemp(prefix="prime-proxy-", dir="/tmp"))
        self.server = str(postgres.folder / f".s.PGSQL.{postgres.port}")
        self.url = postgres.url.replace(str(postgres.folder), str(self.folder))
        self.passes = {"to": threading.Event(), "from": threading.Event()}
        self.heal()
        self.withheld = dict.fromkeys(self.passes, 0)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.folder / f".s.PGSQL.{postgres.port}"))
        self.listener.listen(100)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return

            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self.server)
            except OSError:
                client.close()
                server.close()
                continue

            # Shared by the two directions: whichever ends last closes both sockets.
            ended = []
            for way in (("to", client, server), ("from", server, client)):
                threading.Thread(target=self.copy, args=(*way, ended), daemon=True).start()

    def copy(self, way, source, target, ended):
        try:
            while data := source.recv(1 << 16):
                if not self.passes[way].is_set():
                    self.withheld[way] += len(data)
                    self.passes[way].wait()
                target.sendall(data)
        except OSError:
            pass

        # Ends the other direction's wait too.
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        ended.append(way)
        if len(ended) == 2:
            source.close()
            target.close()

    def cut(self, *ways):
        for way in ways:
            self.passes[way].clear()

    def heal(self):
        for way in self.passes.values():
            way.set()

    def close(self):
        self.heal()
        self.listener.close()
        shutil.rmtree(self.folder)


def shifted_clock(folder, shift_s):
    """The environment of a process whose wall clock is wrong by `shift_s` seconds."""
    library = Path(folder) / "shifted_clock.so"
    if not library.exists():
        source = Path(__file__).with_name("shifted_clock.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    return {"LD_PRELOAD": str(library), "CLOCK_SHIFT_S": str(shift_s)}


class StandingClock:
    """A wall clock that daemons share. It stands still until a test sets it forwards or backwards."""

    def __init__(self, folder, now_s):
        self.folder, self.file = Path(folder), Path(folder) / "clock"
        self.now_s = now_s
        self.file.write_bytes(struct.pack("@l", now_s))

    def environment(self, shift_s=0):
        """That of a daemon whose clock is ahead of this one by `shift_s` seconds."""
        return {**shifted_clock(self.folder, shift_s), "CLOCK_FILE": str(self.file)}

    def jump(self, seconds):
        self.now_s += seconds
        # In place, because the daemons have mapped the file.
        with self.file.open("r+b") as file:
            file.write(struct.pack("@l", self.now_s))


class Node(Daemon):
    """A daemon whose journal is in a PostgreSQL; without a URL, in its folder."""

    def __init__(self, name, url, folder, *settings, config=None, environment=None):
        super().__init__(
            PRIME,
            "agents.executor.implementation=scripted",
            *settings,
            folder=folder,
            name=name,
            config=config,
            environment={**(environment or {}), "PRIME__JOURNAL__URL": url},
        )


def said(*words, **variables):
    """What a command of the program prints in an environment with `variables`; CalledProcessError unless it succeeds."""
    environment = {**os.environ, **variables}
    return subprocess.run([PRIME, *words], check=True, capture_output=True, text=True, env=environment).stdout


def failed_start(url, folder=None):
    """What a daemon on a PostgreSQL that it cannot use says before it ends, and its exit code."""
    serve = [PRIME, "serve", "--set", "server.bind=127.0.0.1:0"]
    done = subprocess.run(
        serve,
        env={**os.environ, "PRIME__JOURNAL__URL": url},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return done.stderr, done.returncode


class Receiver:
    """A server that takes messages of a webhook. While it is `silent`, it leaves them without an answer."""

    SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

    def __init__(self):
        self.silent, self.lock, self.messages = threading.Event(), threading.Lock(), []
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                with receiver.lock:
                    receiver.messages.append((self.headers["webhook-id"], json.loads(body)))
                if receiver.silent.is_set():
                    self.close_connection = True
                    threading.Event().wait(PATIENCE_S)
                    return
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def webhook(self, **options):
        """An option of a daemon that has its events sent here, at most a second to an attempt."""
        table = {"secret": self.SECRET, "timeout_ms": 1000, "retry_ms": [100] * 30, "allow_private": True, **options}
        table["url"] = f"http://127.0.0.1:{self.server.server_port}/"
        inline = ", ".join(f"{name} = {json.dumps(value)}" for name, value in table.items())
        return f"webhooks.ops={{{inline}}}"

    def told(self):
        """The ids and bodies of what has arrived, in its order."""
        with self.lock:
            return list(self.messages)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Lines:
    """A digest of a run's events: those of thousands of runs do not fit into memory."""

    def __init__(self, lines=()):
        self.count, self.sha256 = 0, hashlib.sha256()
        for line in lines:
            self.add(line)

    def add(self, line):
        self.count += 1
        self.sha256.update(f"{line}\n".encode())

    def digest(self):
        return self.count, self.sha256.hexdigest()


class Clients:
    """Submits runs until each is acknowledged, and follows each from node to node until it ends."""

    def __init__(self, nodes, random):
        self.nodes, self.random = nodes, random
        self.lock = threading.Lock()
        self.acknowledged = {}
        self.seen = {}
        self.results = {}
        self.failures = []
        self.threads = []

    def address(self):
        with self.lock:
            ready = [node.address for node in self.nodes if node.address]
            return self.random.choice(ready) if ready else None

    def submit(self, key, request):
        thread = threading.Thread(target=self.guarded, args=(key, request), daemon=True)
        self.threads.append(thread)
        thread.start()

    def guarded(self, key, request):
        try:
            self.follow(self.submitted(key, request))
        except Exception as error:
            # An exception would end the thread unseen; the test reports them.
            self.failures.append(f"{key}: {error!r}")

    def submitted(self, key, request):
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            address = self.address()
            try:
                if address:
                    record = ask(address, "POST", "/v1/runs", request, {"Idempotency-Key": key})
                    self.acknowledged[key] = record["id"]
                    return record["id"]
            except (OSError, Refused):
                # It may have been accepted or not: another node gets the same request.
                pass
            time.sleep(POLL_S)
        raise AssertionError("it is never accepted")

    def follow(self, run):
        seen = self.seen[run] = Lines()
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            address = self.address()
            try:
                for seq, line in events(address, run, seen.count) if address else ():
                    if seq is None:
                        self.results[run] = line
                        return
                    # Gaps and repetitions are what the tests look for.
                    if seq != seen.count + 1:
                        raise AssertionError(f"event {seq} of {run} after event {seen.count}")
                    seen.add(line)
            except OSError:
                # The node was killed or cut off: another one continues the stream.
                pass
            time.sleep(POLL_S)
        raise AssertionError(f"{run} never ends, {seen.count} events so far")

    def accept_until(self, is_done):
        """Accepts what waits for approval, at any node, until `is_done` is set. Returns the lines by run and number."""
        accepted = {}
        while not is_done.is_set():
            time.sleep(POLL_S)
            for step in self.asked("GET", "/v1/approvals").get("approvals", ()):
                path = f"/v1/runs/{step['run']}/approvals/{step['number']}"
                if self.asked("POST", path, {"verdict": "accept"}):
                    accepted[step["run"], step["number"]] = step["action"]
        return accepted

    def asked(self, *request):
        """The answer of a node; an empty one if it refuses, or is killed or cut off: it may have done its work or not."""
        address = self.address()
        try:
            return ask(address, *request) if address else {}
        except (OSError, Refused):
            return {}

    def open(self):
        """How many runs are under way."""
        return sum(thread.is_alive() for thread in self.threads)

    def join(self):
        for thread in self.threads:
            thread.join()
