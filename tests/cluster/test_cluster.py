"""Nodes on one PostgreSQL: what one does, the others know."""

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path

from cluster import PRIME, Node, Postgres, Proxy, said, shifted_clock

from harness import PATIENCE_S, ROOT, Refused, ask, finished, metrics, until

LEASE_MS = 1_000
SETS = [
    f"journal.lease_ms={LEASE_MS}",
    "log.level=info",
    "run.pops_max=1000000",
    'server.allow_verifiers=["panel"]',
]
# Longer than anything that a test does with it.
LONG = {"task": "tower-of-hanoi", "input": {"n": 22, "from": 0, "to": 2}, "fanout": 1}


def request(number):
    """Runs of some thousand steps, and some of many more, with errors."""
    discs = 16 if number % 6 == 0 else 10 + number % 5
    return {"task": "tower-of-hanoi", "input": {"n": discs, "from": 0, "to": 2}, "fanout": 1 + number % 2, "seed": number}


class Cluster(unittest.TestCase):
    config = None
    # Further options of the nodes.
    sets = ()
    # The nodes, and by how many seconds their clocks are wrong: nothing may rest on them agreeing.
    clocks = (0, 5 * 3_600, -7 * 3_600)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.postgres = Postgres()
        self.addCleanup(self.postgres.close)

        # Each node reaches the database through a proxy of its own, so that it can be cut off alone.
        self.nodes, self.proxies = [], []
        for at, shift_s in enumerate(self.clocks):
            self.proxies.append(Proxy(self.postgres))
            self.addCleanup(self.proxies[-1].close)
            environment = shifted_clock(folder.name, shift_s) if shift_s else {}
            node = Node(
                f"node-{at}",
                self.proxies[-1].url,
                Path(folder.name),
                *SETS,
                *self.sets,
                config=self.config,
                environment=environment,
            )
            self.nodes.append(node)
            self.addCleanup(node.close)

    def messages_waiting(self):
        """How many messages of webhooks are neither delivered nor given up."""
        [[count]] = self.postgres.sql("SELECT count(*) FROM outbox WHERE due_ms IS NOT NULL")
        return int(count)

    def logs(self, words=("",)):
        """The end of what each node said, or of the lines with one of these words."""
        texts = []
        for node in self.nodes:
            lines = [line for line in node.said().splitlines() if any(word in line for word in words)]
            texts.append("\n".join([f"--- {node.name}", *lines[-60:]]))
        return "\n".join(texts)

    def stored(self):
        """What the database holds of open runs and nodes, and what it is doing."""
        return "\n".join(
            "|".join(row)
            for statement in (
                "SELECT r.id, h.epoch, h.holder, h.last_seq FROM head h JOIN run r ON r.no = h.run WHERE h.is_open",
                "SELECT id, name, is_dead, expires - clock_timestamp(), commits FROM node ORDER BY id DESC LIMIT 20",
                "SELECT r.id, h.is_open, h.holder, a.number, a.decision, a.is_void FROM approval a JOIN run r ON r.no = a.run "
                "JOIN head h ON h.run = r.no WHERE NOT r.is_over ORDER BY a.no DESC LIMIT 20",
                "SELECT pid, state, wait_event_type, wait_event, now() - query_start, left(query, 60) FROM pg_stat_activity "
                "WHERE application_name = 'prime-agents'",
            )
            for row in self.postgres.sql(statement)
        )


class Tools:
    """`prime-agents mcp`, and calls of its tools."""

    def __init__(self, arguments):
        command = [PRIME, "mcp", *arguments]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.count = 0

    def __enter__(self):
        client = {"name": "test", "version": "1"}
        self.request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        self.send({"method": "notifications/initialized"})
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def request(self, method, params):
        self.count += 1
        self.send({"id": self.count, "method": method, "params": params})
        while (answer := json.loads(self.process.stdout.readline())).get("id") != self.count:
            pass
        return answer["result"]

    def call(self, name, arguments):
        result = self.request("tools/call", {"name": name, "arguments": arguments})
        text = result["content"][0]["text"]
        if result.get("isError"):
            raise AssertionError(f"{name}: {text}")
        return json.loads(text)


class Nodes(Cluster):
    clocks = (0, 0)

    def test_one_key_makes_one_run(self):
        requests, threads = int(os.environ.get("PRIME_REQUESTS", "200")), 8
        body = {"task": "n-queens", "difficulty": "easy", "index": 3}
        ids, failures = set(), []

        def submit(at):
            for _ in range(requests // threads):
                try:
                    record = ask(self.nodes[at % 2].address, "POST", "/v1/runs", body, {"Idempotency-Key": "k"}, PATIENCE_S)
                    ids.add(record["id"])
                except (OSError, Refused) as error:
                    failures.append(str(error))

        workers = [threading.Thread(target=submit, args=(at,)) for at in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

        self.assertEqual((len(ids), failures), (1, []))
        self.assertEqual(self.postgres.sql("SELECT count(*) FROM run"), [["1"]])

    def test_every_node_answers_the_same_and_does_the_same(self):
        one, other = self.nodes
        flagged = {"task": "bubble-sort", "index": 3, "fanout": 1, "agents": {"verifier": "panel"}}
        run = ask(one.address, "POST", "/v1/runs", flagged)["id"]
        _, record = finished(other.address, run)

        def asked(path):
            """What both nodes answer, which must be the same."""
            answers = [ask(node.address, "GET", path, timeout=PATIENCE_S) for node in (one, other)]
            self.assertEqual(*answers, path)
            return answers[0]

        seq = asked(f"/v1/runs/{run}/reviews")["steps"][0]["seq"]
        ask(other.address, "POST", f"/v1/runs/{run}/reviews", {"seq": seq, "verdict": "reject"})
        self.assertEqual(asked(f"/v1/runs/{run}")["reviews"]["rejected"], 1)

        fork = ask(other.address, "POST", f"/v1/runs/{run}/fork?seq={seq}&seed=7")
        self.assertEqual(fork["forked_from"], {"run": run, "seq": seq})
        lines, _ = finished(one.address, fork["id"])
        self.assertEqual(lines[:seq], finished(other.address, run)[0][:seq])
        for path in ["reviews", "tree", "shape?trajectory=1.0", "steps?trajectory=1.0", "spec", f"steps/{seq}"]:
            asked(f"/v1/runs/{fork['id']}/{path}")

        self.assertEqual([listed["id"] for listed in asked("/v1/runs")["runs"]], [fork["id"], run])
        asked("/v1/split")
        self.assertEqual(ask(other.address, "POST", "/v1/gc", {"older_than_days": 0}, timeout=PATIENCE_S)["runs"], 2)
        self.assertEqual(asked("/v1/runs")["runs"], [])

    def test_any_node_cancels_any_run(self):
        one, other = self.nodes
        run = ask(one.address, "POST", "/v1/runs", LONG)["id"]
        self.assertEqual(ask(other.address, "POST", f"/v1/runs/{run}/cancel", timeout=PATIENCE_S)["status"], "cancelled")

        # Also one that waits for a node.
        run = ask(one.address, "POST", "/v1/runs", LONG)["id"]
        one.kill()
        ask(other.address, "POST", f"/v1/runs/{run}/cancel", timeout=PATIENCE_S)

        def status():
            return ask(other.address, "GET", f"/v1/runs/{run}")["status"]

        until(lambda: status() not in ("queued", "running"), "the run is over")
        self.assertEqual(status(), "cancelled")

    def test_a_client_goes_on_at_another_node(self):
        one, other = self.nodes
        options = ["--output", "json", "--url", one.url, "--url", other.url]
        run = ask(one.address, "POST", "/v1/runs", request(4))["id"]
        one.kill()

        watched = said("runs", "watch", run, *options)
        lines, record = finished(other.address, run)
        self.assertEqual(record["status"], "verified")
        self.assertIn(str(record["events"]), watched)
        self.assertTrue(lines)

        self.assertIn("verified", said("runs", "submit", "n-queens", "--wait", *options))

    def test_the_status_shows_nodes_and_waiting_runs(self):
        one, other = self.nodes
        ask(one.address, "POST", "/v1/runs", LONG)
        report = ask(other.address, "GET", "/v1/cluster")
        self.assertEqual((report["shared"], report["open_runs"], report["waiting_runs"]), (True, 1, 0))
        self.assertEqual([(node["this"], node["held"]) for node in report["nodes"]], [(False, 1), (True, 0)])
        self.assertTrue(all(0 <= node["lag_ms"] for node in report["nodes"]), report)

        # Every node says the same of the whole cluster.
        shown = [metrics(node.address, "prime_cluster_") for node in self.nodes]
        for found in shown:
            of_all = {name: value for name, value in found.items() if "{" not in name}
            self.assertEqual(
                of_all,
                {
                    "prime_cluster_nodes": 2, "prime_cluster_open_runs": 1, "prime_cluster_waiting_runs": 0,
                    "prime_cluster_blocked_runs": 0, "prime_cluster_oldest_waiting_seconds": 0,
                },
            )
            labels = [f'{{node="{node["name"]}",id="{node["id"]}"}}' for node in report["nodes"]]
            self.assertEqual([found[f"prime_cluster_leases{label}"] for label in labels], [1, 0])
            self.assertTrue(all(found[f"prime_cluster_heartbeat_lag_seconds{label}"] >= 0 for label in labels), found)

        # A metric of one node names the node.
        own = [list(metrics(node.address, "prime_node_info")) for node in self.nodes]
        for node, [info] in zip(report["nodes"], own, strict=True):
            self.assertIn(f'node="{node["name"]}",id="{node["id"]}"', info)
        self.assertEqual([metrics(node.address, "prime_runs_open")["prime_runs_open"] for node in self.nodes], [1, 0])

        one.kill()
        until(lambda: [node["held"] for node in ask(other.address, "GET", "/v1/cluster")["nodes"]] == [1], "it is taken")
        self.assertIn("1 open runs, 0 wait for a node", said("cluster", "status", "--url", other.url))

    def test_tools_go_on_at_another_node(self):
        one, other = self.nodes
        urls = [word for node in self.nodes for word in ("--url", node.url)]
        with Tools(urls) as tools:
            run = tools.call("start_run", LONG)["id"]
            self.assertEqual(self.postgres.sql("SELECT count(*) FROM idempotency_key"), [["1"]])
            before = tools.call("watch_run", {"run": run, "wait_ms": 30_000})

            one.kill()
            # The other node takes it over, and the events continue where they were.
            after = tools.call("watch_run", {"run": run, "after": before["after"], "wait_ms": 30_000})
            self.assertEqual(after["events"][0]["seq"], before["after"] + 1)
            self.assertEqual(tools.call("cancel_run", {"run": run})["status"], "cancelled")
            self.assertEqual(tools.call("start_run", request(1))["status"], "queued")

    def test_a_chat_completion_goes_on_at_another_node(self):
        one, other = self.nodes
        body = {"model": "prime", "messages": [{"role": "user", "content": "Solve it."}], "prime": request(0)}

        def complete(node):
            return ask(node.address, "POST", "/v1/chat/completions", body, {"Idempotency-Key": "k"}, PATIENCE_S)

        def lose():
            try:
                complete(one)
            except OSError:
                pass

        # It waits for its answer, so that the kill breaks it off.
        lost = threading.Thread(target=lose)
        lost.start()
        until(lambda: any(run["events"] for run in ask(other.address, "GET", "/v1/runs")["runs"]), "it is under way")
        one.kill()
        lost.join()

        completion = complete(other)
        [[run, resumed]] = self.postgres.sql("SELECT id, resumed FROM run")
        self.assertEqual((completion["prime"]["run"], completion["prime"]["verified"]), (run, True))
        self.assertEqual(resumed, "1")

    def test_a_run_waits_for_a_node_that_has_its_agents(self):
        _, other = self.nodes
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder) / "extra.gguf"
            shutil.copyfile(ROOT / "models" / "prime-tiny.gguf", model)
            digest = hashlib.sha256(model.read_bytes()).hexdigest()
            missing = f"engine `extra` with the model whose SHA-256 is {digest}"
            asks_extra = ["agents.executor.implementation=llama", "agents.executor.engine=extra"]
            extra = f"engines.extra.model={model}"
            owner = Node("owner", self.postgres.url, Path(folder), *SETS, *asks_extra, extra)
            self.addCleanup(owner.close)

            # A node without the engine, whose configuration can be changed.
            reloaded = Path(folder) / "node.toml"
            reloaded.touch()
            later = Node("later", self.postgres.url, Path(folder), *SETS, config=reloaded)
            self.addCleanup(later.close)
            run = ask(owner.address, "POST", "/v1/runs", LONG)["id"]

            def record(node=other):
                return ask(node.address, "GET", f"/v1/runs/{run}", timeout=PATIENCE_S)

            until(lambda: record(owner)["events"] > 0, "the owner executes it")
            self.assertNotIn("waiting_for", record())

            owner.kill()
            waiting = until(lambda: record() if "waiting_for" in record() else None, "it waits")
            self.assertEqual(waiting["waiting_for"], f"a node with {missing}: no live node has that")
            self.assertEqual(waiting["status"], "queued")
            listed = ask(later.address, "GET", "/v1/runs")["runs"]
            self.assertEqual([run["waiting_for"] for run in listed], [waiting["waiting_for"]])
            report = ask(other.address, "GET", "/v1/cluster")
            shown = (report["waiting_runs"], report["blocked_runs"], report["missing"])
            self.assertEqual(shown, (1, 1, [missing]))
            status = said("cluster", "status", "--url", other.url)
            self.assertIn(f"1 of them wait for what no node has:\n  {missing}", status)

            # Runs that other nodes can execute do not wait for it.
            after = ask(other.address, "POST", "/v1/runs", request(1))["id"]
            self.assertEqual(finished(other.address, after)[1]["status"], "verified")
            self.assertEqual(record()["events"], waiting["events"])

            # A node gets the engine by a reload.
            reloaded.write_text(f'[engines.extra]\nmodel = "{model}"\n')
            ask(later.address, "POST", "/v1/reload", timeout=PATIENCE_S)
            until(lambda: record()["events"] > waiting["events"], "the node that was reloaded executes it")
            self.assertNotIn("waiting_for", record())
            held = {node["name"]: node["held"] for node in ask(other.address, "GET", "/v1/cluster")["nodes"]}
            self.assertEqual([held[name] for name in held if name.endswith(f":{later.process.pid}")], [1])
            cancelled = ask(other.address, "POST", f"/v1/runs/{run}/cancel", timeout=PATIENCE_S)
            self.assertEqual((cancelled["status"], cancelled["agents"]["executor"]), ("cancelled", "llama"))

    def test_journals_are_copied_both_ways(self):
        one, other = self.nodes
        runs = [ask(one.address, "POST", "/v1/runs", request(number))["id"] for number in range(3)]
        records = [finished(other.address, run)[1] for run in runs]
        with tempfile.TemporaryDirectory() as folder:
            file = str(Path(folder) / "runs.sqlite")
            copy = ["journal", "copy", self.postgres.url, file]
            refused = subprocess.run([PRIME, *copy], check=False, stderr=subprocess.PIPE, text=True)
            self.assertEqual(refused.returncode, 2)
            self.assertIn("stop them first", refused.stderr)

            one.stop()
            other.stop()
            events = sum(record["events"] for record in records)
            self.assertIn(f"3 runs with {events} events are in both", said(*copy))

            # And back, into a schema of its own, where nothing is yet.
            self.postgres.sql("CREATE SCHEMA copied")
            copied = f"{self.postgres.url}&options=-csearch_path%3Dcopied"
            said("journal", "copy", file, copied)
            stored = "SELECT id, status, last_seq, encode(hash, 'hex') FROM {0}.run JOIN {0}.head ON run = no ORDER BY id"
            self.assertEqual(self.postgres.sql(stored.format("public")), self.postgres.sql(stored.format("copied")))


class Limits(Cluster):
    clocks = (0, 0)
    most = 4

    def setUp(self):
        # Not in the arguments, which a reload cannot change.
        file = tempfile.NamedTemporaryFile("w", suffix=".toml")
        self.addCleanup(file.close)
        self.config = Path(file.name)
        self.limit(self.most)
        super().setUp()

    def limit(self, most):
        self.config.write_text(f"[server]\nqueue_max = {most}\n")

    def refusal(self, node):
        """How a node refuses a run; None if it accepts it."""
        try:
            ask(node.address, "POST", "/v1/runs", LONG, timeout=PATIENCE_S)
        except Refused as refused:
            return refused.status, refused.body["error"]["code"]
        return None

    def test_the_queue_is_limited_over_all_nodes(self):
        full = (429, "queue_full")
        keyed = {"Idempotency-Key": "k"}
        first = ask(self.nodes[0].address, "POST", "/v1/runs", LONG, keyed)["id"]
        answers, workers = [], []
        for at in range(8):
            submit = lambda node=self.nodes[at % 2]: answers.extend(self.refusal(node) for _ in range(4))  # noqa: E731
            workers.append(threading.Thread(target=submit))
            workers[-1].start()
        for worker in workers:
            worker.join()

        self.assertEqual((answers.count(None), answers.count(full)), (self.most - 1, 32 - self.most + 1))
        self.assertEqual(self.postgres.sql("SELECT count(*) FROM run"), [[str(self.most)]])

        # A request that was accepted before needs no room.
        self.assertEqual(ask(self.nodes[1].address, "POST", "/v1/runs", LONG, keyed)["id"], first)
        for node in self.nodes:
            with self.assertRaises(Refused) as refused:
                until(lambda node=node: ask(node.address, "GET", "/readyz") and None, "no node is ready")
            body = refused.exception.body
            self.assertEqual((body["open_runs"], body["live_runs_max"]), (self.most, self.most))

        # A place that is free on one node is so on the other.
        ask(self.nodes[1].address, "POST", f"/v1/runs/{first}/cancel", timeout=PATIENCE_S)
        until(lambda: self.refusal(self.nodes[1]) is None, "there is room again")
        self.assertEqual(self.refusal(self.nodes[0]), full)

        self.limit(self.most + 1)
        for node in self.nodes:
            ask(node.address, "POST", "/v1/reload", timeout=PATIENCE_S)
        until(lambda: self.refusal(self.nodes[0]) is None, "there is more room")
        self.assertEqual([self.refusal(node) for node in self.nodes], [full, full])


if __name__ == "__main__":
    unittest.main(verbosity=2)
