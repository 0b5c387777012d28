"""Runs that move between nodes on PostgreSQL and a daemon with a journal of its own."""

import json
import tempfile
import unittest
import urllib.error
import urllib.request

import test_cluster
from cluster import PRIME

from harness import PATIENCE_S, Daemon, ask, finished

QUEENS = {"task": "n-queens", "index": 3, "fanout": 1}
SHORT = {"task": "tower-of-hanoi", "input": {"n": 5, "from": 0, "to": 2}, "fanout": 1}


def fetched(server, path):
    with urllib.request.urlopen(server.url + path, timeout=PATIENCE_S) as response:
        return response.read()


def imported(server, bundle):
    """The status and the record, or the error, of an import."""
    request = urllib.request.Request(server.url + "/v1/runs/import", data=bundle, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def records(bundle):
    """The spec and the events of a bundle, without its head and its end."""
    return bundle.splitlines()[1:-1]


class Transfer(test_cluster.Cluster):
    def test_a_run_moves_into_a_cluster_and_out_of_it_with_its_chain(self):
        first, second, third = self.nodes
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        with Daemon(PRIME, "agents.executor.implementation=reference", folder=folder.name) as alone:
            run = ask(alone.address, "POST", "/v1/runs", QUEENS, timeout=PATIENCE_S)["id"]
            _, record = finished(alone.address, run)
            bundle = fetched(alone, f"/v1/runs/{run}/export")

            status, arrived = imported(first, bundle)
            self.assertEqual((status, arrived["chain"]), (201, record["chain"]), arrived)
            # Every node has it, and none executes it.
            seen = ask(second.address, "GET", f"/v1/runs/{run}", timeout=PATIENCE_S)
            self.assertEqual((seen["status"], seen["answer"]), (record["status"], record["answer"]))
            self.assertEqual(seen["imported"], arrived["imported"])
            self.assertEqual(imported(second, bundle)[0], 200)
            self.assertEqual(records(fetched(second, f"/v1/runs/{run}/export")), records(bundle))
            [[held]] = self.postgres.sql("SELECT count(*) FROM head WHERE is_open")
            self.assertEqual(held, "0")

            broken = bundle.replace(b'"event":"started"', b'"event":"stirred"', 1)
            status, refused = imported(second, broken)
            self.assertEqual((status, refused["error"]["code"]), (422, "bad_bundle"))
            self.assertIn("record 1 ", refused["error"]["message"])

            # A retry of it is a run of the cluster like any other.
            body = {"force": True}
            retry = ask(second.address, "POST", f"/v1/runs/{run}/retry", body, timeout=PATIENCE_S)
            _, again = finished(second.address, retry["id"])
            self.assertEqual((again["retry_of"], again["status"]), (run, "verified"))

            # And out of it.
            run = ask(first.address, "POST", "/v1/runs", SHORT, timeout=PATIENCE_S)["id"]
            _, record = finished(first.address, run)
            bundle = fetched(second, f"/v1/runs/{run}/export")
            status, arrived = imported(alone, bundle)
            self.assertEqual((status, arrived["chain"]), (201, record["chain"]), arrived)
            self.assertEqual(records(fetched(alone, f"/v1/runs/{run}/export")), records(bundle))


if __name__ == "__main__":
    unittest.main()
