"""Medians over rounds, ratios within them, and what is promised of them."""

import unittest

from results import phase, row

import promises as promised
from figures import Figures, median, ratio
from rows import ACTIX_ONE, ACTIX_OWN, CELL, CELL_A_CORE, JOURNAL, LANGGRAPH_SQLITE, MANY, OWN_ARBITERS, ROWS


class Medians(unittest.TestCase):
    def test_what_is_missing_is_left_out(self):
        cases = [([], None), ([None], None), ([3.0], 3.0), ([5.0, None, 1.0], 3.0), ([9.0, 1.0, 2.0], 2.0)]
        for values, expected in cases:
            with self.subTest(values=values):
                self.assertEqual(median(values), expected)

    def test_a_ratio_is_taken_within_a_round(self):
        # The ratio of the medians would be 20 / 20 = 1.
        self.assertEqual(ratio([10.0, 20.0, 90.0], [20.0, 10.0, 30.0]), 2.0)

    def test_a_round_with_one_side_alone_is_left_out(self):
        self.assertEqual(ratio([None, 8.0, 5.0], [2.0, 4.0, None]), 2.0)
        self.assertIsNone(ratio([None, 8.0], [2.0, None]))


class Rounds(unittest.TestCase):
    def test_the_best_column_is_chosen_in_each_round(self):
        figures = Figures([{"a": row(seq=3.0, shared64=7.0)}, {"a": row(seq=5.0, trios1000=4.0)}, {}])
        self.assertEqual(figures.best("a"), [7.0, 5.0, None])

    def test_ten_thousand_trajectories_are_no_column_of_the_comparison(self):
        self.assertEqual(Figures([{"a": row(shared1000=1.0, shared10000=9.0)}]).best("a"), [1.0])

    def test_a_row_that_failed_says_in_how_many_rounds(self):
        failed, ran = {"a": {"error": "no such file"}}, {"a": row(seq=1.0)}
        self.assertEqual(Figures([failed]).error("a"), "no such file")
        self.assertEqual(Figures([failed, ran, ran]).error("a"), "1 of 3 rounds: no such file")
        self.assertIsNone(Figures([ran]).error("a"))

    def test_a_row_that_was_not_run_has_no_figures(self):
        figures = Figures([{}, {}])
        self.assertEqual(figures.values("a", "seq", "p50_us"), [None, None])
        self.assertIsNone(figures.median("a", "seq", "p50_us"))
        self.assertIsNone(figures.error("a"))


def kept():
    """A round in which every promise holds by exactly its bound."""
    found = {one.label: row(seq=272.0) for one in ROWS if one.language == "python" and one.is_durable}
    found |= {one.label: row(seq=3000.0) for one in ROWS if one.language == "python" and not one.is_durable}
    found[LANGGRAPH_SQLITE] = row(seq=200.0, trios64=300.0)
    found[ACTIX_ONE] = row(shared1000=1_000_000.0)
    found[ACTIX_OWN] = {"phases": {"seq": phase(1.0, p50_us=10.0)}}
    found[OWN_ARBITERS] = {"phases": {"seq": phase(1.0, p50_us=15.0)}}
    found[CELL] = {
        "phases": {
            "seq": phase(300_000.0, p50_us=3.0),
            "shared1000": phase(200_000.0),
            "shared10000": phase(160_000.0, bytes_per_trajectory=4096.0),
        }
    }
    found[CELL_A_CORE] = row(shared1000=300_000.0, shared10000=240_000.0)
    found[JOURNAL] = row(shared1000=150_000.0)
    return found


def holding(found):
    return {one.what: one.holds for one in promised.promises(Figures([found]), ROWS)}


class Promises(unittest.TestCase):
    def test_all_hold_at_their_bounds(self):
        broken = [what for what, holds in holding(kept()).items() if not holds]
        self.assertEqual(broken, [])

    def test_each_is_broken_by_figures_just_beyond(self):
        beyond = [
            ("p50 of a step: prime-agents, a cell", CELL, "seq", "p50_us", 3.01),
            (f"steps a second at 1,000 trajectories: {CELL}", CELL, "shared1000", "steps_per_s", 199_999.0),
            (f"p50 of a step: {OWN_ARBITERS}", OWN_ARBITERS, "seq", "p50_us", 15.01),
            ("committed steps a second", JOURNAL, "shared1000", "steps_per_s", 149_999.0),
            ("the same ÷ the best column", LANGGRAPH_SQLITE, "trios64", "steps_per_s", 300.1),
            (f"steps a second at 10,000 ÷ at 1,000 trajectories: {CELL}", CELL, MANY, "steps_per_s", 159_999.0),
            ("heap for each of 10,000", CELL, MANY, "bytes_per_trajectory", 4097.0),
            ("best column: prime-agents, a cell a core ÷ ray tell", "ray tell", "seq", "steps_per_s", 3000.1),
            (f"best column: {JOURNAL} ÷ D: dbos", "D: dbos + SQLite", "seq", "steps_per_s", 1500.1),
        ]
        for what, label, phase_name, key, value in beyond:
            with self.subTest(what=what):
                found = kept()
                found[label]["phases"][phase_name][key] = value
                broken = [name for name, holds in holding(found).items() if not holds]
                # A lower figure of the journal also breaks the promise about it and langgraph.
                self.assertTrue(broken and broken[0].startswith(what), broken)
                self.assertTrue(all(label in name for name in broken) or label == JOURNAL and len(broken) == 2, broken)

    def test_what_was_not_measured_is_not_known_to_hold(self):
        found = kept()
        found["ray tell"] = {"error": "did not start"}
        broken = [one for one in promised.promises(Figures([found]), ROWS) if not one.holds]
        self.assertEqual([one.what for one in broken], [f"best column: {CELL_A_CORE} ÷ ray tell"])
        self.assertIsNone(broken[0].value)

    def test_every_python_framework_is_promised_and_no_floor(self):
        named = " ".join(holding(kept()))
        for one in ROWS:
            if one.language == "python":
                self.assertEqual(f"÷ {one.label}" in named, not one.is_floor, one.label)


if __name__ == "__main__":
    unittest.main()
