"""Nodes on one PostgreSQL, under faults. PRIME_ROUNDS sets how many, PRIME_SEED which."""

import json
import os
import random
import re
import threading
import time

import test_cluster
from cluster import Clients, Lines, Receiver, said

from harness import PATIENCE_S, ask, finished, until

ROUNDS = int(os.environ.get("PRIME_ROUNDS", "8"))
SEED = int(os.environ.get("PRIME_SEED", "86"))
RUNS_A_ROUND = 5
OPEN_MAX = 20
# When a step waits for approval.
HELD = "step.depth % 500 == 100"


def request(number):
    """A run; of every third one, some steps wait for approval. It has one trajectory: an end by another one would make a
    decision void.
    """
    held = {"fanout": 1, "approve": HELD} if number % 3 == 1 else {}
    return {**test_cluster.request(number), **held}


# The directions between a node and its database in which nothing passes, by the fault's name.
PARTITIONS = {"requests": ["to"], "answers": ["from"], "partition": ["to", "from"]}


class Faults(test_cluster.Cluster):
    def setUp(self):
        self.receiver = Receiver()
        self.addCleanup(self.receiver.close)
        self.sets = (self.receiver.webhook(events=["run.waiting", "run.ended"]),)
        super().setUp()

    def test_a_cut_in_each_direction_costs_the_node_its_lease_and_no_run(self):
        for number, (name, ways) in enumerate(PARTITIONS.items()):
            with self.subTest(name):
                node, proxy, others = self.nodes[0], self.proxies[0], self.nodes[1:]
                # After a cut it comes back as a new node: a run that it accepts before that is another's at once.
                mine = f"name LIKE '%:{node.process.pid}' AND NOT is_dead"
                until(lambda: self.postgres.sql(f"SELECT id FROM node WHERE {mine}"), "the node has registered")
                run = ask(node.address, "POST", "/v1/runs", test_cluster.LONG, timeout=PATIENCE_S)["id"]

                withheld = sum(proxy.withheld.values())
                proxy.cut(*ways)
                elsewhere = (
                    "SELECT 1 FROM head h JOIN run r ON r.no = h.run JOIN node n ON n.id = h.holder "
                    f"WHERE r.id = '{run}' AND h.epoch > 1 AND n.name NOT LIKE '%:{node.process.pid}'"
                )
                until(lambda: self.postgres.sql(elsewhere), "another node takes the run")
                until(lambda: sum(proxy.withheld.values()) > withheld, "it is cut off while it works")
                proxy.heal()

                lines = self.postgres.sql(
                    "SELECT g.epoch, min(g.first_seq) FROM segment g JOIN run r ON r.no = g.run "
                    f"WHERE r.id = '{run}' GROUP BY 1 ORDER BY 1"
                )
                firsts = [int(first) for _, first in lines]
                self.assertEqual(firsts, sorted(firsts), "no event of an older epoch after one of a newer")

                ended = ask(others[number % 2].address, "POST", f"/v1/runs/{run}/cancel", timeout=PATIENCE_S)
                self.assertIn(ended["status"], ("cancelled", "running", "queued"))
                until(
                    lambda: ask(node.address, "GET", f"/v1/runs/{run}", timeout=PATIENCE_S)["status"] == "cancelled",
                    "the node that was cut off answers again",
                )

    def inject(self, rng):
        """Injects a fault and ends it; returns its name."""
        node = rng.choice(self.nodes)
        faults = ["kill", "kill", "sleep", "sleep", "drain", "cut", "database", "requests", "answers", "partition"]
        fault = rng.choice(faults)

        # The pauses vary what a fault meets; those of a lease or more make other nodes take the runs.
        time.sleep(rng.uniform(0, 0.3))
        if fault == "kill":
            node.kill()
            time.sleep(rng.choice([0, 0, test_cluster.LEASE_MS * 1.5e-3]))
            node.start()
        elif fault == "sleep":
            node.pause()
            time.sleep(test_cluster.LEASE_MS * 1e-3 * rng.uniform(0.5, 3))
            node.resume()
        elif fault == "drain":
            node.stop()
            node.start()
        elif fault == "cut":
            for _ in range(10):
                self.postgres.sql(
                    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'prime-agents'"
                )
                time.sleep(rng.uniform(0, 0.05))
        elif fault in PARTITIONS:
            proxy = self.proxies[self.nodes.index(node)]
            proxy.cut(*PARTITIONS[fault])
            time.sleep(test_cluster.LEASE_MS * 1e-3 * rng.uniform(0.5, 3))
            proxy.heal()
        else:
            self.postgres.kill()
            time.sleep(rng.uniform(0, 1))
            self.postgres.start()

        return fault

    def test_nothing_is_lost_changed_or_doubled(self):
        rng = random.Random(SEED)
        clients = Clients(self.nodes, random.Random(SEED + 1))
        is_done, accepted, faults = threading.Event(), {}, []
        reviewer = threading.Thread(target=lambda: accepted.update(clients.accept_until(is_done)))
        reviewer.start()
        self.addCleanup(is_done.set)
        for round in range(ROUNDS):
            # However slow the machine is, the nodes have something to do and do not fall behind.
            until(lambda: clients.open() <= OPEN_MAX, "runs end")
            for at in range(RUNS_A_ROUND):
                number = round * RUNS_A_ROUND + at
                clients.submit(f"run-{number}", request(number))
            faults.append(self.inject(rng))

        clients.join()
        is_done.set()
        reviewer.join()
        if clients.failures:
            late = re.findall(r"run_\w+", " ".join(clients.failures))
            found = "\n".join([*clients.failures, self.stored(), self.logs(late), self.logs()])
            self.fail(f"{faults}\n{found}")

        self.check(clients)
        self.check_approvals(accepted)
        self.check_messages(clients)
        resumed = sum(record["resumed"] > 0 for record in clients.results.values())
        print(f"\n{ROUNDS} faults ({', '.join(faults)}), {len(clients.results)} runs, {resumed} of them resumed")
        print(f"{len(accepted)} decisions, {len(self.receiver.told())} messages")

    def check(self, clients):
        """Compares what the clients saw with what the database holds and with what the nodes answer."""
        ids = list(clients.acknowledged.values())
        self.assertEqual(len(ids), ROUNDS * RUNS_A_ROUND)
        stored = dict(self.postgres.sql("SELECT id, is_over FROM run"))
        self.assertEqual(stored, dict.fromkeys(ids, "t"), "each accepted run is there once, and over")
        self.assertEqual(self.postgres.sql("SELECT count(*) FROM head WHERE holder IS NOT NULL"), [["0"]])

        segments = self.postgres.sql(
            "SELECT r.id, g.first_seq, g.count, g.epoch, h.last_seq, h.epoch FROM segment g JOIN run r ON r.no = g.run "
            "JOIN head h ON h.run = g.run ORDER BY r.id, g.first_seq"
        )
        # The number that a run's next segment must begin with, and the epoch of its last one.
        before = {}
        for run, first, count, epoch, last, head_epoch in segments:
            first, count, epoch = int(first), int(count), int(epoch)
            next_seq, last_epoch = before.get(run, (1, 1))
            self.assertEqual(first, next_seq, f"{run}: events are without gaps, each once")
            self.assertGreaterEqual(epoch, last_epoch, f"{run}: an older epoch after a newer one")
            self.assertLessEqual(epoch, int(head_epoch))
            before[run] = (first + count, epoch)
            if first + count - 1 == int(last):
                before[run] = (None, epoch)
        self.assertTrue(all(end is None for end, _ in before.values()), "the last event is the head's")

        addresses = [node.address for node in self.nodes]
        for at, run in enumerate(ids):
            lines, record = finished(addresses[at % len(addresses)], run)
            self.assertEqual(
                clients.seen[run].digest(), Lines(lines).digest(), f"{run}: what a client saw is what is stored"
            )
            self.assertEqual(clients.results[run], record, f"{record}\n{self.logs([run])}")
            self.assertEqual(record["status"], "verified", record)
            records = [ask(address, "GET", f"/v1/runs/{run}", timeout=PATIENCE_S) for address in addresses]
            self.assertTrue(all(other == record for other in records), "every node answers the same")

        # Some of them: each takes a process.
        for run in ids[:: max(1, len(ids) // 5)]:
            said("runs", "verify-chain", run, "--url", f"http://{addresses[0]}")


    def check_approvals(self, accepted):
        """Each decision that was acknowledged is carried out, once, and no step is committed without its own."""
        self.assertTrue(accepted)
        for run in {run for run, _ in accepted}:
            lines, record = finished(self.nodes[0].address, run)
            carried_out = {}
            for step in map(json.loads, lines):
                if step["event"] == "step" and step["decision"] == "proceed" and step["depth"] % 500 == 100:
                    number = step["approval"]["number"]
                    self.assertNotIn(number, carried_out, f"{run}: approval {number} is carried out twice")
                    carried_out[number] = step["action"]
            mine = {number: line for (of, number), line in accepted.items() if of == run}
            self.assertLessEqual(mine.items(), carried_out.items(), record)

    def check_messages(self, clients):
        """Each end and each step that waits was told, under one id, and of each run in its order."""
        until(lambda: self.messages_waiting() == 0, "all messages are settled")
        of_run = {}
        for id, message in self.receiver.told():
            # A repetition has the id of the first.
            of_run.setdefault(message["data"]["run"], {}).setdefault(id, message)

        self.assertEqual(of_run.keys(), clients.results.keys())
        for run, messages in of_run.items():
            kinds = [message["type"] for message in messages.values()]
            self.assertEqual((kinds.count("run.ended"), kinds[-1]), (1, "run.ended"), kinds)
            told = [number for message in messages.values() for number in message["data"].get("approvals", [])]
            asked = clients.results[run].get("approvals", {"asked": 0})["asked"]
            self.assertEqual(told, list(range(1, asked + 1)), run)


if __name__ == "__main__":
    import unittest

    unittest.main()
