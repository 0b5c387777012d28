#!/usr/bin/env python3
"""An executor that solves tower-of-hanoi by the recursive rule; with `--error-rate 0.1` one move in ten is wrong.

Errors are drawn from each turn's seed, so they are reproducible.
"""

import argparse
import random

from prime_agent import CannotDo, serve


def next_move(pegs, target):
    """The next move: the smallest disk that is in the way, its peg, and its target."""
    place = {disk: peg for peg, disks in enumerate(pegs) for disk in disks}
    move = None
    for disk in sorted(place, reverse=True):
        if place[disk] != target:
            move = (disk, place[disk], target)
            # All smaller disks must move to the third peg.
            target = 3 - place[disk] - target
    return move


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--error-rate", type=float, default=0.0, help="probability of a wrong move, 0 to 1")
    error_rate = parser.parse_args().error_rate

    def propose(request):
        if request["task"] != "tower-of-hanoi":
            raise CannotDo(f"this program only solves tower-of-hanoi, not {request['task']}")
        move = next_move(request["state"]["pegs"], request["input"]["to"])
        if move is None:
            raise CannotDo("all disks are on the target peg")
        disk, source, target = move
        draw = random.Random(request["sampling"]["seed"])
        if draw.random() < error_rate:
            # Another peg or disk; rejected moves are not repeated.
            wrong = [f"move {disk} {source} {3 - source - target}", f"move {disk + 1} {source} {target}", "no move"]
            left = [line for line in wrong if line not in request["excluded"]]
            if left:
                return {"action": draw.choice(left)}
        return {"action": f"move {disk} {source} {target}", "derivation": f"disk {disk} must go to peg {target}"}

    serve("executor", propose)


if __name__ == "__main__":
    main()
