"""The generated block of docs/coordination.md: what stands between its two marks is written again, the rest is left."""

BEGIN, END = "<!-- figures: peers -->", "<!-- end of figures: peers -->"


class NoMarks(Exception):
    """The page has no place for the block."""


def with_block(text, block):
    """The page with this block."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise NoMarks(f"needs `{BEGIN}` and after it `{END}`, each once and on a line of its own")
    before, after = text[: text.index(BEGIN)], text[text.index(END) :]
    return f"{before}{BEGIN}\n{block.strip()}\n{after}"


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
