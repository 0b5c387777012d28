"""Recomputes the answers and step counts of the tasks 72-77 (data structures) from their inputs.

Written from the benchmark's pages alone: each function takes an `input` object and returns (answer, steps).
"""

from collections import OrderedDict, deque


def stack_simulator(given):
    stack, deepest, popped, over, under = [], 0, 0, 0, 0
    for text in given["operations"]:
        word, *values = text.split()
        if word == "push":
            if len(stack) == given["capacity"]:
                over += 1
            else:
                stack += [int(values[0])]
                deepest = max(deepest, len(stack))
        elif not stack:
            under += 1
        elif word == "pop":
            popped += stack.pop()
    answer = {"stack": stack, "max_depth": deepest, "popped_sum": popped, "overflows": over, "underflows": under}
    return answer, len(given["operations"])


def queue_simulator(given):
    """A plain queue with the numbers of all values ever put in: the n-th one lies in cell n mod capacity."""
    capacity = given["capacity"]
    queue, came, went, wraps, taken, full, empty = deque(), 0, 0, 0, 0, 0, 0
    for text in given["operations"]:
        word, *values = text.split()
        if word == "enqueue":
            if len(queue) == capacity:
                full += 1
            else:
                queue.append(int(values[0]))
                wraps += came % capacity == capacity - 1
                came += 1
        elif not queue:
            empty += 1
        elif word == "dequeue":
            taken += queue.popleft()
            wraps += went % capacity == capacity - 1
            went += 1
    cells = [-1] * capacity
    for place, value in enumerate(queue, went):
        cells[place % capacity] = value
    answer = {
        "cells": cells, "head": went % capacity, "tail": came % capacity, "count": came - went, "wraps": wraps,
        "taken_sum": taken, "full": full, "empty": empty,
    }
    return answer, len(given["operations"])


def doubly_linked_list(given):
    """The list as a Python list of [id, value]."""
    nodes, created, visits, errors, steps = [], 0, 0, 0, 0
    for text in given["operations"]:
        word, *numbers = text.split()
        numbers = [int(number) for number in numbers]
        if word == "find":
            values = [value for _, value in nodes]
            if numbers[0] in values:
                passed = values.index(numbers[0]) + 1
                steps += passed
            else:
                passed = len(values)
                steps += passed + 1
            visits += passed
            continue
        steps += 1
        if word in ("push_front", "push_back"):
            nodes.insert(0 if word == "push_front" else len(nodes), [created, numbers[0]])
            created += 1
            continue
        places = [place for place, node in enumerate(nodes) if node[0] == numbers[0]]
        if not places:
            errors += 1
        elif word == "insert_after":
            nodes.insert(places[0] + 1, [created, numbers[1]])
            created += 1
        elif word == "delete":
            del nodes[places[0]]
        elif places[0] > 0:
            nodes.insert(0, nodes.pop(places[0]))
            steps += 1
    backward = [node[0] for node in reversed(nodes)]
    answer = {"forward": nodes, "backward": backward, "created": created, "visits": visits, "errors": errors}
    return answer, steps


def hash_table(given):
    slots = given["slots"]
    table, probes, collisions, full = [-1] * slots, 0, 0, 0
    for text in given["operations"]:
        word, key = text.split()
        key = int(key)
        home = (given["multiplier"] * key + given["offset"]) % slots
        way = [(home + i) % slots for i in range(slots)]
        # The probes end with the first slot that holds the key or nothing.
        ends = [i for i, slot in enumerate(way) if table[slot] in (key, -1)]
        way = way[: ends[0] + 1] if ends else way
        probes += len(way)
        collisions += sum(table[slot] >= 0 and table[slot] != key for slot in way)
        hit = bool(ends) and table[way[-1]] == key
        if word == "insert" and not hit:
            places = [slot for slot in way if table[slot] == -2] + [slot for slot in way if table[slot] == -1]
            if places:
                table[places[0]] = key
            else:
                full += 1
        elif word == "delete" and hit:
            table[way[-1]] = -2
    answer = {
        "table": table, "size": sum(key >= 0 for key in table), "tombstones": table.count(-2), "probes": probes,
        "collisions": collisions, "full": full,
    }
    return answer, probes + len(given["operations"])


def lru_cache(given):
    cache, hits, misses, evictions = OrderedDict(), 0, 0, 0
    for text in given["operations"]:
        word, key, *value = text.split()
        if word == "get":
            hits += key in cache
            misses += key not in cache
        else:
            if key not in cache and len(cache) == given["capacity"]:
                cache.popitem(last=False)
                evictions += 1
            cache[key] = value[0]
        if key in cache:
            cache.move_to_end(key)
    pairs = [[int(key), int(value)] for key, value in reversed(cache.items())]
    answer = {"cache": pairs, "hits": hits, "misses": misses, "evictions": evictions}
    return answer, len(given["operations"])


def union_find(given):
    parent, rank = list(range(given["elements"])), [0] * given["elements"]
    sets, compressed, steps = given["elements"], 0, 0

    def find(v):
        nonlocal compressed, steps
        steps += 1

        def up(v):
            nonlocal compressed
            if parent[v] == v:
                return v
            root = up(parent[v])
            compressed += parent[v] != root
            parent[v] = root
            return root

        return up(v)

    for text in given["operations"]:
        word, *elements = text.split()
        roots = [find(int(element)) for element in elements]
        if word == "find":
            continue
        steps += 1
        if roots[0] != roots[1]:
            # Stable: at equal rank the first stays the root.
            top, below = sorted(roots, key=lambda root: -rank[root])
            rank[top] += rank[top] == rank[below]
            parent[below] = top
            sets -= 1
    return {"parent": parent, "rank": rank, "sets": sets, "compressed": compressed}, steps


TASKS = {
    "stack-simulator": stack_simulator,
    "queue-simulator": queue_simulator,
    "doubly-linked-list": doubly_linked_list,
    "hash-table": hash_table,
    "lru-cache": lru_cache,
    "union-find": union_find,
}
