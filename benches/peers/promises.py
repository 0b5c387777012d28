"""What docs/coordination.md promises, with the bound, and whether it holds in these rounds."""

from dataclasses import dataclass
from operator import ge, le

from figures import ratio
from rows import ACTIX_ONE, ACTIX_OWN, CELL, CELL_A_CORE, JOURNAL, LANGGRAPH_SQLITE, MANY, OWN_ARBITERS

TIMES = "×"


@dataclass(frozen=True)
class Promise:
    what: str
    # None if a row that it needs has no figures.
    value: float | None
    # "≤" or "≥".
    relation: str
    bound: float
    unit: str

    @property
    def holds(self):
        """What was not measured is not known to hold."""
        compare = {"≤": le, "≥": ge}[self.relation]
        return self.value is not None and compare(self.value, self.bound)


def promises(figures, rows):
    """All of them; `rows` says which frameworks there are."""

    def steps(label, phase):
        return figures.values(label, phase, "steps_per_s")

    def p50(label):
        return figures.values(label, "seq", "p50_us")

    committed = steps(JOURNAL, "shared1000")
    yield Promise(f"p50 of a step: {CELL}", figures.median(CELL, "seq", "p50_us"), "≤", 3.0, " µs")
    of_actix = ratio(steps(CELL, "shared1000"), steps(ACTIX_ONE, "shared1000"))
    yield Promise(f"steps a second at 1,000 trajectories: {CELL} ÷ {ACTIX_ONE}", of_actix, "≥", 0.2, TIMES)
    slower = ratio(p50(OWN_ARBITERS), p50(ACTIX_OWN))
    yield Promise(f"p50 of a step: {OWN_ARBITERS} ÷ {ACTIX_OWN}", slower, "≤", 1.5, TIMES)
    durable = figures.median(JOURNAL, "shared1000", "steps_per_s")
    yield Promise(f"committed steps a second at 1,000 trajectories: {JOURNAL}", durable, "≥", 150_000.0, "")
    of_langgraph = ratio(committed, figures.best(LANGGRAPH_SQLITE))
    yield Promise(f"the same ÷ the best column of {LANGGRAPH_SQLITE}", of_langgraph, "≥", 500.0, TIMES)
    for label in (CELL, CELL_A_CORE):
        at_many = ratio(steps(label, MANY), steps(label, "shared1000"))
        yield Promise(f"steps a second at 10,000 ÷ at 1,000 trajectories: {label}", at_many, "≥", 0.8, TIMES)
    idle = figures.median(CELL, MANY, "bytes_per_trajectory")
    yield Promise(f"heap for each of 10,000 trajectories: {CELL}", idle, "≤", 4096.0, " bytes")
    for row in rows:
        if row.language == "python" and not row.is_floor:
            label = JOURNAL if row.is_durable else CELL_A_CORE
            of_row = ratio(figures.best(label), figures.best(row.label))
            yield Promise(f"best column: {label} ÷ {row.label}", of_row, "≥", 100.0, TIMES)
