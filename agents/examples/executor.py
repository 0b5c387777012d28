#!/usr/bin/env python3
"""An executor that solves tower-of-hanoi by the recursive rule; with `--error-rate 0.1` every tenth move is a wrong one.

The errors are drawn from the seed of each turn, so that the same run makes the same ones.
"""

import argparse
import random

from prime_agent import CannotDo, serve


def next_move(pegs, target):
    """The smallest disk that is not where the larger ones need it, and where it must go."""
    place = {disk: peg for peg, disks in enumerate(pegs) for disk in disks}
    move = None
    for disk in sorted(place, reverse=True):
        if place[disk] != target:
            move = (disk, place[disk], target)
            # Everything smaller must get out of the way, onto the third peg.
            target = 3 - place[disk] - target
    return move


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--error-rate", type=float, default=0.0, help="probability of a wrong move, 0 to 1")
    error_rate = parser.parse_args().error_rate

    def propose(request):
        if request["task"] != "tower-of-hanoi":
            raise CannotDo(f"this program solves tower-of-hanoi only, and was asked for {request['task']}")
        move = next_move(request["state"]["pegs"], request["input"]["to"])
        if move is None:
            raise CannotDo("all disks are where they belong")
        disk, source, target = move
        draw = random.Random(request["sampling"]["seed"])
        if draw.random() < error_rate:
            # Some other peg, or a disk that is not there: rejected moves are not tried again.
            wrong = [f"move {disk} {source} {3 - source - target}", f"move {disk + 1} {source} {target}", "no move"]
            left = [line for line in wrong if line not in request["excluded"]]
            if left:
                return {"action": draw.choice(left)}
        return {"action": f"move {disk} {source} {target}", "derivation": f"disk {disk} must go to peg {target}"}

    serve("executor", propose)


if __name__ == "__main__":
    main()
