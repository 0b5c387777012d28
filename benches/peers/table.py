"""Everything that was measured, as markdown."""

from figures import ratio
from rows import CELL_A_CORE, COLUMNS, JOURNAL

HEADER = (
    "| | version | p50 µs | p99 µs | steps/s | CPU µs/step | 64 shared | 1,000 shared | 64 own | 1,000 own "
    "| p50 ÷ ours | steps/s: ours ÷ its |"
)
NOTHING = "–"


def count(value):
    """A count or a rate, to three digits or so."""
    if value is None:
        return NOTHING
    if value >= 1e6:
        return f"{value / 1e6:.2f} M"
    if value >= 1e4:
        return f"{value / 1e3:.0f} k"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def micros(value):
    if value is None:
        return NOTHING
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def factor(value):
    """A ratio."""
    if value is None:
        return NOTHING
    return f"{value:,.0f}×" if value >= 100 else f"{value:.3g}×"


def cell(text):
    """Text that may come from a program, in a cell of a table."""
    return " ".join(text.replace("|", "/").split())


def table(figures, rows, versions):
    """One line a row; then why some have no figures."""
    lines = [HEADER, "|" + " --- |" * 2 + " ---: |" * 10]
    for row in rows:
        reference = JOURNAL if row.is_durable else CELL_A_CORE
        slower = ratio(figures.values(row.label, "seq", "p50_us"), figures.values(reference, "seq", "p50_us"))
        fewer = ratio(figures.best(reference), figures.best(row.label))
        cells = [
            f"**{row.label}**" if row.is_ours else row.label,
            versions.get(row.package) or "?",
            micros(figures.median(row.label, "seq", "p50_us")),
            micros(figures.median(row.label, "seq", "p99_us")),
            count(figures.median(row.label, "seq", "steps_per_s")),
            micros(figures.median(row.label, "seq", "cpu_us_per_step")),
            *(count(figures.median(row.label, column, "steps_per_s")) for column in COLUMNS[1:]),
            factor(slower),
            factor(fewer),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    errors = [(row.label, figures.error(row.label)) for row in rows]
    failed = [f"- No figures of {label}: {cell(error)}" for label, error in errors if error]
    return "\n".join(lines + ([""] + failed if failed else []))


def promise_table(promises):
    """What is promised, what was measured, and whether that is enough."""
    lines = ["| promised | bound | measured | holds |", "| --- | ---: | ---: | --- |"]
    for promise in promises:
        bound = f"{promise.relation} {promise.bound:,g}{promise.unit}"
        value = "not measured" if promise.value is None else f"{_digits(promise.value)}{promise.unit}"
        holds = NOTHING if promise.value is None else "yes" if promise.holds else "**no**"
        lines.append(f"| {promise.what} | {bound} | {value} | {holds} |")
    return "\n".join(lines)


def _digits(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
