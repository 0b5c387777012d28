"""Rush Hour of reasoning-gym (`pip install prime-bench reasoning-gym`), step by step: a step moves one car by one cell.

    prime-agents run --task-program 'python3 examples/packages/rush_hour.py' --input '{"seed": 1, "index": 0, "moves": 4}'
"""

import functools
import re

import reasoning_gym
from reasoning_gym.games.rush_hour import Board

import prime_bench


@functools.lru_cache(maxsize=64)
def dataset(seed, moves):
    return reasoning_gym.create_dataset("rush_hour", seed=seed, size=1000, min_moves=1, max_moves=moves)


def entry(given):
    return dataset(given["seed"], given.get("moves", 50))[given["index"]]


class RushHour(prime_bench.Task):
    name = "rush-hour"
    title = "Rush Hour"
    statement = "Move the red car A to the exit on the right of the third row. Cars move along their own direction only."
    step = "a car and the direction in which it moves by one cell, such as B+1 (right or down) or B-1 (left or up)"
    actions = ["<[A-Z]{1,1}><+1|-1>"]
    constraints = [{"name": "repeat", "severity": "critical", "meaning": "no board comes back"}]
    example = {"seed": 1, "index": 0, "moves": 4}

    def start(self, given):
        return {"moves": [], "boards": [self.after(given, []).board_str()]}

    def after(self, given, moves):
        board = Board(entry(given)["metadata"]["board_config"])
        board.perform_moves(" ".join(moves))
        return board

    def apply(self, given, state, line):
        if re.fullmatch("[A-Z][+-]1", line) is None:
            raise prime_bench.Refused("write a car and +1 or -1")
        moves = [*state["moves"], line]
        board = self.after(given, moves).board_str()
        if board == state["boards"][-1]:
            raise prime_bench.Refused("that car cannot move there")
        return {"moves": moves, "boards": [*state["boards"], board]}

    def violations(self, given, state, line, after):
        repeats = after["boards"][-1] in state["boards"]
        return [prime_bench.Broken("repeat", "the board was like this before")] if repeats else []

    def done(self, given, state):
        return self.after(given, state["moves"]).solved

    def answer(self, given, state):
        return " ".join(state["moves"])

    def score_answer(self, given, answer):
        return dataset(given["seed"], given.get("moves", 50)).score_answer(answer, entry(given))

    def choices(self, given, state):
        cars = sorted({cell for cell in state["boards"][-1] if cell.isupper()})
        moves = [car + by for car in cars for by in ("+1", "-1")]
        return [move for move in moves if self.after(given, [*state["moves"], move]).board_str() != state["boards"][-1]]

    def view(self, given, state):
        return state["boards"][-1]


if __name__ == "__main__":
    prime_bench.serve(RushHour())
