"""The generated blocks of docs/coordination.md and docs/results/load-test.md: what stands between two marks is written again, the rest is left.

    page.py PAGE NAME FILE        the block of this name becomes what is in FILE
"""

import pathlib
import sys


def marks(name):
    """Before and after the block of this name."""
    return f"<!-- figures: {name} -->", f"<!-- end of figures: {name} -->"


# The name of the block that run.py writes.
PEERS = "peers"
BEGIN, END = marks(PEERS)


class NoMarks(Exception):
    """The page has no place for the block."""


def with_block(text, block, name=PEERS):
    """The page with this block."""
    begin, end = marks(name)
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise NoMarks(f"needs `{begin}` and after it `{end}`, each once and on a line of its own")
    before, after = text[: text.index(begin)], text[text.index(end) :]
    return f"{before}{begin}\n{block.strip()}\n{after}"


def conditions(facts):
    """In sentences: when, on what, how."""
    machine, load = facts["machine"], facts["load_average"]
    memory = f", {machine['memory_gib']} GiB" if machine["memory_gib"] else ""
    rounds = f"{facts['rounds']} round{'s' if facts['rounds'] != 1 else ''}"
    least, middle, most = (f"{value:.2f}" for value in load)
    return (
        f"{facts['date']}, {machine['cores']} cores of {machine['processor']}{memory}, {machine['system']}. {rounds}, "
        f"{facts['scale']:.0%} of the steps; load average {middle} ({least} to {most}); {facts['seconds']:.0f} s."
    )


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    page, block = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[3]).read_text()
    page.write_text(with_block(page.read_text(), block, sys.argv[2]))
