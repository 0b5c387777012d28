"""Samples of the roles that judge and decide, as the program asks their models.

A verifier with `verdict = "token"` is shown the executor's compact prompt and the proposed line,
and answers `1` (right) or `0`. A coordinator is shown `coordinator/decide.j2` for steps with
violations.
"""

import collections
import json
import pathlib

import jinja2

from . import rows
from .errors import InputError

TEMPLATES = pathlib.Path(__file__).resolve().parents[3] / "agents"
DECISIONS = {"proceed": "Proceed", "retry": "Retry", "backtrack": "Backtrack"}
# `history_steps` of a coordinator, and the thresholds of a run, as they are by default.
# `thresholds.json` beside the traces has those of the runs, where they were others.
HISTORY = 8
THRESHOLDS = {"tau_soft": 0.3, "tau_hard": 0.3, "retries_max": 2}


def chat(asked, answer, row):
    return {
        "prompt": [{"role": "user", "content": asked}],
        "completion": [{"role": "assistant", "content": answer}],
    } | {name: row[name] for name in rows.NAMES}


def verifier_rows(folder):
    """Labelled steps (`bench export --labelled-steps --format parquet`, in `labelled`) with the
    prompts of their states (`data sft --steps 1000000`, in `prompts`), of one base seed."""
    folder = pathlib.Path(folder)
    prompts = {
        (row["task"], row["difficulty"], row["index"], row["step"]): row
        for row in rows.chats(rows.read(folder / "prompts"), folder / "prompts")
    }
    made, inputs = [], {}
    for row in rows.read(folder / "labelled"):
        if row.get("label") not in ("right", "wrong"):
            raise InputError(f"{folder}/labelled has no labels: write it with --labelled-steps")
        found = prompts.get((row["task"], row["difficulty"], row["index"], row["step"]))
        if found is None:
            # Lessons leave out states whose derivations are too long.
            continue
        name = tuple(found[part] for part in rows.NAMES)
        if name not in inputs:
            from .tasks import Instance

            inputs[name] = Instance(*name).input
        if inputs[name] != json.loads(row["input"]):
            raise InputError(f"{folder}: labelled and prompts differ in their base seed")
        asked = f"check {found['prompt'][0]['content']}{row['line']}\n"
        made.append(chat(asked, "1" if row["label"] == "right" else "0", found))
    if not made:
        raise InputError(f"{folder}: no labelled step has a prompt; both need the same instances")
    return made


def coordinator_rows(folder):
    """Decisions of recorded runs: traces that `run --trace` wrote as
    TASK.DIFFICULTY.INDEX.BASE_SEED.jsonl."""
    files = sorted(pathlib.Path(folder).glob("*.jsonl"))
    if not files:
        raise InputError(f"{folder} has no trace: write some with `prime-agents run --trace`")
    note, thresholds = pathlib.Path(folder) / "thresholds.json", THRESHOLDS
    if note.exists():
        thresholds = json.loads(note.read_text())
        if sorted(thresholds) != sorted(THRESHOLDS):
            raise InputError(f"{note} must have {', '.join(THRESHOLDS)}, and nothing else")
    return [row for path in files for row in decisions(path, thresholds)]


def instance_of(path):
    parts = path.name.removesuffix(".jsonl").split(".")
    if len(parts) != 4 or not (parts[2].isdigit() and parts[3].isdigit()):
        raise InputError(f"{path}: its name must be TASK.DIFFICULTY.INDEX.BASE_SEED.jsonl")
    return dict(zip(rows.NAMES, (parts[0], parts[1], int(parts[2]), int(parts[3])), strict=True))


class Walk:
    """A trajectory from its trace: the states of its stack, and the lines proposed in each."""

    def __init__(self, env):
        self.stack, self.lines = [env], []
        self.retries, self.rejected = [0], [[]]

    def at(self, depth):
        """Goes back to a state of the stack."""
        for part in (self.stack, self.retries, self.rejected):
            del part[depth + 1 :]
        del self.lines[depth:]

    def proceed(self, line):
        env = self.stack[-1].fork()
        env.step(line)
        self.stack.append(env)
        self.lines.append(line)
        self.retries.append(0)
        self.rejected.append([])


def decisions(path, thresholds):
    """The decisions on steps with violations, with the coordinator's view of each."""
    from .tasks import Instance, StepEnv
    from .tasks import task as page

    row = instance_of(path)
    shown = page(row["task"])
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    template = templates.get_template("coordinator/decide.j2")
    instance = Instance(*(row[name] for name in rows.NAMES))
    walks = collections.defaultdict(lambda: Walk(StepEnv(instance)))
    made = []
    for number, text in enumerate(path.read_text().splitlines(), start=1):
        try:
            event = json.loads(text)
        except ValueError as error:
            raise InputError(f"{path}:{number}: not a line of a trace: {error}") from error
        if event.get("event") != "step" or event.get("decision") not in DECISIONS:
            continue

        walk = walks[(event["round"], event["trajectory"])]
        if event["depth"] > len(walk.lines):
            raise InputError(f"{path}:{number}: a step at depth {event['depth']} without its past")
        walk.at(event["depth"])
        allowed = "backtrack" if event["score"] > thresholds["tau_hard"] else event["decision"]
        if event["decision"] != allowed:
            raise InputError(
                f"{path}:{number}: {event['decision']} at V = {event['score']}: the run had other "
                "thresholds than the prompt would show; give them in thresholds.json"
            )
        if event["score"] > 0:
            steps = walk.lines[-HISTORY:]
            asked = template.render(
                task={"title": shown.title, "algorithm": shown.algorithm},
                state=walk.stack[-1].observation,
                steps=steps,
                step_offset=len(walk.lines) - len(steps),
                action=event["action"],
                score=event["score"],
                violations=event["violations"],
                feedback=event.get("feedback"),
                needs_review=event.get("needs_review", False),
                retries=walk.retries[-1],
                rejected=walk.rejected[-1],
                **thresholds,
            )
            made.append(chat(asked, DECISIONS[event["decision"]], row))

        if event["decision"] == "proceed":
            walk.proceed(event["action"])
        elif event["decision"] == "retry":
            walk.retries[-1] += 1
        else:
            walk.rejected[-1].append(event["action"])
    return made
