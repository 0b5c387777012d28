"""Mathematical tasks, ids 58-65 of PRIME-Bench: answers and step counts recomputed from the pages alone.

Fractions, built-in integers and recursive trees throughout. `TASKS` maps a slug to a function from the input object to
(answer object, steps).
"""

import math
import sys
from fractions import Fraction

sys.setrecursionlimit(100_000)


def long_division(data):
    quotient, remainder = divmod(int(data["dividend"]), int(data["divisor"]))
    return {"quotient": str(quotient), "remainder": str(remainder)}, len(data["dividend"])


def matrix_multiply(data):
    a, b = data["a"], data["b"]
    product = [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]
    return {"product": product}, len(a) ** 3


def gaussian_elimination(data):
    n = len(data["rhs"])
    rows = [[Fraction(x) for x in row] + [Fraction(r)] for row, r in zip(data["matrix"], data["rhs"])]
    steps = swaps = 0
    for k in range(n):
        p = next(p for p in range(k, n) if rows[p][k] != 0)
        if p != k:
            rows[k], rows[p] = rows[p], rows[k]
            swaps += 1
            steps += 1
        for i in range(k + 1, n):
            if rows[i][k] != 0:
                f = rows[i][k] / rows[k][k]
                rows[i] = [x - f * y for x, y in zip(rows[i], rows[k])]
                steps += 1
    x = [Fraction(0)] * n
    for i in reversed(range(n)):
        x[i] = (rows[i][n] - sum(rows[i][j] * x[j] for j in range(i + 1, n))) / rows[i][i]
        steps += 1
    assert all(sum(c * v for c, v in zip(row, x)) == r for row, r in zip(data["matrix"], data["rhs"]))
    pivots = [rows[k][k] for k in range(n)]
    determinant = laplace([tuple(row) for row in data["matrix"]])
    return {
        "solution": [str(v) for v in x],
        "pivots": [str(v) for v in pivots],
        "swaps": swaps,
        "determinant": str(determinant),
    }, steps


def laplace(matrix):
    """The determinant, expanded along the rows; minors of the last rows are kept by their set of columns."""
    n = len(matrix)
    minors = {frozenset(): 1}
    for row in reversed(matrix):
        larger = {}
        for columns, minor in minors.items():
            for column in range(n):
                if column not in columns:
                    sign = (-1) ** sum(other < column for other in columns)
                    key = columns | {column}
                    larger[key] = larger.get(key, 0) + sign * row[column] * minor
        minors = larger
    return minors[frozenset(range(n))]


def gcd_euclidean(data):
    a, b = data["a"], data["b"]

    def bezout(a, b):
        if b == 0:
            return a, 1, 0, 0
        g, x, y, steps = bezout(b, a % b)
        return g, y, x - a // b * y, steps + 1

    gcd, x, y, steps = bezout(a, b)
    assert gcd == math.gcd(a, b) and x * a + y * b == gcd
    return {"gcd": gcd, "x": x, "y": y}, steps


def simplex_method(data):
    c, a, b = data["c"], data["a"], data["b"]
    n, m = len(c), len(b)
    # The dictionary of each basis, solved anew from the input: no tableau is carried along.
    columns = [[Fraction(a[i][j]) for i in range(m)] for j in range(n)]
    columns += [[Fraction(int(i == j)) for i in range(m)] for j in range(m)]
    costs = [Fraction(x) for x in c] + [Fraction(0)] * m
    basis = [n + i for i in range(m)]
    pivots, steps = [], 0
    while True:
        inverse = invert([[columns[j][i] for j in basis] for i in range(m)])

        def solved(column):
            return [sum(x * y for x, y in zip(row, column)) for row in inverse]

        rhs = solved([Fraction(x) for x in b])
        table = [solved(column) for column in columns]
        reduced = [sum(costs[basis[i]] * table[j][i] for i in range(m)) - costs[j] for j in range(n + m)]
        entering = next((j for j in range(n + m) if reduced[j] < 0), None)
        if entering is None:
            break
        rows = [i for i in range(m) if table[entering][i] > 0]
        row = min(rows, key=lambda i: (rhs[i] / table[entering][i], basis[i]))
        steps += 3 + sum(i != row and table[entering][i] != 0 for i in range(m))
        pivots.append([entering, row])
        basis[row] = entering
    value = {j: rhs[i] for i, j in enumerate(basis)}
    solution = [value.get(j, Fraction(0)) for j in range(n)]
    total = sum(x * y for x, y in zip(c, solution))
    return {
        "value": str(total),
        "solution": [str(x) for x in solution],
        "basis": basis,
        "pivots": pivots,
    }, steps


def invert(matrix):
    """Gauss and Jordan."""
    n = len(matrix)
    rows = [list(row) + [Fraction(int(i == j)) for j in range(n)] for i, row in enumerate(matrix)]
    for k in range(n):
        p = next(p for p in range(k, n) if rows[p][k] != 0)
        rows[k], rows[p] = rows[p], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(n):
            if i != k:
                rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k])]
    return [row[n:] for row in rows]


def polynomial_gcd(data):
    # Lowest degree first here.
    a = [Fraction(x) for x in reversed(data["p"])]
    b = [Fraction(x) for x in reversed(data["q"])]
    degrees, divisions, steps = [len(a) - 1, len(b) - 1], 0, 0
    while b:
        divisions += 1
        for degree in reversed(range(len(b) - 1, len(a))):
            c = a[degree] / b[-1]
            if c != 0:
                steps += 1
                for i, x in enumerate(b):
                    a[degree - len(b) + 1 + i] -= c * x
        rest = a[: len(b) - 1]
        while rest and rest[-1] == 0:
            rest.pop()
        if rest:
            degrees.append(len(rest) - 1)
            steps += rest[-1] != 1
            rest = [x / rest[-1] for x in rest]
        a, b = b, rest
    steps += a[-1] != 1
    gcd = [str(x / a[-1]) for x in reversed(a)]
    return {"gcd": gcd, "degrees": degrees, "divisions": divisions}, steps


def continued_fraction(data):
    x = Fraction(int(data["numerator"]), int(data["denominator"]))
    terms = []
    while True:
        terms.append(math.floor(x))
        if x == terms[-1]:
            break
        x = 1 / (x - terms[-1])
    convergents = []
    for i in range(len(terms)):
        value = Fraction(terms[i])
        for term in reversed(terms[:i]):
            value = term + 1 / value
        convergents.append(str(value))
    return {"terms": terms, "convergents": convergents}, len(terms)


def parse(text):
    """Nested tuples of an expression."""
    tokens = text.replace("(", " ( ").replace(")", " ) ").split()

    def item(at):
        if tokens[at] != "(":
            return (tokens[at] if tokens[at] == "x" else int(tokens[at])), at + 1
        parts, at = [tokens[at + 1]], at + 2
        while tokens[at] != ")":
            part, at = item(at)
            parts.append(part)
        return tuple(parts), at + 1

    return item(0)[0]


def text_of(e):
    return "(" + " ".join(text_of(part) for part in e) + ")" if isinstance(e, tuple) else str(e)


def nodes_of(e):
    if not isinstance(e, tuple):
        return 1
    return 1 + sum(nodes_of(part) for part in (e[1:2] if e[0] == "^" else e[1:]))


def build(op, u, v):
    ints = isinstance(u, int) and isinstance(v, int)
    if op == "+":
        return u + v if ints else v if u == 0 else u if v == 0 else (op, u, v)
    if op == "-":
        return u - v if ints else u if v == 0 else (op, u, v)
    if op == "*":
        return u * v if ints else 0 if 0 in (u, v) else v if u == 1 else u if v == 1 else (op, u, v)
    if op == "/":
        return 0 if u == 0 else u if v == 1 else (op, u, v)
    return u if v == 1 else (op, u, v)


def derive(e):
    if e == "x":
        return 1
    if isinstance(e, int):
        return 0
    op, a = e[0], e[1]
    da = derive(a)
    if op == "^":
        return build("*", build("*", e[2], build("^", a, e[2] - 1)), da)
    if op == "sin":
        return build("*", ("cos", a), da)
    if op == "cos":
        return build("*", build("-", 0, ("sin", a)), da)
    if op == "exp":
        return build("*", ("exp", a), da)
    if op == "ln":
        return build("/", da, a)
    b = e[2]
    db = derive(b)
    if op in "+-":
        return build(op, da, db)
    left, right = build("*", da, b), build("*", a, db)
    if op == "*":
        return build("+", left, right)
    return build("/", build("-", left, right), build("^", b, 2))


def symbolic_diff(data):
    e = parse(data["expression"])
    derivative = derive(e)
    return {"derivative": text_of(derivative), "nodes": nodes_of(derivative)}, nodes_of(e)


TASKS = {
    "long-division": long_division,
    "matrix-multiply": matrix_multiply,
    "gaussian-elimination": gaussian_elimination,
    "gcd-euclidean": gcd_euclidean,
    "simplex-method": simplex_method,
    "polynomial-gcd": polynomial_gcd,
    "continued-fraction": continued_fraction,
    "symbolic-diff": symbolic_diff,
}
