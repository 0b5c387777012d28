#!/usr/bin/env python3
"""A verifier with its own rules for two tasks, in plain Python: tower-of-hanoi and bubble-sort.

Other tasks are answered with an error, so the run reports that it could not be verified.
"""

from prime_agent import CannotDo, serve

WEIGHTS = {"critical": 1.0, "major": 0.6, "minor": 0.2}


def tower_of_hanoi(request):
    """The names of the constraints that a move violates."""
    disk, source, target = (int(word) for word in request["action"].split()[1:])
    disks, goal = request["input"]["n"], request["input"]["to"]
    pegs = [list(peg) for peg in request["state"]["pegs"]]
    pegs[source].pop()
    pegs[target].append(disk)
    moves = list(request["state"]["disk_moves"])
    moves[disk - 1] += 1

    if any(peg != sorted(peg, reverse=True) for peg in pegs):
        yield "stacking"
    if sorted(disk for peg in pegs for disk in peg) != list(range(1, disks + 1)):
        yield "disks"
    # The smallest disk makes every second move, the next one every fourth, and so on.
    if any(count > 2 ** (disks - 1 - k) for k, count in enumerate(moves)):
        yield "halving"
    if any(count != (sum(moves) + 2**k) // 2 ** (k + 1) for k, count in enumerate(moves)):
        yield "turns"
    # From the ground up, odd and even disks take turns: on the third peg the other way than on the other two.
    third = 3 - request["input"]["from"] - goal
    for place, peg in enumerate(pegs):
        if any((disk + height - disks) % 2 != (place == third) for height, disk in enumerate(peg)):
            yield "alternation"
            break
    if request["ends"] and len(pegs[goal]) != disks:
        yield "goal"


def inversions(a):
    return sum(left > right for i, left in enumerate(a) for right in a[i + 1 :])


def bubble_sort(request):
    """The names of the constraints that a comparison, a swap or the end of a pass violates."""
    word, *places = request["action"].split()
    state, a = request["state"], list(request["state"]["a"])
    comparisons, swaps, passes = state["comparisons"], state["swaps"], state["passes"]
    last_word, *last_places = state["last"].split() or [""]
    seen = [int(place) for place in last_places]
    last_pair = len(a) - 2 - passes
    if word in ("cmp", "swap"):
        i, j = (int(place) for place in places)
        if j != i + 1:
            yield "adjacent"
    if word == "cmp" and (i != (seen[0] + 1 if seen else 0) or i > last_pair):
        yield "scan"
    if word in ("pass", "done") and seen[:1] != [last_pair]:
        yield "whole-scan"
    if word == "swap" and (last_word, seen) != ("cmp", [i, j]):
        yield "compared"
    if word != "swap" and seen and a[seen[0]] > a[seen[1]]:
        yield "in-order"

    if word == "cmp":
        comparisons += 1
    elif word == "swap":
        swaps += 1
        a[i], a[j] = a[j], a[i]
    else:
        passes += 1

    if sorted(a) != sorted(request["input"]["a"]):
        yield "permutation"
    if inversions(a) + swaps != inversions(request["input"]["a"]):
        yield "inversions"
    if a[max(0, len(a) - passes) :] != sorted(a)[max(0, len(a) - passes) :]:
        yield "tail"
    pairs = [len(a) - 1 - finished for finished in range(len(a) - 1)]
    if not swaps <= comparisons <= sum(pairs):
        yield "counts"
    if word in ("pass", "done"):
        goes_on = state["swapped"] and passes < len(a) - 1
        if passes > len(a) - 1 or (word == "pass") != goes_on:
            yield "passes"
        if comparisons != sum(pairs[:passes]):
            yield "comparisons"
    if word == "done" and a != sorted(a):
        yield "sorted"


TASKS = {"tower-of-hanoi": tower_of_hanoi, "bubble-sort": bubble_sort}


def judge(request):
    check = TASKS.get(request["task"])
    if check is None:
        raise CannotDo(f"no rules for {request['task']}, only for {', '.join(TASKS)}")
    # prime-agents has already checked whether the line is applicable.
    violated = list(check(request)) if request["applicable"] else ["format"]
    if not violated:
        return {"valid": True}
    known = {constraint["name"]: constraint for constraint in request["constraints"]}
    return {
        "score": sum(WEIGHTS[known[name]["severity"]] for name in violated),
        "violations": violated,
        "feedback": "; ".join(f"{name}: {known[name]['meaning']}" for name in violated),
    }


if __name__ == "__main__":
    serve("verifier", judge)
