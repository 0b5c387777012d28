"""Answers and step counts of the category graph-traversal, recomputed from the inputs alone.

Written from the pages (crates/bench/src/tasks/graph_traversal/tasks.toml), not from the program: each function takes the `input`
object and returns (answer, steps).
"""

import heapq


def dfs_on_tree(given):
    n = given["n"]
    near = [[] for _ in range(n)]
    for u, v in given["edges"]:
        near[u].append(v)
        near[v].append(u)
    order, discover, finish, parent = [], [0] * n, [0] * n, [-1] * n
    # A vertex on the list is to be entered, its complement to be left.
    time, todo = 0, [0]
    while todo:
        v = todo.pop()
        time += 1
        if v < 0:
            finish[~v] = time
            continue
        discover[v] = time
        order.append(v)
        todo.append(~v)
        for child in sorted(near[v], reverse=True):
            if child != parent[v]:
                parent[child] = v
                todo.append(child)
    return {"order": order, "discover": discover, "finish": finish, "parent": parent}, time + 1


def bfs_on_graph(given):
    n = given["n"]
    edges = given["edges"] + [[v, u] for u, v in given["edges"]]
    level, parent, order = [-1] * n, [-1] * n, []
    layer, depth = [0], 0
    while layer:
        for v in layer:
            level[v] = depth
        order += layer
        place = {v: at for at, v in enumerate(layer)}
        # A new vertex belongs to the first vertex of the layer that is joined to it.
        first = {}
        for u, v in edges:
            if u in place and level[v] < 0:
                first[v] = min(first.get(v, n), place[u])
        for v, at in first.items():
            parent[v] = layer[at]
        layer = sorted(first, key=lambda v: (first[v], v))
        depth += 1
    return {"order": order, "level": level, "parent": parent}, 2 * n


def dijkstra(given):
    n, edges = given["n"], given["edges"]
    # Bellman-Ford; weights are positive, so that vertices go out in order of (distance, number).
    dist = [0] + [None] * (n - 1)
    for _ in range(n):
        for u, v, w in edges:
            if dist[u] is not None and (dist[v] is None or dist[u] + w < dist[v]):
                dist[v] = dist[u] + w
    order = sorted(range(n), key=lambda v: (dist[v], v))
    place = {v: at for at, v in enumerate(order)}
    # The first predecessor on a shortest path stays.
    pred = [-1] * n
    for u, v, w in sorted(edges, key=lambda edge: -place[edge[0]]):
        if v != 0 and dist[u] + w == dist[v]:
            pred[v] = u
    return {"dist": dist, "pred": pred, "order": order}, n + len(edges) + 1


def a_star(given):
    n, grid = given["n"], given["grid"]
    start, goal = divmod(given["start"], n), divmod(given["goal"], n)

    def h(cell):
        return abs(cell[0] - goal[0]) + abs(cell[1] - goal[1])

    g, parent, expanded, estimates, openings = {start: 0}, {}, [], [], 0
    # Entries of cells that were opened again on a shorter way are out of date and passed over.
    heap = [(h(start), h(start), start, 0)]
    while True:
        f, _, cell, cost = heapq.heappop(heap)
        if cost != g[cell]:
            continue
        expanded.append(cell)
        estimates.append(f)
        if cell == goal:
            break
        r, c = cell
        for v in [(r - 1, c), (r, c - 1), (r, c + 1), (r + 1, c)]:
            if min(v) >= 0 and max(v) < n and grid[v[0]][v[1]] == "." and cost + 1 < g.get(v, n * n + 1):
                g[v], parent[v] = cost + 1, cell
                openings += 1
                heapq.heappush(heap, (cost + 1 + h(v), h(v), v, cost + 1))
    path = [goal]
    while path[-1] != start:
        path.append(parent[path[-1]])
    numbers = [[r * n + c for r, c in cells] for cells in (path[::-1], expanded)]
    answer = {"path": numbers[0], "cost": g[goal], "expanded": numbers[1], "f": estimates}
    return answer, len(expanded) + openings + 1


def floyd_warshall(given):
    n, far = given["n"], float("inf")
    dist = [[far if x is None else x for x in row] for row in given["w"]]
    updates = []
    for k in range(n):
        # A round changes neither row k nor column k, so that it can be taken from the matrix before it.
        after = [[min(dist[i][j], dist[i][k] + dist[k][j]) for j in range(n)] for i in range(n)]
        updates.append(sum(after[i][j] < dist[i][j] for i in range(n) for j in range(n)))
        dist = after
    answer = {"dist": [[None if x == far else x for x in row] for row in dist], "updates": updates}
    return answer, n + sum(updates) + 1


def topological_sort(given):
    n, edges = given["n"], given["edges"]
    before = [{u for u, w in edges if w == v} for v in range(n)]
    order = [v for v in range(n) if not before[v]]
    # A vertex joins the list when its last predecessor goes out.
    for at in range(n):
        gone = set(order[: at + 1])
        listed = set(order)
        order += [v for v in range(n) if v not in listed and before[v] <= gone]
    place = {v: at for at, v in enumerate(order)}
    ready = [1 + max((place[u] for u in before[v]), default=-1) for v in range(n)]
    return {"order": order, "ready": ready}, n + len(edges) + 1


TASKS = {
    "dfs-on-tree": dfs_on_tree,
    "bfs-on-graph": bfs_on_graph,
    "dijkstra": dijkstra,
    "a-star": a_star,
    "floyd-warshall": floyd_warshall,
    "topological-sort": topological_sort,
}
