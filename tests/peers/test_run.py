"""A whole comparison with programs that only print, and what is written of it."""

import contextlib
import io
import json
import shlex
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from results import FAST_REPORT, report, row

import page
import run
from figures import Figures
from plot import best_of_families, plot
from rows import CELL, ROWS
from table import cell, count, factor, micros

PAGE = f"# Title\nbefore\n{page.BEGIN}\nof an earlier run\n{page.END}\nafter\n"


class Comparison(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.docs = self.folder / "docs"
        self.docs.mkdir()
        (self.docs / "coordination.md").write_text(PAGE)
        slow = json.dumps({"phases": row(seq=10.0, shared64=20.0, trios64=30.0)["phases"]})
        for program in {one.program for one in ROWS if one.language == "rust"} - {"kameo_tell"}:
            self.program(program, f"echo {shlex.quote(slow)}")
        # One of the Python frameworks is not installed.
        missing = 'case "$*" in *ray_*) echo "no module named ray" >&2; exit 1;; esac'
        self.program("python", f"{missing}; echo {shlex.quote(slow)}")
        self.program("prime-agents", f"cat <<'END'\n{FAST_REPORT}\nEND")

    def program(self, name, script):
        (self.folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.folder / name).chmod(0o755)

    def run_it(self, *more):
        at = {"--prime": "prime-agents", "--programs": "", "--python": "python", "--out": "out"}
        at["--docs-folder"] = "docs"
        words = [word for option, name in at.items() for word in (option, str(self.folder / name))]
        printed, said = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
            code = run.main([*words, *more])
        return code, printed.getvalue(), said.getvalue()

    def test_rows_that_fail_are_said_and_the_rest_is_compared(self):
        code, printed, said = self.run_it("--quick", "--docs", "--check")
        self.assertEqual(code, 3, said)
        self.assertRegex(said, r"does not hold:(\n.*)*ray tell")
        self.assertIn("- No figures of ray tell: ended with 1: no module named ray\n", printed)
        self.assertIn("- No figures of kameo tell, multi_thread: kameo_tell did not start: No such file", printed)
        ours = "| **prime-agents, a cell** | 0.1.0 | 0.750 | 9.50 | 1.00 M | 0.750 | 2.00 M | 3.00 M | – | – |"
        self.assertIn(ours, printed)
        # 3 million of the default's best column, 30 of theirs.
        self.assertRegex(printed, r"\| pykka tell \|.*\| 100,000× \|")
        self.assertRegex(printed, r"\| best column: prime-agents, a cell a core ÷ ray tell .* not measured \| – \|")
        self.assertRegex(printed, r"\| p50 of a step: prime-agents, a cell \| ≤ 3 µs \| 0.75 µs \| yes \|")
        self.assertEqual((self.folder / "out" / "results.md").read_text(), printed.removesuffix("\n"))
        results = json.loads((self.folder / "out" / "results.json").read_text())
        self.assertEqual(results["rounds"][0][CELL]["phases"]["seq"]["p50_us"], 0.75)
        text = (self.docs / "coordination.md").read_text()
        self.assertTrue(text.startswith("# Title\nbefore\n") and text.endswith(f"{page.END}\nafter\n"), text)
        self.assertNotIn("of an earlier run", text)
        self.assertIn(printed.strip(), text)
        ElementTree.parse(self.docs / "coordination.svg")
        # The same tables without measuring, where nothing could be measured any more.
        (self.folder / "prime-agents").unlink()
        self.assertEqual(self.run_it("--again", str(self.folder / "out" / "results.json")), (0, printed, ""))

    def test_a_report_of_another_form_is_a_row_that_says_so(self):
        self.program("prime-agents", f"cat <<'END'\n{report([], form=7)}\nEND")
        code, printed, _ = self.run_it("--rounds", "2", "--only", "^prime-agents, a cell$")
        self.assertEqual(code, 0)
        self.assertIn("- No figures of prime-agents, a cell: report format 7 instead of 2", printed)
        self.assertTrue((self.folder / "out" / "results-only.json").is_file())
        self.assertFalse((self.folder / "out" / "results.json").exists())
        # And a page without marks is left alone.
        (self.docs / "coordination.md").write_text("no marks")
        code, _, said = self.run_it("--again", str(self.folder / "out" / "results-only.json"), "--docs")
        self.assertEqual((code, (self.docs / "coordination.md").read_text()), (2, "no marks"))
        self.assertIn("each once and on a line of its own", said)

    def test_wrong_usage_names_what_is_wrong(self):
        cases = [
            (("--rounds", "0"), "0 is below 1"),
            (("--only", "("), "not a regular expression"),
            (("--only", "nothing like it"), "matches no row; rows are: function call; "),
            (("--only", "ray", "--check"), "leave --only out"),
        ]
        for words, message in cases:
            said = io.StringIO()
            with self.subTest(words=words), contextlib.redirect_stderr(said), self.assertRaises(SystemExit) as raised:
                run.parsed(["--prime", "p", "--programs", "p", "--python", "p", "--out", "o", *words])
            self.assertEqual(raised.exception.code, 2)
            self.assertIn(message, said.getvalue())


class Writing(unittest.TestCase):
    def test_figures_are_short(self):
        for write, value, text in [
            (count, None, "–"),
            (count, 60.64, "60.6"),
            (count, 999.6, "1000"),
            (count, 12_345.0, "12 k"),
            (count, 2_345_678.0, "2.35 M"),
            (micros, 0.3001, "0.300"),
            (micros, 45.678, "45.68"),
            (micros, 1234.5, "1,234"),
            (factor, 0.0223, "0.0223×"),
            (factor, 1234.5, "1,234×"),
            (factor, None, "–"),
            (cell, "a | b\nc", "a / b c"),
        ]:
            with self.subTest(value=value):
                self.assertEqual(write(value), text)

    def test_the_plot_has_a_bar_for_each_framework(self):
        rates = {"langgraph invoke": 2000.0, "langgraph ainvoke": 1000.0, CELL: 3e6, "D: dbos + SQLite": 60.0}
        figures = Figures([{label: row(seq=rate) for label, rate in rates.items()}])
        self.assertEqual(best_of_families(figures, False), [("prime-agents", 3e6, True), ("langgraph", 2000.0, False)])
        self.assertEqual(best_of_families(figures, True), [("dbos + SQLite", 60.0, False)])
        picture = ElementTree.fromstring(plot(figures))
        bars = [float(bar.get("width")) for bar in picture.iter("{http://www.w3.org/2000/svg}rect")]
        self.assertEqual(len(bars), 3)
        # Each power of ten is as long as the others: from 10 on, 3e6 is 5.48 of them and 60 is 0.78.
        self.assertAlmostEqual(bars[0] / bars[2], 5.477 / 0.778, places=1)

    def test_a_plot_of_nothing_is_a_picture(self):
        ElementTree.fromstring(plot(Figures([])))

    def test_the_page_needs_both_marks_once(self):
        for text in ["", page.BEGIN, page.END + page.BEGIN, page.BEGIN + page.END + page.END]:
            with self.subTest(text=text), self.assertRaises(page.NoMarks):
                page.with_block(text, "new")


if __name__ == "__main__":
    unittest.main()
