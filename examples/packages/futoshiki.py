"""Futoshiki of reasoning-gym (`pip install prime-bench reasoning-gym`), a digit at a time, with its own verdict on the answer.

    prime-agents run --task-program 'python3 examples/packages/futoshiki.py' --input '{"seed": 1, "index": 0}'
"""

import functools
import re

import reasoning_gym

import prime_bench


@functools.lru_cache(maxsize=64)
def entry(seed, index):
    return reasoning_gym.create_dataset("futoshiki", seed=seed, size=1000)[index]


def next_cell(grid):
    """The first empty cell, counted from 0; None if the grid is full."""
    return next(((row, column) for row, cells in enumerate(grid) for column, cell in enumerate(cells) if cell == 0), None)


class Futoshiki(prime_bench.Task):
    name = "futoshiki"
    title = "Futoshiki"
    statement = "Fill the grid so that no row and no column has a number twice, and every < and > between two cells holds."
    step = "the row and the column of the next empty cell, and its number"
    actions = ["<nat> <nat> <nat>"]
    constraints = [
        {"name": "row", "severity": "critical", "meaning": "a row has no number twice"},
        {"name": "column", "severity": "critical", "meaning": "a column has no number twice"},
        {"name": "relation", "severity": "critical", "meaning": "each sign between two cells holds"},
    ]
    example = {"seed": 1, "index": 0}

    def start(self, given):
        return entry(given["seed"], given["index"])["metadata"]["puzzle"]

    def apply(self, given, state, line):
        if line not in self.choices(given, state):
            raise prime_bench.Refused("write a number of the grid's size into the next empty cell")
        row, column, number = map(int, line.split())
        grid = [list(cells) for cells in state]
        grid[row - 1][column - 1] = number
        return grid

    def violations(self, given, state, line, after):
        row, column, number = map(int, line.split())
        broken = [prime_bench.Broken("row", f"row {row} has a {number}")] if number in state[row - 1] else []
        if number in (cells[column - 1] for cells in state):
            broken.append(prime_bench.Broken("column", f"column {column} has a {number}"))
        for r1, c1, r2, c2, sign in entry(given["seed"], given["index"])["metadata"]["constraints"]:
            one, other = after[r1][c1], after[r2][c2]
            if one and other and (one < other) != (sign == "<"):
                broken.append(prime_bench.Broken("relation", f"{one} {sign} {other} is false"))
        return broken

    def done(self, given, state):
        return next_cell(state) is None

    def answer(self, given, state):
        numbers = iter([cell for cells in state for cell in cells])
        return re.sub(r"\d", lambda _: str(next(numbers)), entry(given["seed"], given["index"])["answer"])

    def score_answer(self, given, answer):
        return reasoning_gym.get_score_answer_fn("futoshiki")(answer, entry(given["seed"], given["index"]))

    def choices(self, given, state):
        row, column = next_cell(state)
        return [f"{row + 1} {column + 1} {number}" for number in range(1, len(state) + 1)]

    def view(self, given, state):
        return self.answer(given, state).replace("0", "_")


if __name__ == "__main__":
    prime_bench.serve(Futoshiki())
