"""A bar for each framework on a logarithmic scale, as SVG: plain shapes in colours for light and dark."""

import math
from html import escape

from figures import median
from rows import ROWS

WIDTH, LEFT, RIGHT = 860, 210, 90
BAR, GAP, HEAD, PANEL = 16, 6, 50, 40
TEXT, GRID, OTHERS, OURS = "#768390", "#76839055", "#5b8db8", "#e8590c"


def best_of_families(figures, is_durable, rows=ROWS):
    """Each framework's name, the steps a second of its best row in its best column, and whether it is ours; most
    first. Frameworks without figures are left out."""
    best = {}
    for row in rows:
        value = median(figures.best(row.label))
        if row.is_durable == is_durable and value is not None:
            best[row.family] = max(best.get(row.family, (0.0, False)), (value, row.is_ours))
    return sorted(((name, *entry) for name, entry in best.items()), key=lambda bar: -bar[1])


def plot(figures, rows=ROWS):
    """The picture of both panels, in memory and durable."""
    panels = [("In memory", best_of_families(figures, False, rows)), ("Durable", best_of_families(figures, True, rows))]
    values = [value for _, bars in panels for _, value, _ in bars]
    least, most = _decades(values)
    height = HEAD + sum(PANEL + len(bars) * (BAR + GAP) for _, bars in panels)

    def place(value):
        return LEFT + (math.log10(value) - least) / (most - least) * (WIDTH - LEFT - RIGHT)

    parts = [_text(10, 18, "Steps a second, the best column of each framework (logarithmic scale)", weight="bold")]
    for decade in range(least, most + 1):
        at = place(10**decade)
        parts.append(f'<line x1="{at:.1f}" y1="{HEAD - 8}" x2="{at:.1f}" y2="{height - 8}" stroke="{GRID}"/>')
        parts.append(_text(at, HEAD - 14, _short(10**decade), anchor="middle"))
    top = HEAD
    for title, bars in panels:
        parts.append(_text(10, top + 22, title, weight="bold"))
        top += PANEL - 8
        for name, value, is_ours in bars:
            width, colour = place(value) - LEFT, OURS if is_ours else OTHERS
            weight = "bold" if is_ours else "normal"
            middle = top + BAR - 4
            parts.append(_text(LEFT - 8, middle, name, anchor="end", weight=weight))
            parts.append(f'<rect x="{LEFT}" y="{top}" width="{max(width, 1):.1f}" height="{BAR}" fill="{colour}"/>')
            parts.append(_text(LEFT + max(width, 1) + 6, middle, _short(value), weight=weight))
            top += BAR + GAP
        top += 8
    label = "Steps a second of frameworks, prime-agents among them"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{label}"'
    return "\n".join([f'{head} font-family="sans-serif" font-size="12">', *parts, "</svg>"]) + "\n"


def _decades(values):
    """The powers of ten that hold all values."""
    if not values:
        return 0, 1
    least = math.floor(math.log10(min(values)))
    return least, max(math.ceil(math.log10(max(values))), least + 1)


def _short(value):
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g}"


def _text(x, y, text, anchor="start", weight="normal"):
    style = f'fill="{TEXT}" text-anchor="{anchor}" font-weight="{weight}"'
    return f'<text x="{x:.1f}" y="{y}" {style}>{escape(text)}</text>'
