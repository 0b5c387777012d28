"""Comparison sorts, ids 0-7 of PRIME-Bench: answers and step counts recomputed from the pages' `algorithm` alone.

`TASKS` maps a slug to a function from the input object to (answer object, steps).
"""


def bubble_sort(data):
    a = list(data["a"])
    n = len(a)
    comparisons = swaps = 0
    for p in range(n - 1):
        quiet = True
        for i in range(n - 1 - p):
            comparisons += 1
            if a[i] > a[i + 1]:
                a[i], a[i + 1] = a[i + 1], a[i]
                swaps += 1
                quiet = False
        if quiet:
            break
    passes = p + 1
    answer = {"sorted": a, "comparisons": comparisons, "swaps": swaps, "passes": passes}
    return answer, comparisons + swaps + passes


def selection_sort(data):
    a = list(data["a"])
    n = len(a)
    selected = []
    new_minima = swaps = 0
    for k in range(n - 1):
        # The running minima after the first cell, each strictly less than those before.
        least = a[k]
        for value in a[k + 1:]:
            if value < least:
                least = value
                new_minima += 1
        m = a.index(least, k)
        selected.append(m)
        if m != k:
            a[k], a[m] = a[m], a[k]
            swaps += 1
    comparisons = n * (n - 1) // 2
    answer = {"sorted": a, "selected": selected, "comparisons": comparisons, "swaps": swaps}
    return answer, comparisons + new_minima + swaps + (n - 1) + 1


def insertion_sort(data):
    a = data["a"]
    n = len(a)
    done = [a[0]]
    positions = []
    comparisons = shifts = 0
    for key in a[1:]:
        greater = sum(x > key for x in done)
        place = len(done) - greater
        shifts += greater
        # One more comparison finds the element that stays, unless the hole is at the front.
        comparisons += greater + (place > 0)
        positions.append(place)
        done.insert(place, key)
    answer = {"sorted": done, "positions": positions, "comparisons": comparisons, "shifts": shifts}
    return answer, 2 * (n - 1) + comparisons + shifts + 1


def shell_sort(data):
    a = list(data["a"])
    n = len(a)
    gaps = [(3**k - 1) // 2 for k in range(20, 0, -1) if (3**k - 1) // 2 < n]
    comparisons, swaps = [], []
    steps = 1
    for h in gaps:
        compared = swapped = 0
        # Each chain of cells a gap apart is sorted on its own; the order of the chains changes no count.
        for first in range(h):
            chain = []
            for value in a[first::h]:
                greater = sum(x > value for x in chain)
                place = len(chain) - greater
                compared += greater + (place > 0)
                swapped += greater
                chain.insert(place, value)
            a[first::h] = chain
        comparisons.append(compared)
        swaps.append(swapped)
        steps += 1 + (n - h) + compared + swapped
    return {"sorted": a, "gaps": gaps, "comparisons": comparisons, "swaps": swaps}, steps


def merge_sort(data):
    merges = []
    other_steps = 0

    def sort(values):
        nonlocal other_steps
        if len(values) < 2:
            return values
        mid = len(values) // 2
        left, right = sort(values[:mid]), sort(values[mid:])
        merged = []
        count = 0
        while left and right:
            count += 1
            merged.append(left.pop(0) if left[0] <= right[0] else right.pop(0))
        merged += left + right
        merges.append(count)
        other_steps += 3 + len(merged)
        return merged

    result = sort(data["a"])
    answer = {"sorted": result, "merges": merges, "comparisons": sum(merges)}
    return answer, other_steps + sum(merges) + 1


def quick_sort(data):
    a = list(data["a"])
    pivots = []
    counts = {"comparisons": 0, "swaps": 0}
    steps = 1

    def partition(lo, hi):
        nonlocal steps
        i = lo - 1
        steps += 2
        for j in range(lo, hi):
            counts["comparisons"] += 1
            steps += 1
            if a[j] < a[hi]:
                i += 1
                a[i], a[j] = a[j], a[i]
                counts["swaps"] += 1
                steps += 1
        a[i + 1], a[hi] = a[hi], a[i + 1]
        counts["swaps"] += 1
        pivots.append(i + 1)
        return i + 1

    def sort(lo, hi):
        if hi - lo >= 1:
            p = partition(lo, hi)
            sort(lo, p - 1)
            sort(p + 1, hi)

    sort(0, len(a) - 1)
    return {"sorted": a, "pivots": pivots, **counts}, steps


def heap_sort(data):
    a = list(data["a"])
    n = len(a)
    counts = {"comparisons": 0, "swaps": 0}

    def sift(node, heap):
        while True:
            children = [c for c in (2 * node + 1, 2 * node + 2) if c < heap]
            counts["comparisons"] += len(children)
            # The earliest of the greatest: node before its children, left before right.
            m = max([node, *children], key=lambda place: a[place])
            if m == node:
                return
            a[node], a[m] = a[m], a[node]
            counts["swaps"] += 1
            node = m

    for r in range(n // 2 - 1, -1, -1):
        sift(r, n)
    built = list(a)
    for e in range(n - 1, 0, -1):
        a[0], a[e] = a[e], a[0]
        sift(0, e)
    steps = n // 2 + 2 * (n - 1) + counts["comparisons"] + counts["swaps"] + 1
    return {"sorted": a, "built": built, **counts}, steps


def tree_sort(data):
    a = data["a"]
    n = len(a)
    # The parent of a node is, of the nodes before it, the one next below it or next above it in order: the later one.
    parent, depth = [-1], [1]
    for k in range(1, n):
        below = max((i for i in range(k) if a[i] <= a[k]), key=lambda i: (a[i], i), default=-1)
        above = min((i for i in range(k) if a[i] > a[k]), key=lambda i: (a[i], i), default=-1)
        parent.append(max(below, above))
        depth.append(depth[parent[k]] + 1)
    # A node is compared with each of its ancestors.
    comparisons = sum(depth) - n
    answer = {"sorted": sorted(a), "parent": parent, "height": max(depth), "comparisons": comparisons}
    return answer, 3 * n + comparisons


TASKS = {
    "bubble-sort": bubble_sort,
    "selection-sort": selection_sort,
    "insertion-sort": insertion_sort,
    "shell-sort": shell_sort,
    "merge-sort": merge_sort,
    "quick-sort": quick_sort,
    "heap-sort": heap_sort,
    "tree-sort": tree_sort,
}
