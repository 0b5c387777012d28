"""Runs that wait for approval: no node holds them, and a decision brings them to any node."""

import test_cluster

from harness import ask, until

REQUEST = {
    "task": "n-queens",
    "input": {"n": 5, "order": [0, 1, 2, 3, 4]},
    "fanout": 1,
    "max_rounds": 1,
    "seed": 3,
    "approve": "every 2 steps",
    "agents": {"executor": "reference"},
}


class Approvals(test_cluster.Cluster):
    def status(self, node, run):
        return ask(node.address, "GET", f"/v1/runs/{run}")["status"]

    def test_a_run_that_waits_is_held_by_nobody_and_moves(self):
        first, second = self.nodes[:2]
        run = ask(first.address, "POST", "/v1/runs", REQUEST)["id"]
        until(lambda: self.status(second, run) == "waiting", "the run waits")
        held = f"SELECT h.holder FROM head h JOIN run r ON r.no = h.run WHERE r.id = '{run}'"
        until(lambda: self.postgres.sql(held) == [[""]], "its lease is released")
        self.assertEqual(self.postgres.sql("SELECT open_runs()"), [["0"]])

        first.kill()
        listed = ask(second.address, "GET", "/v1/approvals")["approvals"]
        self.assertEqual([(one["run"], one["number"]) for one in listed], [(run, 1)])
        path = f"/v1/runs/{run}/approvals"
        decided = ask(second.address, "POST", f"{path}/1", {"verdict": "accept"})
        self.assertEqual(decided["decision"]["verdict"], "accept")

        until(lambda: len(ask(second.address, "GET", path)["approvals"]) == 2, "the next step waits")
        until(lambda: self.status(second, run) == "waiting", "the run waits again")
        ask(self.nodes[2].address, "POST", f"{path}/2", {"verdict": "accept"})
        until(lambda: self.status(second, run) == "verified", "the run ends")
        record = ask(second.address, "GET", f"/v1/runs/{run}")
        self.assertEqual((record["steps"], record["approvals"]["accepted"]), (5, 2))

    def test_a_decision_reaches_the_node_that_executes_the_run(self):
        # The second trajectory keeps the run in the memory of its node for hours.
        long = {"task": "tower-of-hanoi", "input": {"n": 32, "from": 0, "to": 2}, "fanout": 2, "max_rounds": 1}
        request = {**long, "approve": "step.trajectory == 0 && step.depth == 0", "agents": {"executor": "reference"}}
        first, second = self.nodes[:2]
        run = ask(first.address, "POST", "/v1/runs", request)["id"]
        path = f"/v1/runs/{run}/approvals"
        until(lambda: ask(second.address, "GET", path)["approvals"], "a step waits")
        self.assertEqual(self.status(second, run), "running")
        ask(second.address, "POST", f"{path}/1", {"verdict": "accept"})
        until(
            lambda: ask(first.address, "GET", f"/v1/runs/{run}").get("approvals", {}).get("accepted") == 1,
            "the step is committed",
        )
        ask(second.address, "POST", f"/v1/runs/{run}/cancel")
        until(lambda: self.status(first, run) == "cancelled", "the run ends")


if __name__ == "__main__":
    import unittest

    unittest.main()
