"""The daemon in the eyes of tools that read its document and its metrics: `clients.py EXECUTABLE`.

openapi-python-client makes a client of every route, a real trace follows the schema of its lines, and Prometheus' own
parsers read the metrics in both formats.
"""

import importlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema_rs
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as text_families
from run import SETTINGS

from harness import Daemon, ask, finished, program
from harness.client import text

# openapi-python-client knows neither JSON Lines nor OpenMetrics: it is to take both for plain content.
CONFIGURATION = """\
post_hooks: []
content_type_overrides:
  application/jsonl: application/octet-stream
  application/openmetrics-text: text/plain
"""


def solved(daemon):
    """The id of a run that is over, whose scripted executor has made errors."""
    run = ask(daemon.address, "POST", "/v1/runs", {"task": "bubble-sort", "index": 3, "fanout": 2})["id"]
    finished(daemon.address, run)
    return run


def trace(daemon, run):
    """The lines of a run's trace."""
    return [json.loads(line) for line in text(daemon.address, f"/v1/runs/{run}/trace").splitlines()]


def generated(daemon, document):
    """Every route has a function, every schema a type, and the types hold what the daemon sends."""
    folder = daemon.folder
    (folder / "openapi.json").write_text(json.dumps(document))
    (folder / "configuration.yaml").write_text(CONFIGURATION)
    command = [
        *(Path(sys.executable).with_name("openapi-python-client"), "generate", "--meta", "none"),
        *("--path", folder / "openapi.json", "--output-path", folder / "client"),
        *("--config", folder / "configuration.yaml", "--fail-on-warning"),
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said

    modules = {path.stem for path in (folder / "client" / "api").rglob("*.py")}
    for path, item in document["paths"].items():
        for method, operation in item.items():
            assert operation["operationId"] in modules, f"{method} {path} has no function: {said}"

    sys.path.insert(0, str(folder))
    models = importlib.import_module("client.models")
    run = solved(daemon)
    record = ask(daemon.address, "GET", f"/v1/runs/{run}")
    read = models.RunRecord.from_dict(record)
    # It writes times in another form.
    times = {name: getattr(read, name).isoformat() for name in ["created_at", "updated_at"]}
    assert read.to_dict() == record | times

    for line in trace(daemon, run):
        # Each kind of line is a type of its own, named after the event.
        words = line["event"].title().replace("_", "")
        kind = getattr(models, f"TraceRecord{words}")
        assert kind.from_dict(line).to_dict() == line


def traced(daemon, document):
    """The lines of a trace follow the document."""
    schema = {"$ref": "#/components/schemas/TraceRecord", "components": document["components"]}
    validator = jsonschema_rs.Draft202012Validator(schema)

    kinds = set()
    for line in trace(daemon, solved(daemon)):
        validator.validate(line)
        kinds.add(line["event"])

    assert {"accepted", "started", "step", "trajectory_ended", "voted", "finished"} <= kinds, kinds
    # A schema that accepts everything would have passed too.
    assert not validator.is_valid({"seq": 1, "event": "step"}), "a step has more fields"


def measured(daemon, _):
    """Prometheus reads the same series from both formats."""

    def samples(families):
        return {sample.name for family in families for sample in family.samples}

    openmetrics = text(daemon.address, "/metrics", "application/openmetrics-text; version=1.0.0")
    plain = text(daemon.address, "/metrics")
    series = samples(text_families(plain))
    assert series == samples(openmetrics_families(openmetrics)) and "prime_runs_total" in series, series

    # Prometheus' own checker, where it is installed.
    if promtool := shutil.which("promtool"):
        subprocess.run([promtool, "check", "metrics"], check=True, input=plain, text=True)


def main():
    settings = [*SETTINGS, "agents.executor.implementation=scripted", "run.budget.steps=100000"]
    with Daemon(program(sys.argv[1]), *settings) as daemon:
        document = ask(daemon.address, "GET", "/openapi.json")
        for check in [generated, traced, measured]:
            check(daemon, document)
            print(f"ok  {check.__name__}")


if __name__ == "__main__":
    main()
