"""NeMo Gym collects rollouts in our environments as docs/interop.md says: `resources_server.py PRIME`.

Its launcher, its agent and its client of models are the package's own. The model is a server of this test that writes the
reference's lines, or a wrong one before them.
"""

import http.server
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import threading

from pages import program, programs, sections

from prime_bench import StepEnv
from prime_bench.dataset import instance_of

# The servers of the configuration on the page. Each has an environment of its own, for which this test gives its own.
SERVERS = (
    "resources_servers/prime",
    "responses_api_agents/gymnasium_agent",
    "responses_api_models/openai_model",
    "environment_servers/legacy_agent",
)
ENVIRONMENT = pathlib.Path(sys.prefix)


def shell(prime, folder):
    return {
        **os.environ,
        "PATH": f"{programs(prime, folder)}:{ENVIRONMENT / 'bin'}:{os.environ['PATH']}",
        "VIRTUAL_ENV": str(ENVIRONMENT),
        "HF_HOME": str(folder / "hf"),
        "HF_HUB_OFFLINE": "1",
        "WANDB_MODE": "disabled",
        "RAY_USAGE_STATS_ENABLED": "0",
    }


def prepared(variables, work):
    """The folder as the page's blocks leave it, and the command at their end."""
    command = None
    for kind, block in dict(sections())["NeMo Gym"]:
        if kind == "gym":
            command = shlex.split(block.replace("\\\n", " "))
        elif kind in ("sh", "python"):
            # What `pip install` would install is here already; pages.py runs that line too.
            block = "\n".join(line for line in block.splitlines() if not line.startswith("pip install"))
            run = ["bash", "-eu", "-c", block] if kind == "sh" else [sys.executable, "-c", block]
            subprocess.run(run, cwd=work, env=variables, check=True, capture_output=True)
    assert command and command[0] == "gym", command
    return command


class Model(http.server.ThreadingHTTPServer):
    """Answers `/v1/responses` with what is planned for a conversation's next turn."""

    def __init__(self, plans):
        super().__init__(("127.0.0.1", 0), Answer)
        self.plans, self.seen = plans, []

    def answer(self, items):
        first, *others = items
        said = [item for item in others if item["role"] == "assistant"]
        # The state is in the prompt: nothing is added before the first turn, and one message after each.
        assert [item["role"] for item in others] == ["assistant", "user"] * len(said), items
        self.seen.append(len(items))
        return f"I think.\n{self.plans[first['content']][len(said)]}"


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = self.server.answer(body["input"])

        content = [{"type": "output_text", "text": text, "annotations": []}]
        message = {"id": "message", "type": "message", "role": "assistant", "status": "completed", "content": content}
        choices = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
        data = {"id": "response", "object": "response", "created_at": 0.0, "model": "script", "output": [message], **choices}

        encoded = json.dumps(data).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(encoded)))
        self.end_headers()
        self.wfile.write(encoded)


def collected(command, variables, work, url):
    """The rollouts that NeMo Gym writes."""
    for server in SERVERS:
        (work / "venvs" / server).mkdir(parents=True)
        (work / "venvs" / server / ".venv").symlink_to(ENVIRONMENT)
    # The page's command, with this test's model, and with its own environment instead of new ones.
    own = ["--model-url", url, "--model-api-key", "none", "+skip_venv_if_present=true", f"+uv_venv_dir={work / 'venvs'}"]
    done = subprocess.run([*command, *own], cwd=work, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-5000:]}\n{done.stderr[-5000:]}"
    return [json.loads(line) for line in (work / "rollouts.jsonl").read_text().splitlines()]


def main(prime):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        work = folder / "work"
        work.mkdir()
        variables = shell(prime, folder)
        command = prepared(variables, work)
        # Three rows are enough, one of them with a wrong line first.
        rows = [json.loads(line) for line in (work / "prime.jsonl").read_text().splitlines()][:3]
        (work / "prime.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))

        instances, lines = {}, {}
        for place, row in enumerate(rows):
            (message,) = row["responses_create_params"]["input"]
            instances[message["content"]] = instance_of(row)
            lines[message["content"]] = (["nonsense"] if place == 1 else []) + instance_of(row).reference()
        assert len(lines) == len(rows), "prompts tell the rows apart"

        with Model(lines) as model:
            threading.Thread(target=model.serve_forever, daemon=True).start()
            rollouts = collected(command, variables, work, f"http://127.0.0.1:{model.server_port}/v1")
            model.shutdown()

        assert len(rollouts) == len(rows) and len(model.seen) == sum(map(len, lines.values()))
        for rollout in rollouts:
            prompt = rollout["responses_create_params"]["input"][0]["content"]
            planned, env = lines[prompt], StepEnv(instances[prompt])
            expected = [env.step(line)[1] for line in planned]
            assert rollout["terminated"] and not rollout["truncated"]
            assert rollout["info"]["step_rewards"] == expected and abs(rollout["reward"] - sum(expected)) < 1e-9, rollout
            assert (sum(expected) > 10) == (planned[0] != "nonsense"), expected
    print("ok  NeMo Gym: gym eval run with gymnasium_agent")


if __name__ == "__main__":
    main(program(sys.argv[1]))
