"""Databases that cannot be used, or not at present: what nodes say, and that nothing is lost."""

import socket
import tempfile
import unittest
from pathlib import Path

from cluster import Node, Postgres, failed_start, said

from harness import PATIENCE_S, Refused, ask, metrics, until

LONG = {"task": "tower-of-hanoi", "input": {"n": 22, "from": 0, "to": 2}, "fanout": 1}
SETS = ["journal.lease_ms=1000", "run.pops_max=1000000"]
# Room for the server, and little enough to be filled soon.
SIZE = "150m"


class Start(unittest.TestCase):
    def refused(self, url):
        """What a daemon says before it ends."""
        with tempfile.TemporaryDirectory() as folder:
            log, code = failed_start(url, folder)
            self.assertEqual(list(Path(folder).iterdir()), [], "no journal of its own instead")

        # Neither a success nor a crash (a panic, an abort).
        self.assertNotIn(code, (0, 101, -6))
        self.assertNotIn("topsecret", log)
        self.assertIn("journal.url", log)
        return log

    def test_a_url_that_does_not_answer(self):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
            url = f"postgres://ada:topsecret@127.0.0.1:{port}/prime"
            self.assertIn("refused", self.refused(url))
            # It takes connections, and says nothing.
            listener.listen(8)
            self.assertRegex(self.refused(f"{url}?connect_timeout=1"), "time|no answer")

    def test_urls_that_are_none(self):
        for url, part in [("mysql://db/prime", "postgres://"), ("postgres://ada:topsecret@/prime", "no host")]:
            self.assertIn(part, self.refused(url))

    def test_a_schema_of_a_newer_version(self):
        postgres = Postgres()
        self.addCleanup(postgres.close)
        for statement in ["CREATE TABLE meta (name text, value bigint)", "INSERT INTO meta VALUES ('version', 99)"]:
            postgres.sql(statement)
        self.assertIn("its schema has version 99", self.refused(postgres.url))


class Outages(unittest.TestCase):
    def start(self, url):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        node = Node("node", url, Path(folder.name), *SETS)
        self.addCleanup(node.close)
        return node

    def ready(self, node):
        """The answer of /readyz, whatever its status."""
        try:
            return ask(node.address, "GET", "/readyz", timeout=PATIENCE_S)
        except Refused as refused:
            return refused.body

    def continues(self, node, run, before):
        """After an outage nothing is lost, and the run continues."""
        until(lambda: self.ready(node)["ready"], "the node is ready again")
        events = f"/v1/runs/{run}"
        until(lambda: ask(node.address, "GET", events, timeout=PATIENCE_S)["events"] > before, "the run continues")
        self.assertEqual(ask(node.address, "POST", f"{events}/cancel", timeout=PATIENCE_S)["status"], "cancelled")
        said("runs", "verify-chain", run, "--url", node.url)

    def test_a_database_that_goes_read_only(self):
        postgres = Postgres()
        self.addCleanup(postgres.close)
        for statement in ["CREATE ROLE least LOGIN", "CREATE SCHEMA least AUTHORIZATION least"]:
            postgres.sql(statement)
        node = self.start(f"postgres://least@/postgres?host={postgres.folder}&port={postgres.port}")
        run = ask(node.address, "POST", "/v1/runs", LONG)["id"]
        until(lambda: ask(node.address, "GET", f"/v1/runs/{run}")["events"] > 0, "the run is under way")

        # A role's setting is that of its next sessions, so those of now must end.
        end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'least'"
        postgres.sql("ALTER ROLE least SET default_transaction_read_only = on")
        postgres.sql(end)
        body = until(lambda: None if (found := self.ready(node))["ready"] else found, "the node is not ready")
        self.assertFalse(body["journal"]["writable"])
        self.assertIn("write", body["journal"]["failure"])
        # Metrics do not wait for the database: what it would say is left out.
        shown = metrics(node.address, "prime_")
        of_all = [name for name in shown if name.startswith("prime_cluster_")]
        self.assertEqual((shown["prime_runs_open"], of_all), (1, []))

        last = int(postgres.sql("SELECT last_seq FROM least.head")[0][0])
        postgres.sql("ALTER ROLE least SET default_transaction_read_only = off")
        postgres.sql(end)
        self.continues(node, run, last)

    def test_a_database_whose_disk_is_full(self):
        try:
            postgres = Postgres(tmpfs=SIZE)
        except PermissionError as error:
            self.skipTest(f"a file system of a limited size cannot be mounted: {error}")
        self.addCleanup(postgres.close)
        node = self.start(postgres.url)
        run = ask(node.address, "POST", "/v1/runs", LONG)["id"]
        until(lambda: ask(node.address, "GET", f"/v1/runs/{run}")["events"] > 0, "the run is under way")

        filler = postgres.folder / "filler"
        with filler.open("wb", buffering=0) as file, self.assertRaises(OSError):
            while True:
                file.write(bytes(1 << 16))
        body = until(lambda: None if (found := self.ready(node))["ready"] else found, "the node is not ready")
        self.assertFalse(body["journal"]["writable"])

        filler.unlink()
        # It may have ended, because it could not write its log.
        postgres.start()
        last = int(postgres.sql("SELECT last_seq FROM head")[0][0])
        self.continues(node, run, last)


if __name__ == "__main__":
    unittest.main(verbosity=2)
