"""The arithmetic of the comparison: medians over rounds, and ratios that are taken within a round."""

import statistics

from rows import COLUMNS


def median(values):
    """Of those that there are; None if there is none."""
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


class Figures:
    """What all rounds measured: for each a dictionary from labels to what `programs.measure` gave."""

    def __init__(self, rounds):
        self.rounds = rounds

    def values(self, label, phase, key):
        """One value a round, None where it is missing."""
        return [one.get(label, {}).get("phases", {}).get(phase, {}).get(key) for one in self.rounds]

    def median(self, label, phase, key):
        return median(self.values(label, phase, key))

    def best(self, label):
        """Steps a second in the best of COLUMNS, one value a round."""
        columns = [self.values(label, column, "steps_per_s") for column in COLUMNS]
        return [max((value for value in values if value is not None), default=None) for values in zip(*columns)]

    def error(self, label):
        """Why a row has no figures in a round, and in how many; None if it has all."""
        errors = [one[label]["error"] for one in self.rounds if "error" in one.get(label, {})]
        if not errors:
            return None
        if len(errors) == len(self.rounds):
            return errors[-1]
        return f"{len(errors)} of {len(self.rounds)} rounds: {errors[-1]}"


def ratio(above, below):
    """The median over rounds of the ratio within a round; None if no round has both."""
    return median(a / b if a is not None and b else None for a, b in zip(above, below))
