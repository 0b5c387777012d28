"""Messages to a webhook that several nodes send, one of which is killed."""

import http.server
import json
import threading
import unittest

import test_cluster

from harness import PATIENCE_S, ask, until

RUNS = 12
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


class Receiver(http.server.BaseHTTPRequestHandler):
    """Takes messages; while it is `silent`, leaves them without an answer."""

    lock = threading.Lock()
    silent = threading.Event()
    taken: list = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        with self.lock:
            self.taken.append((self.headers["webhook-id"], json.loads(body)["data"]["run"]))
        if self.silent.is_set():
            self.close_connection = True
            threading.Event().wait(PATIENCE_S)
            return
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


SERVER = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
SERVER.daemon_threads = True


def setUpModule():
    threading.Thread(target=SERVER.serve_forever, daemon=True).start()


def tearDownModule():
    SERVER.shutdown()
    SERVER.server_close()


class Webhooks(test_cluster.Cluster):
    sets = (
        f'webhooks.ops={{url="http://127.0.0.1:{SERVER.server_port}/", secret="{SECRET}", allow_private=true, '
        'events=["run.ended"], timeout_ms=1000, retry_ms=[100, 100, 100]}',
    )

    def setUp(self):
        super().setUp()
        Receiver.silent.clear()
        Receiver.taken.clear()

    def submitted(self, node, count):
        body = {"task": "dfa-simulation", "agents": {"executor": "reference"}}
        return [ask(node.address, "POST", "/v1/runs", body, timeout=PATIENCE_S)["id"] for _ in range(count)]

    def told(self):
        with Receiver.lock:
            return list(Receiver.taken)

    def waiting(self):
        [[count]] = self.postgres.sql("SELECT count(*) FROM outbox WHERE due_ms IS NOT NULL")
        return int(count)

    def test_each_end_is_told_once_by_one_of_the_nodes(self):
        runs = [run for node in self.nodes for run in self.submitted(node, RUNS)]
        until(lambda: {run for _, run in self.told()} >= set(runs), "all ends are told")
        until(lambda: self.waiting() == 0, "all messages are settled")
        self.assertEqual(sorted(run for _, run in self.told()), sorted(runs))

    def test_the_messages_of_a_killed_node_are_sent_by_another(self):
        Receiver.silent.set()
        [killed, *living] = self.nodes
        runs = self.submitted(killed, RUNS)
        until(lambda: len(self.told()) > 0, "a message is under way")
        killed.kill()
        Receiver.silent.clear()

        # Those that were claimed come when their claims end.
        until(lambda: {run for _, run in self.told()} >= set(runs), "all ends are told")
        until(lambda: self.waiting() == 0, "the others send what waits")
        told = self.told()
        ids = {run: {id for id, of in told if of == run} for run in runs}
        self.assertTrue(all(len(found) == 1 for found in ids.values()), ids)
        for node in living:
            self.assertNotIn(SECRET, node.said())


if __name__ == "__main__":
    unittest.main()
