"""The daemon in the eyes of tools that read its document and its metrics: `clients.py EXECUTABLE`.

openapi-python-client makes a client of every route, a real trace follows the schema of its lines, and Prometheus' own
parsers read the metrics in both formats.
"""

import importlib
import json
import pathlib
import shutil
import subprocess
import sys
import urllib.request

import jsonschema_rs
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as text_families
from run import PATIENCE, Daemon

# It knows neither JSON Lines nor OpenMetrics: both are texts to it.
CONFIGURATION = """\
post_hooks: []
content_type_overrides:
  application/jsonl: application/octet-stream
  application/openmetrics-text: text/plain
"""


def get(daemon, path, accept="*/*"):
    """The text below this path."""
    request = urllib.request.Request(f"{daemon.url}{path}", headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=PATIENCE) as response:
        return response.read().decode()


def submitted(daemon, run):
    """The id of a run that is over."""
    body = json.dumps(run).encode()
    request = urllib.request.Request(
        f"{daemon.url}/v1/runs", data=body, headers={"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as response:
        name = json.load(response)["id"]
    get(daemon, f"/v1/runs/{name}/events")
    return name


def generated(daemon, document):
    """Every route has a function, every schema a type, and the types hold what the daemon sends."""
    folder = pathlib.Path(daemon.folder.name)
    (folder / "openapi.json").write_text(json.dumps(document))
    (folder / "configuration.yaml").write_text(CONFIGURATION)
    command = [
        *(pathlib.Path(sys.executable).with_name("openapi-python-client"), "generate", "--meta", "none"),
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
    name = submitted(daemon, {"task": "bubble-sort", "index": 3, "fanout": 2})
    record = json.loads(get(daemon, f"/v1/runs/{name}"))
    read = models.RunRecord.from_dict(record)
    # It writes times in another form.
    times = {name: getattr(read, name).isoformat() for name in ["created_at", "updated_at"]}
    assert read.to_dict() == record | times
    for line in map(json.loads, get(daemon, f"/v1/runs/{name}/trace").splitlines()):
        words = line["event"].title().replace("_", "")
        kind = getattr(models, f"TraceRecord{words}")
        assert kind.from_dict(line).to_dict() == line


def traced(daemon, document):
    """The lines of a trace follow the document."""
    schema = {"$ref": "#/components/schemas/TraceRecord", "components": document["components"]}
    validator = jsonschema_rs.Draft202012Validator(schema)
    name = submitted(daemon, {"task": "bubble-sort", "index": 3, "fanout": 2})
    lines = get(daemon, f"/v1/runs/{name}/trace").splitlines()
    kinds = set()
    for line in map(json.loads, lines):
        validator.validate(line)
        kinds.add(line["event"])
    assert {"accepted", "started", "step", "trajectory_ended", "voted", "finished"} <= kinds, kinds
    assert not validator.is_valid({"seq": 1, "event": "step"}), "it says something"


def measured(daemon, _):
    """Prometheus reads the same series from both formats."""

    def samples(families):
        return {sample.name for family in families for sample in family.samples}

    openmetrics = get(daemon, "/metrics", "application/openmetrics-text; version=1.0.0")
    text = get(daemon, "/metrics")
    series = samples(text_families(text))
    assert series == samples(openmetrics_families(openmetrics)) and "prime_runs_total" in series, series
    if promtool := shutil.which("promtool"):
        subprocess.run([promtool, "check", "metrics"], check=True, input=text, text=True)


def main():
    daemon = Daemon(sys.argv[1], ["agents.executor.implementation=scripted", "run.budget.steps=100000"])
    try:
        document = json.loads(get(daemon, "/openapi.json"))
        for check in [generated, traced, measured]:
            check(daemon, document)
            print(f"ok  {check.__name__}")
    finally:
        daemon.end()


if __name__ == "__main__":
    main()
