"""Answers and step counts of the automata (ids 45-52), recomputed from the pages in the plainest way.

TASKS maps a slug to a function from the input object to (answer, steps).
"""

from collections import Counter


def dfa_simulation(x):
    column = {letter: k for k, letter in enumerate(x["alphabet"])}
    path = [x["start"]]
    for letter in x["word"]:
        path.append(x["delta"][path[-1]][column[letter]])
    occurs = Counter(path)
    answer = {
        "final": path[-1],
        "accepted": path[-1] in x["accept"],
        "visits": [occurs[q] for q in range(x["states"])],
    }
    return answer, len(path) - 1


def nfa_simulation(x):
    states = range(x["states"])
    # Reflexive and transitive closure of the epsilon edges by Warshall's algorithm.
    reach = [[q == p for p in states] for q in states]
    for q, p in x["epsilon"]:
        reach[q][p] = True
    for via in states:
        for q in states:
            if reach[q][via]:
                for p in states:
                    if reach[via][p]:
                        reach[q][p] = True
    added, sizes, steps = 0, [], 0

    def close(moved):
        nonlocal added, steps
        closed = {p for q in moved for p in states if reach[q][p]}
        added += len(closed) - len(moved)
        sizes.append(len(closed))
        steps += 1
        return closed

    active = close({x["start"]})
    for letter in x["word"]:
        steps += 1
        active = close({p for q, c, p in x["delta"] if c == letter and q in active})
    answer = {
        "final": sorted(active),
        "accepted": bool(active & set(x["accept"])),
        "max_active": max(sizes),
        "closure_added": added,
    }
    return answer, steps


def pda_execution(x):
    table = {(q, letter, top): (p, push) for q, letter, top, p, push in x["delta"]}
    q, rest, stack = x["start"], x["word"], x["bottom"]
    deepest, epsilon_moves, steps = 1, 0, 0
    while True:
        if (q, "", stack[0]) in table:
            q, push = table[q, "", stack[0]]
            epsilon_moves += 1
        elif rest:
            q, push = table[q, rest[0], stack[0]]
            rest = rest[1:]
        else:
            break
        stack = push + stack[1:]
        deepest = max(deepest, len(stack))
        steps += 1
    answer = {
        "final": q,
        "stack": stack,
        "accepted": q in x["accept"],
        "max_depth": deepest,
        "epsilon_moves": epsilon_moves,
    }
    return answer, steps


def turing_machine(x):
    tape = dict(enumerate(x["word"]))
    q, head, changed, visited, steps = 0, 0, 0, [0], 0
    while q >= 0:
        read = tape.get(head, "_")
        q, write, move = x["delta"][q][x["symbols"].index(read)]
        tape[head] = write
        changed += write != read
        head += {"L": -1, "R": 1}[move]
        visited.append(head)
        steps += 1
    cells = [cell for cell, symbol in tape.items() if symbol != "_"]
    answer = {
        "accepted": q == -1,
        "tape": "".join(tape[cell] for cell in range(min(cells), max(cells) + 1)),
        "head": head,
        "changed": changed,
        "leftmost": min(visited),
        "rightmost": max(visited),
    }
    return answer, steps


def register_machine(x):
    registers, program = list(x["registers"]), [line.split() for line in x["program"]]
    pc = incs = decs = jumps = steps = 0
    while True:
        steps += 1
        word, *arguments = program[pc]
        arguments = [int(argument) for argument in arguments]
        if word == "halt":
            break
        pc += 1
        if word == "inc":
            registers[arguments[0]] += 1
            incs += 1
        elif word == "dec":
            registers[arguments[0]] = max(0, registers[arguments[0]] - 1)
            decs += 1
        elif word == "jmp" or registers[arguments[0]] == 0:
            pc = arguments[-1]
            jumps += 1
    return {"registers": registers, "halted_at": pc, "incs": incs, "decs": decs, "jumps": jumps}, steps


def petri_net(x):
    marking, transitions = list(x["marking"]), x["transitions"]
    count = len(transitions)
    fired, previous = [], -1
    while len(fired) < x["firings"]:
        around = [(previous + offset) % count for offset in range(1, count + 1)]
        enabled = [t for t in around if all(marking[p] >= w for p, w in transitions[t]["in"])]
        if not enabled:
            break
        previous = enabled[0]
        for p, w in transitions[previous]["in"]:
            marking[p] -= w
        for p, w in transitions[previous]["out"]:
            marking[p] += w
        fired.append(previous)
    return {"marking": marking, "fired": [fired.count(t) for t in range(count)], "tokens": sum(marking)}, len(fired)


def cellular_automaton(x):
    row, ones = x["cells"], 0
    new = {format(value, "03b"): str(x["rule"] // 2**value % 2) for value in range(8)}
    for _ in range(x["generations"]):
        around = row[-1] + row + row[0] if x["boundary"] == "periodic" else "0" + row + "0"
        row = "".join(new[around[i : i + 3]] for i in range(len(row)))
        ones += row.count("1")
    return {"cells": row, "ones": ones}, len(row) * x["generations"]


def markov_chain(x):
    # One entry for each of the thousand draws, so that no sums are needed.
    chosen = [[j for j, weight in enumerate(row) for _ in range(weight)] for row in x["weights"]]
    path = [x["start"]]
    for u in x["draws"]:
        path.append(chosen[path[-1]][u])
    answer = {
        "final": path[-1],
        "visits": [path.count(s) for s in range(len(x["weights"]))],
        "stays": sum(a == b for a, b in zip(path, path[1:])),
    }
    return answer, len(path) - 1


TASKS = {
    "dfa-simulation": dfa_simulation,
    "nfa-simulation": nfa_simulation,
    "pda-execution": pda_execution,
    "turing-machine": turing_machine,
    "register-machine": register_machine,
    "petri-net": petri_net,
    "cellular-automaton": cellular_automaton,
    "markov-chain": markov_chain,
}
