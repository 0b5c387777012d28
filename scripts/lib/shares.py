"""Shares of counts, as the scripts' tables write them."""

import math

Z = 1.959964


def wilson(right, of):
    """The 95 % interval of a share."""
    middle = (right + Z * Z / 2) / (of + Z * Z)
    spread = Z / (of + Z * Z) * math.sqrt(right * (of - right) / of + Z * Z / 4)
    return max(0.0, middle - spread), min(1.0, middle + spread)


def share(right, of):
    """Such as `48 of 60: 80.0 % (68.2–88.2)`."""
    low, high = wilson(right, of)
    return f"{right} of {of}: {100 * right / of:.1f} % ({100 * low:.1f}–{100 * high:.1f})"
