"""Answers and step counts of sat-dpll, resolution-proof and dependency-sat, recomputed as the pages say.

Each function takes the `input` object of an instance and returns (answer, steps).
"""

import heapq
import sys


def sat_dpll(task):
    """Recursion over simplified clauses: true clauses are gone, false literals too."""
    sys.setrecursionlimit(10_000)
    counts = {"decisions": 0, "units": 0, "pures": 0, "conflicts": 0}

    def assign(clauses, literal):
        return [
            (number, [other for other in clause if other != -literal])
            for number, clause in clauses
            if literal not in clause
        ]

    def solve(clauses):
        """The literals made true on the way to a model, or None after a conflict."""
        true = []
        while clauses:
            if any(not clause for _, clause in clauses):
                counts["conflicts"] += 1
                return None
            unit = next((clause[0] for _, clause in clauses if len(clause) == 1), None)
            if unit is not None:
                counts["units"] += 1
                true.append(unit)
                clauses = assign(clauses, unit)
                continue
            literals = {literal for _, clause in clauses for literal in clause}
            pure = [literal for literal in literals if -literal not in literals]
            if pure:
                literal = min(pure, key=abs)
                counts["pures"] += 1
                true.append(literal)
                clauses = assign(clauses, literal)
                continue
            variable = min(abs(literal) for literal in literals)
            counts["decisions"] += 1
            below = solve(assign(clauses, variable))
            if below is not None:
                return true + [variable] + below
            # The flip is the step of the conflict that was counted below.
            true.append(-variable)
            clauses = assign(clauses, -variable)
        return true

    model = solve(list(enumerate(task["clauses"])))
    if model is not None:
        assert all(set(clause) & set(model) for clause in task["clauses"])
    answer = {"satisfiable": model is not None, "assignment": sorted(model or [], key=abs), **counts}
    return answer, sum(counts.values()) + (model is not None)


def resolution_proof(task):
    """The given-clause loop with a heap and frozen sets."""
    clauses = [frozenset(clause) for clause in task["clauses"]]
    parents = {}
    waiting = [(len(clause), number) for number, clause in enumerate(clauses)]
    heapq.heapify(waiting)
    used = []

    def run():
        while waiting:
            _, given = heapq.heappop(waiting)
            for other in sorted(used):
                clash = [literal for literal in clauses[given] if -literal in clauses[other]]
                if len(clash) != 1:
                    continue
                resolvent = (clauses[given] | clauses[other]) - {clash[0], -clash[0]}
                if any(clause <= resolvent for clause in clauses):
                    continue
                number = len(clauses)
                clauses.append(resolvent)
                parents[number] = [given, other]
                if not resolvent:
                    return number
                heapq.heappush(waiting, (len(resolvent), number))
            used.append(given)
        raise AssertionError("no empty clause")

    empty = run()
    needed, stack = set(), [empty]
    while stack:
        number = stack.pop()
        if number in parents and number not in needed:
            needed.add(number)
            stack += parents[number]
    proof = [
        {"id": number, "from": parents[number], "clause": sorted(clauses[number], key=abs)}
        for number in sorted(needed)
    ]
    return {"derived": len(parents), "proof": proof}, len(parents)


def dependency_sat(task):
    """Recursion over the choices, then a topological order with a heap."""
    depends = task["depends"]
    clashes = {package: set() for package in range(task["packages"])}
    for p, q in task["conflicts"]:
        clashes[p].add(q)
        clashes[q].add(p)
    counts = {"choices": 0, "backtracks": 0}
    dead_ends = []

    def choose(selected):
        for number, (package, alternatives) in enumerate(depends):
            if package in selected and not selected & set(alternatives):
                allowed = [other for other in alternatives if not clashes[other] & selected]
                if not allowed:
                    dead_ends.append(number)
                for other in allowed:
                    counts["choices"] += 1
                    found = choose(selected | {other})
                    if found is not None:
                        return found
                    counts["backtracks"] += 1
                return None
        return selected

    selected = choose(frozenset(task["install"]))
    order = []
    if selected is not None:
        missing = {package: set() for package in selected}
        for package, alternatives in depends:
            if package in selected:
                missing[package] |= set(alternatives) & selected
        ready = [package for package in selected if not missing[package]]
        heapq.heapify(ready)
        while ready:
            package = heapq.heappop(ready)
            order.append(package)
            for other in selected:
                if package in missing[other]:
                    missing[other].remove(package)
                    if not missing[other]:
                        heapq.heappush(ready, other)
        assert len(order) == len(selected)
    answer = {
        "installable": selected is not None,
        "order": order,
        **counts,
        "first_dead_end": dead_ends[0] if dead_ends else -1,
    }
    ending = 1 if selected is None else len(order)
    return answer, counts["choices"] + counts["backtracks"] + ending


TASKS = {
    "sat-dpll": sat_dpll,
    "resolution-proof": resolution_proof,
    "dependency-sat": dependency_sat,
}
