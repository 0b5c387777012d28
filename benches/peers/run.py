#!/usr/bin/env python3
"""Sends one and the same step through many frameworks and through prime-agents, in turn, and compares.

    make peers                                builds what is needed and calls this
    python3 benches/peers/run.py --help

Prints the table and whether the promises of docs/coordination.md hold; writes both to results.md, and all that was
measured to results.json. Standard library only. Exits 0; with --check 3 if a promise does not hold; 2 on wrong usage.
"""

import argparse
import datetime
import json
import os
import re
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from figures import Figures
from machine import machine, versions
from page import NoMarks, conditions, with_block
from plot import plot
from programs import environment, measure
from promises import promises
from rows import ROWS
from table import promise_table, table

DOCS = Path(__file__).resolve().parents[2] / "docs"
PICTURE = "coordination.svg"


def parsed(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prime", type=Path, help="the executable prime-agents")
    parser.add_argument("--programs", type=Path, help="the folder with the built programs of the Rust rows")
    parser.add_argument("--python", type=Path, help="the Python with the packages of requirements.txt")
    parser.add_argument("--out", type=Path, required=True, help="where results and everything that rows write go")
    parser.add_argument("--quick", action="store_true", help="two fifths of the steps, one round")
    parser.add_argument("--rounds", type=_positive, help="rounds, each of which measures all rows (3; 1 with --quick)")
    parser.add_argument("--only", metavar="REGEX", help="only rows whose name matches")
    parser.add_argument("--limit", type=_positive, default=90, help="seconds for a row in a round")
    parser.add_argument("--again", type=Path, metavar="FILE", help="measure nothing: take an earlier results.json")
    parser.add_argument("--check", action="store_true", help="exit 3 if a promise does not hold")
    parser.add_argument("--docs", action="store_true", help=f"write the figures into {DOCS.name}/coordination.md too")
    parser.add_argument("--docs-folder", type=Path, default=DOCS, help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if not options.again and not (options.prime and options.programs and options.python):
        parser.error("--prime, --programs and --python are needed to measure (`make peers` names them)")
    if options.only and (options.docs or options.check):
        parser.error("--docs and --check are about all rows: leave --only out")
    try:
        options.rows = [row for row in ROWS if not options.only or re.search(options.only, row.label)]
    except re.error as error:
        parser.error(f"--only {options.only!r} is not a regular expression: {error}")
    if not options.rows:
        parser.error(f"--only {options.only!r} matches no row; rows are: " + "; ".join(row.label for row in ROWS))
    for name in ("prime", "programs", "python"):
        # A virtual environment's Python is a link that must be called by its own name: not resolved.
        path = getattr(options, name)
        setattr(options, name, path and Path(os.path.abspath(path)))
    options.out = options.out.resolve()
    options.scale = 0.4 if options.quick else 1.0
    options.rounds = options.rounds or (1 if options.quick else 3)
    return options


def _positive(word):
    number = int(word)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is below 1")
    return number


def measured(options):
    """All rounds of all rows, as results.json holds them."""
    # Sockets have short paths.
    ray = tempfile.mkdtemp(prefix="peers-")
    env = environment(options.out, ray)
    rounds, loads, start = [], [], time.monotonic()
    try:
        for number in range(options.rounds):
            found = {}
            # There and back, so that what drifts does not favour the first rows.
            for row in options.rows if number % 2 == 0 else reversed(options.rows):
                loads.append(os.getloadavg()[0])
                found[row.label] = measure(row, options, env)
                said = found[row.label].get("error", "done")
                seconds = time.monotonic() - start
                print(f"{seconds:6.1f} s, round {number + 1} of {options.rounds}: {row.label}: {said}", file=sys.stderr)
            rounds.append(found)
    finally:
        shutil.rmtree(ray, ignore_errors=True)
        shutil.rmtree(options.out / "data", ignore_errors=True)
    facts = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "machine": machine(),
        "versions": {**versions(), **_our_version(rounds)},
        "rounds": options.rounds,
        "scale": options.scale,
        "load_average": [min(loads), statistics.median(loads), max(loads)],
        "seconds": time.monotonic() - start,
    }
    return {"facts": facts, "rounds": rounds}


def _our_version(rounds):
    said = {entry["version"] for one in rounds for entry in one.values() if "version" in entry}
    return {"prime-agents": ", ".join(sorted(said))} if said else {}


def main(words=None):
    options = parsed(words)
    results = json.loads(options.again.read_text()) if options.again else measured(options)
    figures, facts = Figures(results["rounds"]), results["facts"]
    promised = list(promises(figures, options.rows))
    results["promises"] = [{"what": one.what, "value": one.value, "holds": one.holds} for one in promised]
    rows = table(figures, options.rows, facts["versions"])
    text = "\n\n".join([conditions(facts), rows, promise_table(promised)]) + "\n"
    print(text)
    if not options.again:
        # A run of some rows does not overwrite one of all.
        name = "results-only" if options.only else "results"
        (options.out / f"{name}.md").write_text(text)
        (options.out / f"{name}.json").write_text(json.dumps(results, indent=1) + "\n")
        print(f"written: {options.out / name}.md and .json", file=sys.stderr)
    if options.docs:
        page = options.docs_folder / "coordination.md"
        picture = f"![Steps a second of each framework]({PICTURE})"
        try:
            page.write_text(with_block(page.read_text(), f"{picture}\n\n{text}"))
        except NoMarks as error:
            print(f"{page} {error}", file=sys.stderr)
            return 2
        (options.docs_folder / PICTURE).write_text(plot(figures))
        print(f"written: {page} and {PICTURE} beside it", file=sys.stderr)
    broken = [one.what for one in promised if not one.holds]
    if options.check and broken:
        print("does not hold:\n  " + "\n  ".join(broken), file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
