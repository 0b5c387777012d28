"""Answers and step counts of the advanced sorts (tasks 18 to 27), from their pages alone.

Each function takes the `input` object and returns (answer, steps). Plain runs of the page's algorithm, with no notion of
states or action lines; what can be had from the result alone (final layouts, sorted orders) is.
"""

import bisect
from itertools import groupby


def timsort(data):
    a = list(data["a"])
    n = len(a)
    m, b = n, 0
    while m >= 64:
        b, m = b | (m & 1), m >> 1
    minrun = m + b
    natural, pushed, merges = [], [], []
    runs = []  # the runs themselves, as lists
    count = {"gallops": 0, "comparisons": 0, "lines": 0}

    def merge(x, y):
        merges.append([len(x), len(y)])
        out, side, streak = [], None, 0
        x, y = list(x), list(y)
        while x and y:
            count["lines"] += 1
            if streak == 7:
                count["gallops"] += 1
                if side == "x":
                    c = bisect.bisect_right(x, y[0])
                    out, x = out + x[:c], x[c:]
                else:
                    c = bisect.bisect_left(y, x[0])
                    out, y = out + y[:c], y[c:]
                side, streak = None, 0
                continue
            count["comparisons"] += 1
            winner = "y" if y[0] < x[0] else "x"
            streak = streak + 1 if winner == side else 1
            side = winner
            out.append((y if winner == "y" else x).pop(0))
        count["lines"] += 2  # merge, rest
        return out + x + y

    def lengths():
        return [len(run) for run in runs]

    def collapse():
        s = lengths()
        return (
            s[-2] <= s[-1]
            or (len(s) >= 3 and s[-3] <= s[-2] + s[-1])
            or (len(s) >= 4 and s[-4] <= s[-3] + s[-2])
        )

    pos = 0
    while pos < n:
        e = pos + 1
        if e < n and a[e] < a[pos]:
            while e < n and a[e] < a[e - 1]:
                e += 1
            run = a[pos:e][::-1]
        else:
            while e < n and a[e] >= a[e - 1]:
                e += 1
            run = a[pos:e]
        natural.append(len(run))
        for value in a[e : pos + minrun]:
            bisect.insort_right(run, value)
            count["lines"] += 1
        pushed.append(len(run))
        pos += len(run)
        runs.append(run)
        count["lines"] += 2  # run, push
        while len(runs) >= 2 and (pos == n or collapse()):
            s = lengths()
            t = len(s) - 3 if len(s) >= 3 and s[-3] < s[-1] else len(s) - 2
            runs[t : t + 2] = [merge(runs[t], runs[t + 1])]
    answer = {
        "sorted": runs[0],
        "minrun": minrun,
        "natural": natural,
        "runs": pushed,
        "merges": merges,
        "gallops": count["gallops"],
        "comparisons": count["comparisons"],
    }
    return answer, count["lines"] + 1


def introsort(data):
    a = list(data["a"])
    n = len(a)
    limit = 2 * (n.bit_length() - 1)
    pivots, heaps = [], []
    total = {"leaves": 0, "comparisons": 0, "swaps": 0, "lines": 1}

    def sort(lo, hi, depth):
        z = hi - lo
        if z < 2:
            return
        if z <= 16:
            total["leaves"] += 1
            total["lines"] += z  # leaf, and z - 1 insertions
            a[lo:hi] = sorted(a[lo:hi])
        elif depth == 0:
            heaps.append([lo, hi])
            total["lines"] += 1 + z // 2 + 2 * (z - 1)  # heap; building sifts; pop and sift
            a[lo:hi] = sorted(a[lo:hi])
        else:
            places = sorted((a[q], q) for q in (lo, lo + z // 2, hi - 1))
            m = places[1][1]
            a[m], a[hi - 1] = a[hi - 1], a[m]
            x = a[hi - 1]
            i = lo
            for j in range(lo, hi - 1):
                total["comparisons"] += 1
                if a[j] < x:
                    a[i], a[j] = a[j], a[i]
                    i += 1
            total["swaps"] += i - lo
            total["lines"] += 3 + (z - 1) + (i - lo)  # part, median, pivot
            a[i], a[hi - 1] = a[hi - 1], a[i]
            pivots.append(i)
            sort(lo, i, depth - 1)
            sort(i + 1, hi, depth - 1)

    sort(0, n, limit)
    answer = {
        "sorted": a,
        "depth_limit": limit,
        "pivots": pivots,
        "heaps": heaps,
        "leaves": total["leaves"],
        "comparisons": total["comparisons"],
        "swaps": total["swaps"],
    }
    return answer, total["lines"]


def patience_sort(data):
    a = data["a"]
    tops, sizes, chains = [], [], []  # chains: the increasing subsequence that ends in each pile's top
    for value in a:
        p = bisect.bisect_left(tops, value)
        chain = (chains[p - 1] if p > 0 else []) + [value]
        if p == len(tops):
            tops.append(value)
            sizes.append(1)
            chains.append(chain)
        else:
            tops[p], chains[p] = value, chain
            sizes[p] += 1
    # The card last dealt to the rightmost pile is its top.
    return {"sorted": sorted(a), "pile_sizes": sizes, "lis": chains[-1]}, 2 * len(a) + 1


def strand_sort(data):
    rest, out = list(data["a"]), []
    strands, comparisons, steps = [], 0, 1
    while rest:
        strand, left = [rest[0]], []
        for value in rest[1:]:
            (strand if value >= strand[-1] else left).append(value)
        comparisons += len(rest) - 1
        steps += len(rest)
        rest = left
        strands.append(len(strand))
        steps += len(out) + len(strand) + 1
        # Compared until one of the lists is used up: those before the other list's end in the merged order.
        merged = sorted([(v, 0) for v in out] + [(v, 1) for v in strand])
        if out:
            last = {side: max(i for i, (_, s) in enumerate(merged) if s == side) for side in (0, 1)}
            comparisons += min(last.values()) + 1
        out = [v for v, _ in merged]
    return {"sorted": out, "strands": strands, "comparisons": comparisons}, steps


def network(a, stages):
    """Runs the comparators (lower, upper, descending) of each stage."""
    a, swaps, comparisons = list(a), [], 0
    for comparators in stages:
        swaps.append(0)
        for i, j, descending in comparators:
            comparisons += 1
            if a[i] != a[j] and (a[i] > a[j]) != descending:
                a[i], a[j] = a[j], a[i]
                swaps[-1] += 1
    answer = {"sorted": a, "stage_swaps": swaps, "comparisons": comparisons, "swaps": sum(swaps)}
    return answer, len(swaps) + comparisons + sum(swaps) + 1


def bitonic_sort(data):
    n = len(data["a"])
    stages, k = [], 2
    while k <= n:
        j = k // 2
        while j >= 1:
            stages.append([(i, i ^ j, i & k != 0) for i in range(n) if i ^ j > i])
            j //= 2
        k *= 2
    return network(data["a"], stages)


def batcher_merge(data):
    n = len(data["a"])
    stages, p = [], 1
    while p < n:
        k = p
        while k >= 1:
            stage = []
            j = k % p
            while j < n - k:
                for i in range(j, min(j + k, n - k)):
                    if i // (2 * p) == (i + k) // (2 * p):
                        stage.append((i, i + k, False))
                j += 2 * k
            stages.append(stage)
            k //= 2
        p *= 2
    return network(data["a"], stages)


def library_sort(data):
    a = data["a"]
    n = len(a)
    values, places, size = [], [], 1  # elements in order, their cells, number of cells
    rebalances = shifts = comparisons = 0
    for k, value in enumerate(a):
        if k > 0 and k & (k - 1) == 0:
            rebalances += 1
            places, size = [4 * rank for rank in range(k)], 4 * k
        lo, hi = 0, k
        while lo < hi:
            mid = (lo + hi) // 2
            comparisons += 1
            if values[mid] <= value:
                lo = mid + 1
            else:
                hi = mid
        p = places[lo - 1] if lo > 0 else -1
        q = places[lo] if lo < k else size
        used = set(places)
        free_after = [c for c in range(p + 1, size) if c not in used]
        if q - p > 1:
            c = p + (q - p) // 2
        else:
            c = p + 1 if free_after else p
        if c in used:
            after = [g for g in free_after if g > c]
            if after:
                g = after[0]
                shifts += g - c
                places = [x + 1 if c <= x < g else x for x in places]
            else:
                g = max(x for x in range(c) if x not in used)
                shifts += c - g
                places = [x - 1 if g < x <= c else x for x in places]
        values.insert(lo, value)
        places = sorted(places + [c])
    answer = {
        "sorted": values,
        "layout": places,
        "rebalances": rebalances,
        "shifts": shifts,
        "comparisons": comparisons,
    }
    return answer, n + rebalances + comparisons + 1


def smoothsort(data):
    a = list(data["a"])
    n = len(a)
    leonardo = [1, 1]
    while leonardo[-1] <= n:
        leonardo.append(leonardo[-1] + leonardo[-2] + 1)
    shape = []
    swaps = fixes = 0

    def root(t):
        return sum(leonardo[o] for o in shape[: t + 1]) - 1

    def children(r, o):
        return (r - 1 - leonardo[o - 2], o - 1), (r - 1, o - 2)

    def fix(t):
        nonlocal swaps, fixes
        fixes += 1
        while t > 0:
            r, q = root(t), root(t - 1)
            below = [a[c] for c, _ in children(r, shape[t])] if shape[t] >= 2 else []
            if not all(a[q] > x for x in [a[r]] + below):
                break
            a[q], a[r] = a[r], a[q]
            swaps += 1
            t -= 1
        r, o = root(t), shape[t]
        while o >= 2:
            left, right = children(r, o)
            child = right if a[right[0]] > a[left[0]] else left
            if a[child[0]] <= a[r]:
                break
            a[r], a[child[0]] = a[child[0]], a[r]
            swaps += 1
            r, o = child

    for _ in range(n):
        if len(shape) >= 2 and shape[-2] == shape[-1] + 1:
            shape[-2:] = [shape[-2] + 1]
        else:
            shape.append(0 if shape and shape[-1] == 1 else 1)
        fix(len(shape) - 1)
    built, shape_built = list(a), list(shape)
    for _ in range(n):
        o = shape.pop()
        if o >= 2:
            shape += [o - 1, o - 2]
            fix(len(shape) - 2)
            fix(len(shape) - 1)
    answer = {"sorted": a, "built": built, "shape_built": shape_built, "swaps": swaps}
    return answer, 2 * n + fixes + swaps + 1


def block_sort(data):
    a = data["a"]
    n = len(a)
    blocks = [sorted(a[b : b + 16]) for b in range(0, n, 16)]
    steps = n - len(blocks)
    merges = rotations = moved = 0
    while len(blocks) > 1:
        level = []
        for x, y in zip(blocks[::2], blocks[1::2]):
            merges += 1
            merged = sorted([(v, 0) for v in x] + [(v, 1) for v in y])
            # Each stretch of the right half that goes before some of the left is rotated past what is left of the left.
            left = len(x)
            for side, stretch in groupby(side for _, side in merged):
                length = len(list(stretch))
                if side == 0:
                    left -= length
                elif left > 0:
                    rotations += 1
                    moved += left + length
            level.append([v for v, _ in merged])
        if len(blocks) % 2 == 1:
            level.append(blocks[-1])
        blocks = level
    answer = {"sorted": blocks[0], "merges": merges, "rotations": rotations, "moved": moved}
    return answer, steps + merges + rotations + 1


def tournament_sort(data):
    a = data["a"]
    n = len(a)
    size = 1
    while size < n:
        size *= 2
    present = [i < n for i in range(size)]

    def players(v):
        """The leaves below node v."""
        level = (v + 1).bit_length() - 1
        width = size >> level
        start = (v + 1 - (1 << level)) * width
        return [i for i in range(start, start + width) if present[i]]

    def winner(v):
        return min(players(v), key=lambda i: (a[i], i), default=-1)

    def is_match(v):
        return bool(players(2 * v + 1)) and bool(players(2 * v + 2))

    built = [winner(v) for v in range(size - 1)]
    matches = sum(is_match(v) for v in range(size - 1))
    order = sorted(range(n), key=lambda i: (a[i], i))
    for w in order:
        present[w] = False
        v = size - 1 + w
        while v > 0:
            v = (v - 1) // 2
            matches += is_match(v)
    answer = {"sorted": [a[i] for i in order], "order": order, "built": built, "matches": matches}
    return answer, size + n * (1 + size.bit_length() - 1)


TASKS = {
    "timsort": timsort,
    "introsort": introsort,
    "patience-sort": patience_sort,
    "strand-sort": strand_sort,
    "bitonic-sort": bitonic_sort,
    "batcher-merge": batcher_merge,
    "library-sort": library_sort,
    "smoothsort": smoothsort,
    "block-sort": block_sort,
    "tournament-sort": tournament_sort,
}
