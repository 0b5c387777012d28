"""Sudoku of reasoning-gym (`pip install prime-bench reasoning-gym`), a digit at a time, with its own verdict on the answer.

    prime-agents run --task-program 'python3 examples/packages/sudoku.py' --input '{"seed": 1, "index": 0}'
"""

import functools

import reasoning_gym

import prime_bench

DIGITS = range(1, 10)


@functools.lru_cache(maxsize=64)
def entry(seed, index):
    return reasoning_gym.create_dataset("sudoku", seed=seed, size=1000)[index]


def seen_from(grid, row, column):
    """What stands in the row, the column and the box of a cell."""
    box = [grid[y][x] for y in range(9) for x in range(9) if (y // 3, x // 3) == (row // 3, column // 3)]
    return {"row": grid[row], "column": [line[column] for line in grid], "box": box}


def next_cell(grid):
    """The empty cell with the fewest digits that fit, counted from 0; None if the grid is full."""
    empty = [(row, column) for row in range(9) for column in range(9) if grid[row][column] == 0]
    fitting = {cell: len(set(DIGITS).difference(*seen_from(grid, *cell).values())) for cell in empty}
    return min(empty, key=lambda cell: (fitting[cell], cell), default=None)


class Sudoku(prime_bench.Task):
    name = "sudoku"
    title = "Sudoku"
    statement = "Fill the grid so that each row, column and box of three by three cells has every digit once. 0 is empty."
    step = "the row and the column of the next cell, and its digit"
    actions = ["<nat> <nat> <nat>"]
    constraints = [
        {"name": where, "severity": "critical", "meaning": f"a {where} has no digit twice"} for where in ("row", "column", "box")
    ]
    example = {"seed": 1, "index": 0}

    def start(self, given):
        return entry(given["seed"], given["index"])["metadata"]["puzzle"]

    def apply(self, given, state, line):
        if line not in self.choices(given, state):
            raise prime_bench.Refused("write a digit, 1 to 9, into the next cell")
        row, column, digit = map(int, line.split())
        grid = [list(cells) for cells in state]
        grid[row - 1][column - 1] = digit
        return grid

    def violations(self, given, state, line, after):
        row, column, digit = map(int, line.split())
        seen = seen_from(state, row - 1, column - 1)
        return [prime_bench.Broken(where, f"the {where} has a {digit}") for where, digits in seen.items() if digit in digits]

    def done(self, given, state):
        return next_cell(state) is None

    def answer(self, given, state):
        return "\n".join(" ".join(map(str, cells)) for cells in state)

    def score_answer(self, given, answer):
        return reasoning_gym.get_score_answer_fn("sudoku")(answer, entry(given["seed"], given["index"]))

    def choices(self, given, state):
        row, column = next_cell(state)
        return [f"{row + 1} {column + 1} {digit}" for digit in DIGITS]

    def view(self, given, state):
        row, column = next_cell(state) or (0, 0)
        return f"{self.answer(given, state)}\nNext cell: row {row + 1}, column {column + 1}"


if __name__ == "__main__":
    prime_bench.serve(Sudoku())
