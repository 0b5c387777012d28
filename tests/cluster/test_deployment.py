"""The files that start several nodes, and the rights that the documentation says their role needs."""

import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from cluster import PRIME, Node, Postgres, failed_start, said

from harness import PATIENCE_S, ROOT, ask, finished, until

UNIT = ROOT / "config" / "prime-agents@.service"
# The settings in which the template may differ from the unit of one daemon.
OWN = {"Description", "ExecStart", "EnvironmentFile", "StateDirectory", "WorkingDirectory"}


def settings(unit):
    """The settings of a unit as (key, value)."""
    lines = [line for line in unit.read_text().splitlines() if line and line[0] not in "#["]
    return [tuple(line.split("=", 1)) for line in lines]


class Files(unittest.TestCase):
    def test_the_configuration_is_valid_and_names_a_shared_journal(self):
        shown = said("config", "show", "--config", ROOT / "config" / "cluster.toml")
        self.assertRegex(shown, r'url = "postgres://')

    def test_the_template_confines_its_nodes_like_the_single_daemon(self):
        def kept(path):
            return [setting for setting in settings(path) if setting[0] not in OWN]

        self.assertEqual(kept(UNIT), kept(ROOT / "config" / "prime-agents.service"))

    def test_systemd_accepts_the_template(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / UNIT.name
            path.write_text(UNIT.read_text().replace("/opt/prime-agents/bin/prime-agents", PRIME))
            try:
                done = subprocess.run(["systemd-analyze", "verify", path], stderr=subprocess.PIPE, text=True)
            except FileNotFoundError:
                self.skipTest("systemd-analyze is not installed")
            self.assertEqual([line for line in done.stderr.splitlines() if "prime-agents@" in line], [])

    def test_the_compose_file_names_options_and_files_that_exist(self):
        text = (ROOT / "config" / "compose.yaml").read_text()
        self.assertIn("./cluster.toml:/cluster.toml:ro", text)
        self.assertIn("command: [serve, --config, /cluster.toml]", text)
        binds = re.findall(r'PRIME__SERVER__BIND: "(127\.0\.0\.1:\d+)"', text)
        self.assertEqual(len(set(binds)), 3)
        url = re.search(r"PRIME__JOURNAL__URL: (\S+?)\$\{[^}]*\}(\S+)", text)

        # The variables that it sets are options of the program, which hides the password.
        variables = {"PRIME__SERVER__BIND": binds[0], "PRIME__JOURNAL__URL": f"{url.group(1)}secret{url.group(2)}"}
        shown = said("config", "show", "--config", ROOT / "config" / "cluster.toml", **variables)
        self.assertIn(binds[0], shown)
        self.assertNotIn("secret", shown)


class Rights(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.postgres = Postgres()
        self.addCleanup(self.postgres.close)

    def use(self, address):
        """Does everything that needs rights: accepting, executing, cancelling, the status, removing."""
        run = ask(address, "POST", "/v1/runs", {"task": "n-queens", "difficulty": "easy", "index": 1}, {"Idempotency-Key": "k"})
        _, record = finished(address, run["id"])
        self.assertEqual(record["status"], "verified")

        ask(address, "POST", f"/v1/runs/{run['id']}/cancel", timeout=PATIENCE_S)
        self.assertEqual([node["this"] for node in ask(address, "GET", "/v1/cluster")["nodes"]], [True])
        self.assertTrue(ask(address, "GET", "/readyz")["ready"])
        said("runs", "gc", "--url", f"http://{address}")

    def node(self, url):
        node = Node("node", url, self.folder, "journal.lease_ms=1000")
        self.addCleanup(node.close)
        return node

    def statements(self):
        """The statements of docs/operations.md that make the role and its database."""
        text = (ROOT / "docs" / "operations.md").read_text()
        found = re.search(r"`(CREATE ROLE [^`]+)`", text).group(1)
        return [part.strip() for part in found.split(";") if part.strip()]

    def test_the_documented_role_suffices(self):
        # The administrator of the test's server has the name of the documented role.
        for statement in self.statements():
            self.postgres.sql(re.sub(r"\bprime\b", "least", statement))

        [rights] = self.postgres.sql("SELECT rolsuper, rolcreatedb, rolcreaterole FROM pg_roles WHERE rolname = 'least'")
        self.assertEqual(rights, ["f", "f", "f"])
        node = self.node(f"postgres://least@/least?host={self.postgres.folder}&port={self.postgres.port}")
        self.use(node.address)

        # What an upgrade and a second start need.
        node.stop()
        node.start()
        until(lambda: ask(node.address, "GET", "/readyz")["ready"], "it is ready again")

    def test_a_schema_of_the_role_in_the_database_of_another_suffices(self):
        for statement in ["CREATE ROLE least LOGIN", "CREATE SCHEMA runs", "GRANT USAGE, CREATE ON SCHEMA runs TO least"]:
            self.postgres.sql(statement)
        at = f"host={self.postgres.folder}&port={self.postgres.port}"
        self.use(self.node(f"postgres://least@/postgres?{at}&options=-csearch_path%3Druns").address)

    def test_a_role_without_rights_is_told_so(self):
        self.postgres.sql("CREATE ROLE least LOGIN")
        url = f"postgres://least@/postgres?host={self.postgres.folder}&port={self.postgres.port}"
        log, code = failed_start(url)
        self.assertNotEqual(code, 0)
        self.assertIn("permission denied for schema public", log)

    def test_nodes_start_as_the_template_unit_says(self):
        start = dict(settings(UNIT))["ExecStart"].split()[1:]
        nodes = []
        for at in range(2):
            words = [word.replace("/etc/prime-agents/", str(ROOT / "config") + "/") for word in start]
            # The port is free only until another takes it, so the daemon chooses.
            words = [word.replace("%i", "0") for word in words]
            nodes.append(UnitNode(f"node-{at}", self.postgres.url, self.folder, words))
            self.addCleanup(nodes[-1].close)
        self.assertEqual(len(ask(nodes[0].address, "GET", "/v1/cluster")["nodes"]), 2)


class UnitNode(Node):
    """A daemon with the arguments of a unit."""

    def __init__(self, name, url, folder, words):
        self.words = words
        super().__init__(name, url, folder)

    def command(self):
        return [PRIME, *self.words]


if __name__ == "__main__":
    unittest.main(verbosity=2)
