"""Answers and step counts of the category tree-structures, recomputed from the inputs alone.

Written from the pages (crates/bench/src/tasks/tree_structures/tasks.toml), not from the program: each function takes the `input`
object and returns (answer, steps).
"""

import bisect
import heapq


def bst_insertion(given):
    keys = given["keys"]
    left, right, depth = [-1] * len(keys), [-1] * len(keys), []
    heights, balance, steps = [], [], 0
    placed = []  # (key, node) in order of keys
    below = [0, 0]  # heights of the root's subtrees
    for k, key in enumerate(keys):
        at = bisect.bisect(placed, (key, k))
        # The parent is the younger one of the neighbours in order of keys.
        neighbours = [(placed[at - 1][1], right)] if at > 0 else []
        neighbours += [(placed[at][1], left)] if at < len(placed) else []
        if neighbours:
            parent, links = max(neighbours, key=lambda pair: pair[0])
            links[parent] = k
            depth.append(depth[parent] + 1)
            side = int(key > keys[0])
            below[side] = max(below[side], depth[k])
        else:
            depth.append(0)
        placed.insert(at, (key, k))
        heights.append(1 + max(below))
        balance.append(below[0] - below[1])
        steps += 1 + depth[k]
    return {"left": left, "right": right, "heights": heights, "balance": balance}, steps + 1


def bst_inorder(given):
    key, left, right = given["key"], given["left"], given["right"]
    order, sizes = [], []

    def walk(node, waiting):
        """`waiting`: ancestors whose left subtree holds the node."""
        if node >= 0:
            walk(left[node], waiting + 1)
            order.append(node)
            sizes.append(waiting + 1)
            walk(right[node], waiting)

    walk(given["root"], 0)
    answer = {"inorder": [key[node] for node in order], "order": order, "stack_sizes": sizes}
    return answer, 2 * len(key) + 1


class Node:
    def __init__(self, key, parent):
        self.key, self.parent, self.red, self.child = key, parent, True, [None, None]


class RedBlack:
    """CLRS, with both sides at once: side 0 is left, 1 is right."""

    def __init__(self):
        self.root, self.rotations, self.cases, self.steps = None, [0, 0], [], 0

    def rotate(self, x, side):
        y = x.child[1 - side]
        x.child[1 - side] = y.child[side]
        if y.child[side]:
            y.child[side].parent = x
        y.parent = x.parent
        if x.parent is None:
            self.root = y
        else:
            x.parent.child[x.parent.child.index(x)] = y
        y.child[side] = x
        x.parent = y
        self.rotations[side] += 1

    def insert(self, key):
        parent, x = None, self.root
        while x:
            parent, x = x, x.child[key > x.key]
        z = Node(key, parent)
        if parent:
            parent.child[key > parent.key] = z
        else:
            self.root = z
        cases = []
        while z.parent and z.parent.red:
            g = z.parent.parent
            side = g.child.index(z.parent)
            uncle = g.child[1 - side]
            if uncle and uncle.red:
                cases.append(1)
                z.parent.red = uncle.red = False
                g.red = True
                z = g
            elif z is z.parent.child[1 - side]:
                cases.append(2)
                z = z.parent
                self.rotate(z, side)
            else:
                cases.append(3)
                z.parent.red = False
                g.red = True
                self.rotate(g, 1 - side)
        self.cases.append(cases)
        self.steps += 1 + len(cases) + self.root.red
        self.root.red = False


def red_black_insert(given):
    tree = RedBlack()
    for key in given["keys"]:
        tree.insert(key)

    def preorder(node):
        if node is None:
            return []
        return [[node.key, "R" if node.red else "B"]] + preorder(node.child[0]) + preorder(node.child[1])

    node, height = tree.root, 0
    while node:
        height += not node.red
        node = node.child[1]
    answer = {
        "preorder": preorder(tree.root),
        "cases": tree.cases,
        "rotations": tree.rotations,
        "black_height": height,
    }
    return answer, tree.steps + 1


def huffman_tree(given):
    freq = given["freq"]
    n = len(freq)
    heap = [(weight, node) for node, weight in enumerate(freq)]
    heapq.heapify(heap)
    held = {node: {node: ""} for node in range(n)}  # codes of the symbols below a node
    merges, cost = [], 0
    for node in range(n, 2 * n - 1):
        (a, x), (b, y) = heapq.heappop(heap), heapq.heappop(heap)
        merges.append([x, y])
        cost += a + b  # the weights of inner nodes add up to the cost
        held[node] = {i: bit + code for bit, part in (("0", x), ("1", y)) for i, code in held[part].items()}
        heapq.heappush(heap, (a + b, node))
    codes = [held[2 * n - 2][i] for i in range(n)]
    return {"merges": merges, "codes": codes, "lengths": [len(code) for code in codes], "cost": cost}, 2 * n


def heap_operations(given):
    heap, extracted, swaps = [None], [], 0  # from place 1 on: the parent of i is i // 2
    for op in given["ops"]:
        if op == "extract":
            extracted.append(heap[1])
            x, i = heap.pop(), 1
            while len(heap) > 1:
                least = min(heap[2 * i : 2 * i + 2], default=x)
                if least >= x:
                    heap[i] = x
                    break
                j = heap.index(least, 2 * i)
                heap[i], i = least, j
                swaps += 1
        else:
            x, i = int(op.split()[1]), len(heap)
            heap.append(x)
            while i > 1 and x < heap[i // 2]:
                heap[i], i = heap[i // 2], i // 2
                swaps += 1
            heap[i] = x
    return {"extracted": extracted, "heap": heap[1:], "swaps": swaps}, len(given["ops"]) + swaps + 1


TASKS = {
    "bst-insertion": bst_insertion,
    "bst-inorder": bst_inorder,
    "red-black-insert": red_black_insert,
    "huffman-tree": huffman_tree,
    "heap-operations": heap_operations,
}
