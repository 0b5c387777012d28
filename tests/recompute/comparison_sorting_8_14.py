"""Comparison sorts, ids 8-14 of PRIME-Bench: answers and step counts recomputed from the pages' `algorithm` alone.

`TASKS` maps a slug to a function from the input object to (answer object, steps).
"""


def cocktail_sort(data):
    a = list(data["a"])
    lo, hi = 0, len(a) - 1
    comparisons = swaps = passes = 0
    while True:
        swapped = False
        places = range(lo, hi) if passes % 2 == 0 else range(hi - 1, lo - 1, -1)
        for i in places:
            comparisons += 1
            if a[i] > a[i + 1]:
                a[i], a[i + 1] = a[i + 1], a[i]
                swaps += 1
                swapped = True
        passes += 1
        if not swapped or hi - lo == 1:
            break
        if passes % 2 == 1:
            hi -= 1
        else:
            lo += 1
    answer = {"sorted": a, "comparisons": comparisons, "swaps": swaps, "passes": passes}
    return answer, comparisons + swaps + passes


def comb_sort(data):
    a = list(data["a"])
    n = len(a)
    gaps = []
    comparisons = swaps = 0
    gap = n
    while True:
        gap = max(1, 10 * gap // 13)
        gaps.append(gap)
        quiet = True
        for i in range(n - gap):
            comparisons += 1
            if a[i] > a[i + gap]:
                a[i], a[i + gap] = a[i + gap], a[i]
                swaps += 1
                quiet = False
        if gap == 1 and quiet:
            break
    answer = {"sorted": a, "gaps": gaps, "comparisons": comparisons, "swaps": swaps}
    return answer, len(gaps) + comparisons + swaps + 1


def gnome_sort(data):
    a = list(data["a"])
    comparisons = swaps = 0
    p = 1
    while p < len(a):
        if p == 0:
            p = 1
            continue
        comparisons += 1
        if a[p - 1] > a[p]:
            a[p - 1], a[p] = a[p], a[p - 1]
            swaps += 1
            p -= 1
        else:
            p += 1
    return {"sorted": a, "comparisons": comparisons, "swaps": swaps}, comparisons + swaps + 1


def odd_even_sort(data):
    a = list(data["a"])
    comparisons = swaps = phases = 0
    swapped = True
    while swapped:
        swapped = False
        for first in (1, 0):
            for i in range(first, len(a) - 1, 2):
                comparisons += 1
                if a[i] > a[i + 1]:
                    a[i], a[i + 1] = a[i + 1], a[i]
                    swaps += 1
                    swapped = True
            phases += 1
    answer = {"sorted": a, "comparisons": comparisons, "swaps": swaps, "phases": phases}
    return answer, comparisons + swaps + phases


def pancake_sort(data):
    a = list(data["a"])
    flips = []
    comparisons = maxima = passes = 0
    for size in range(len(a), 1, -1):
        m = 0
        for j in range(1, size):
            comparisons += 1
            if a[j] > a[m]:
                m = j
                maxima += 1
        if m != size - 1:
            for k in ([m + 1] if m > 0 else []) + [size]:
                a[:k] = a[:k][::-1]
                flips.append(k)
        passes += 1
    answer = {"sorted": a, "flips": flips, "comparisons": comparisons}
    return answer, comparisons + maxima + len(flips) + passes + 1


def cycle_sort(data):
    a = list(data["a"])
    n = len(a)
    writes = cycles = comparisons = 0
    for c in range(n - 1):
        item = a[c]
        puts = 0
        while True:
            comparisons += n - 1 - c
            p = c + sum(x < item for x in a[c + 1:])
            if puts == 0 and p == c:
                break
            while a[p] == item:
                p += 1
            item, a[p] = a[p], item
            puts += 1
            writes += 1
            if p == c:
                cycles += 1
                break
    answer = {"sorted": a, "writes": writes, "cycles": cycles, "comparisons": comparisons}
    return answer, (n - 1) + comparisons + writes + 1


def stooge_sort(data):
    a = list(data["a"])
    counts = {"comparisons": 0, "swaps": 0}

    def sort(low, high):
        counts["comparisons"] += 1
        if a[low] > a[high]:
            a[low], a[high] = a[high], a[low]
            counts["swaps"] += 1
        length = high - low + 1
        if length > 2:
            third = length // 3
            sort(low, high - third)
            sort(low + third, high)
            sort(low, high - third)

    sort(0, len(a) - 1)
    return {"sorted": a, **counts}, counts["comparisons"] + counts["swaps"] + 1


TASKS = {
    "cocktail-sort": cocktail_sort,
    "comb-sort": comb_sort,
    "gnome-sort": gnome_sort,
    "odd-even-sort": odd_even_sort,
    "pancake-sort": pancake_sort,
    "cycle-sort": cycle_sort,
    "stooge-sort": stooge_sort,
}
