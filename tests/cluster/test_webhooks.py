"""Messages to a webhook that several nodes send, one of which is killed."""

import unittest

import test_cluster
from cluster import Receiver

from harness import PATIENCE_S, ask, until

RUNS = 12


class Webhooks(test_cluster.Cluster):
    def setUp(self):
        self.receiver = Receiver()
        self.addCleanup(self.receiver.close)
        self.sets = (self.receiver.webhook(events=["run.ended"], retry_ms=[100, 100, 100]),)
        super().setUp()

    def submitted(self, node, count):
        body = {"task": "dfa-simulation", "agents": {"executor": "reference"}}
        return [ask(node.address, "POST", "/v1/runs", body, timeout=PATIENCE_S)["id"] for _ in range(count)]

    def told(self):
        """The messages' ids and runs."""
        return [(id, message["data"]["run"]) for id, message in self.receiver.told()]

    def test_each_end_is_told_once_by_one_of_the_nodes(self):
        runs = [run for node in self.nodes for run in self.submitted(node, RUNS)]
        until(lambda: {run for _, run in self.told()} >= set(runs), "all ends are told")
        until(lambda: self.messages_waiting() == 0, "all messages are settled")
        self.assertEqual(sorted(run for _, run in self.told()), sorted(runs))

    def test_the_messages_of_a_killed_node_are_sent_by_another(self):
        self.receiver.silent.set()
        [killed, *living] = self.nodes
        runs = self.submitted(killed, RUNS)
        until(lambda: len(self.told()) > 0, "a message is under way")
        killed.kill()
        self.receiver.silent.clear()

        # Those that were claimed come when their claims end.
        until(lambda: {run for _, run in self.told()} >= set(runs), "all ends are told")
        until(lambda: self.messages_waiting() == 0, "the others send what waits")
        told = self.told()
        ids = {run: {id for id, of in told if of == run} for run in runs}
        self.assertTrue(all(len(found) == 1 for found in ids.values()), ids)
        for node in living:
            self.assertNotIn(Receiver.SECRET, node.said())


if __name__ == "__main__":
    unittest.main()
