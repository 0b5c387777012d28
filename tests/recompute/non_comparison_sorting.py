"""Non-comparison sorts, ids 15-17 of PRIME-Bench: answers and step counts recomputed from the pages alone.

`TASKS` maps a slug to a function from the input object to (answer object, steps).
"""


def counting_sort(data):
    a, k = data["a"], data["k"]
    # A stable sort of the places is the permutation that counting sort arrives at.
    order = sorted(range(len(a)), key=lambda i: a[i])
    positions = [0] * len(a)
    for place, i in enumerate(order):
        positions[i] = place
    starts = [sum(x < v for x in a) for v in range(k + 1)]
    answer = {"sorted": sorted(a), "positions": positions, "starts": starts}
    return answer, 2 * len(a) + k + 1


def radix_sort(data):
    a, d = data["a"], data["d"]
    order = list(range(len(a)))
    sizes = []
    steps = 0
    for digit in range(d):
        buckets = [[] for _ in range(10)]
        for i in order:
            buckets[int(str(a[i]).zfill(d)[d - 1 - digit])].append(i)
            steps += 1
        order = [i for bucket in buckets for i in bucket]
        sizes.append([len(bucket) for bucket in buckets])
        steps += 1
    return {"sorted": [a[i] for i in order], "order": order, "sizes": sizes}, steps + 1


def bucket_sort(data):
    a, count = data["a"], data["buckets"]
    buckets = [[] for _ in range(count)]
    for x in a:
        buckets[x * count // 10**6].append(x)
    steps = len(a)
    comparisons = swaps = 0
    for bucket in buckets:
        for k in range(1, len(bucket)):
            steps += 1
            # An insertion passes every greater value before it and stops at the first that is not greater.
            greater = sum(x > bucket[k] for x in bucket[:k])
            swaps += greater
            comparisons += min(greater + 1, k)
            bucket[:k + 1] = sorted(bucket[:k + 1])
    answer = {
        "sorted": [x for bucket in buckets for x in bucket],
        "sizes": [len(bucket) for bucket in buckets],
        "comparisons": comparisons,
        "swaps": swaps,
    }
    return answer, steps + comparisons + swaps + 2


TASKS = {"counting-sort": counting_sort, "radix-sort": radix_sort, "bucket-sort": bucket_sort}
