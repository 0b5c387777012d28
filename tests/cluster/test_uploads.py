"""Task modules that are uploaded at one node, and runs of them at others."""

import json
import unittest
import urllib.request

import test_cluster

from harness import PATIENCE_S, Refused, ask, until

TASK = {"name": "endless", "statement": "Go on."}
START = {"id": 1, "state": 0, "choices": ["go"], "steps_max": 1_000_000}
STEP = {"id": 1, "state": 0, "choices": ["go"]}
# Bytes of a request for the start of the input {}.
START_BYTES = 20


def unsigned(number):
    """A number in LEB128."""
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + unsigned(rest) if rest else bytes([low])


def signed(number):
    """A number of 0 or more in signed LEB128."""
    low, rest = number & 0x7F, number >> 7
    return bytes([low]) if not rest and low < 0x40 else bytes([low | 0x80]) + signed(rest)


def vector(items):
    return unsigned(len(items)) + b"".join(items)


def section(kind, content):
    return bytes([kind]) + unsigned(len(content)) + content


def module(task):
    """A WebAssembly module that answers the handshake, a start, and each step with the same text."""
    i32, i64 = b"\x7f", b"\x7e"
    texts = [json.dumps(text).encode() for text in ({"prime": 1, "task": task}, START, STEP)]
    places = [at * 512 for at in range(len(texts))]
    hello, start, step = (b"\x42" + signed((at << 32) | len(text)) for at, text in zip(places, texts, strict=True))

    alloc = b"\x41" + signed(1 << 16) + b"\x0b"
    # The third byte of a handshake is the p of "prime"; a request for a start is shorter than one for a step.
    is_hello = b"\x20\x00\x2d\x00\x02\x41" + signed(ord("p")) + b"\x46"
    is_start = b"\x20\x01\x41" + signed(START_BYTES) + b"\x46"
    answer = is_hello + b"\x04\x40" + hello + b"\x0f\x0b" + is_start + b"\x04\x40" + start + b"\x0f\x0b" + step + b"\x0b"

    types = vector([b"\x60" + vector([i32]) + vector([i32]), b"\x60" + vector([i32, i32]) + vector([i64])])
    exports = [("memory", b"\x02\x00"), ("alloc", b"\x00\x00"), ("answer", b"\x00\x01")]
    named = [unsigned(len(name)) + name.encode() + what for name, what in exports]
    bodies = [unsigned(len(code) + 1) + b"\x00" + code for code in (alloc, answer)]
    data = [
        b"\x00\x41" + signed(at) + b"\x0b" + unsigned(len(text)) + text for at, text in zip(places, texts, strict=True)
    ]
    sections = [(1, types), (3, vector([b"\x00", b"\x01"])), (5, vector([b"\x00\x02"])), (7, vector(named))]
    sections += [(10, vector(bodies)), (11, vector(data))]
    return b"\0asm\x01\0\0\0" + b"".join(section(kind, content) for kind, content in sections)


class Uploads(test_cluster.Cluster):
    sets = ('server.allow_executors=["uniform"]',)

    def send(self, node, method, path, body=None):
        request = urllib.request.Request(node.url + path, data=body, method=method)
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
            return response.read()

    def test_a_run_goes_on_at_another_node_with_the_module_that_it_was_accepted_with(self):
        first, second, third = self.nodes
        uploaded = json.loads(self.send(first, "POST", "/v1/tasks", module(TASK)))
        self.assertEqual(uploaded["task"], "endless")

        # Another node knows the task at once.
        page = ask(second.address, "GET", "/v1/tasks/endless", timeout=PATIENCE_S)
        self.assertEqual(page["module"]["digest"], uploaded["digest"])
        body = {"task": "endless", "input": {}, "fanout": 1, "agents": {"executor": "uniform"}}
        run = ask(first.address, "POST", "/v1/runs", body, timeout=PATIENCE_S)["id"]

        def steps(node):
            return ask(node.address, "GET", f"/v1/runs/{run}", timeout=PATIENCE_S)["steps"]

        until(lambda: steps(first) >= 20, "the run begins")
        other = module({**TASK, "statement": "Stop."})
        self.send(second, "POST", "/v1/tasks", other)
        self.send(third, "DELETE", "/v1/tasks/endless")
        with self.assertRaises(Refused):
            ask(second.address, "GET", "/v1/tasks/endless", timeout=PATIENCE_S)

        holder = (
            "SELECT n.name FROM head h JOIN run r ON r.no = h.run JOIN node n ON n.id = h.holder "
            f"WHERE r.id = '{run}'"
        )
        [[name]] = self.postgres.sql(holder)
        killed = next(node for node in self.nodes if name.endswith(f":{node.process.pid}"))
        living = next(node for node in self.nodes if node is not killed)
        before = steps(living)
        killed.kill()
        until(lambda: self.postgres.sql(holder) not in ([], [[name]]), "another node takes the run")
        until(lambda: steps(living) > before + 20, "the run continues")
        ask(living.address, "POST", f"/v1/runs/{run}/cancel", timeout=PATIENCE_S)
        record = lambda: ask(living.address, "GET", f"/v1/runs/{run}", timeout=PATIENCE_S)  # noqa: E731
        until(lambda: record()["status"] == "cancelled", "the run ends")


if __name__ == "__main__":
    unittest.main()
