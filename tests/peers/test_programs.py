"""What programs print is read, and whatever they do instead is a message and no crash."""

import sys
import tempfile
import types
import unittest
from pathlib import Path

from results import FAST_REPORT, point, report

import loadtest
import programs
from rows import ROWS, phases


class Reports(unittest.TestCase):
    def test_points_are_phases(self):
        found, version = loadtest.read(FAST_REPORT)
        self.assertEqual(version, "0.1.0")
        self.assertEqual(list(found), ["seq", "shared64", "shared1000", "shared10000"])
        self.assertEqual((found["seq"]["p50_us"], found["seq"]["p99_us"], found["seq"]["max_us"]), (0.75, 9.5, 80.0))
        self.assertEqual(found["shared1000"]["steps_per_s"], 3e6)
        self.assertEqual(found["shared10000"]["bytes_per_trajectory"], 2048.0)

    def test_other_counts_of_trajectories_are_left_out(self):
        found, _ = loadtest.read(report([point(2, 1.0, 1.0), point(1, 5.0, 1.0)]))
        self.assertEqual(list(found), ["seq"])

    def test_what_cannot_be_read_says_why(self):
        lacking = point(1, 1.0, 1.0)
        del lacking["latency"]["p50_us"]
        cases = [
            ("", "printed no JSON"),
            ("[]", "format None"),
            ('{"mode": "ring"}', "report format None instead of 2"),
            (report([], form=1), "report format 1 instead of 2"),
            (report([lacking]), "lacks a field: 'p50_us'"),
            ('{"form": 2}', "lacks a field: 'points'"),
        ]
        for text, message in cases:
            with self.subTest(text=text[:20]), self.assertRaises(loadtest.NotAReport) as raised:
                loadtest.read(text)
            self.assertIn(message, str(raised.exception))

    def test_the_load_is_said_in_full(self):
        words = loadtest.arguments(("--durable",), 1.2)
        expected = "loadtest --mode ring --trajectories 1,64,1000,10000 --duration 1.2s --output json --durable"
        self.assertEqual(words, expected.split())


class Rows(unittest.TestCase):
    def test_labels_tell_rows_apart_and_programs_exist(self):
        self.assertEqual(len({row.label for row in ROWS}), len(ROWS))
        sources = {"python": ("python", ".py"), "rust": ("rust/src/bin", ".rs")}
        for row in ROWS:
            if not row.is_ours:
                folder, end = sources[row.language]
                self.assertTrue((programs.HERE / folder / f"{row.program}{end}").is_file(), row.label)
                self.assertEqual(len(row.steps), 5, row.label)

    def test_phases_scale_and_are_never_empty(self):
        row = next(row for row in ROWS if row.label == "langgraph ainvoke")
        self.assertEqual(phases(row, 1.0), ["seq:1000", "trios:64:12", "trios:1000:1"])
        self.assertEqual(phases(row, 0.4), ["seq:400", "trios:64:5", "trios:1000:1"])


class Calls(unittest.TestCase):
    """A Python row whose program is a script of this test."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = Path(folder.name)
        self.options = types.SimpleNamespace(python=Path(sys.executable), scale=1.0, limit=30)
        self.env = programs.environment(self.out, self.out)
        self.row = next(row for row in ROWS if row.label == "pykka tell")

    def measure(self, script, **options):
        (self.out / "script.sh").write_text(f"#!/bin/sh\n{script}\n")
        (self.out / "script.sh").chmod(0o755)
        self.options.python = self.out / "script.sh"
        vars(self.options).update(options)
        return programs.measure(self.row, self.options, self.env)

    def test_the_line_with_phases_is_found_among_others(self):
        found = self.measure("""echo hello; echo '{"phases": {"seq": {"steps_per_s": 2.5}}}'; echo bye""")
        self.assertEqual(found, {"phases": {"seq": {"steps_per_s": 2.5}}})

    def test_a_program_that_fails_is_a_row_that_says_so(self):
        cases = [
            ("echo one >&2; echo two >&2; echo three >&2; exit 7", {}, "ended with 7: two / three"),
            ("echo 'File /a/b-c/d.py: no /e/f.g' >&2; exit 1", {}, "ended with 1: File d.py: no f.g"),
            ("echo nothing", {}, "printed no line of JSON"),
            ("""echo '{"phases": {'""", {}, "printed no JSON"),
            ("exec tail -f /dev/null", {"limit": 0.2}, "not done within 0.2 s"),
        ]
        for script, options, message in cases:
            with self.subTest(script=script):
                self.assertIn(message, self.measure(script, **options)["error"])

    def test_a_program_that_is_not_there_is_a_row_that_says_so(self):
        self.options.python = self.out / "missing"
        found = programs.measure(self.row, self.options, self.env)
        self.assertEqual(found, {"error": "missing did not start: No such file or directory"})


if __name__ == "__main__":
    unittest.main()
