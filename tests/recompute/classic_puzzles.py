"""Answers and step counts of the classic puzzles, recomputed from their inputs as the pages say.

Each function takes the `input` object of an instance and returns (answer, steps).
"""

from fractions import Fraction


def tower_of_hanoi(task):
    """Closed form: disk k moves 2^(n-k) times, always round in the same direction."""
    n, start, goal = task["n"], task["from"], task["to"]
    other = 3 - start - goal
    pairs = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
    pair_moves = dict.fromkeys(pairs, 0)
    for k in range(1, n + 1):
        # The largest disk goes straight; every smaller one goes the other way round than the one below it.
        cycle = [start, goal, other] if (n - k) % 2 == 0 else [start, other, goal]
        moves = 2 ** (n - k)
        for place in range(3):
            times = moves // 3 + (1 if place < moves % 3 else 0)
            pair_moves[cycle[place], cycle[(place + 1) % 3]] += times
    pegs = [[], [], []]
    pegs[goal] = list(range(n, 0, -1))
    answer = {
        "moves": 2**n - 1,
        "disk_moves": [2 ** (n - k) for k in range(1, n + 1)],
        "pair_moves": [pair_moves[pair] for pair in pairs],
        "pegs": pegs,
    }
    return answer, 2**n - 1


def n_queens(task):
    """Recursion with sets of columns and diagonals; a step back is a queen whose subtree fails."""
    n, order = task["n"], task["order"]
    columns, sums, differences = set(), set(), set()
    queens = []
    counts = {"place": 0, "back": 0}

    def search(row):
        if row == n:
            return True
        for c in order:
            if c in columns or row + c in sums or row - c in differences:
                continue
            columns.add(c), sums.add(row + c), differences.add(row - c), queens.append(c)
            counts["place"] += 1
            if search(row + 1):
                return True
            columns.remove(c), sums.remove(row + c), differences.remove(row - c), queens.pop()
            counts["back"] += 1
        return False

    search(0)
    return {"queens": queens, "backtracks": counts["back"]}, counts["place"] + counts["back"]


def last_queen(task):
    """Tries every column."""
    n, queens = task["n"], task["queens"]
    fits = [
        c
        for c in range(n)
        if all(c != q and abs(c - q) != n - 1 - row for row, q in enumerate(queens))
    ]
    assert len(fits) == 1 and len(queens) == n - 1
    return {"column": fits[0]}, 1


def blind_maze(task):
    """Finds the path on the open map, then counts what the blind walk spends on each cell."""
    rows, cols, passages = task["rows"], task["cols"], task["passages"]
    doors = {cell: {} for cell in range(rows * cols)}
    for r in range(rows):
        for c in range(cols):
            cell, digit = r * cols + c, int(passages[r][c])
            if digit & 1:
                doors[cell]["E"], doors[cell + 1]["W"] = cell + 1, cell
            if digit & 2:
                doors[cell]["S"], doors[cell + cols]["N"] = cell + cols, cell
    assert sum(map(len, doors.values())) == 2 * (rows * cols - 1)
    opposite = {"N": "S", "E": "W", "S": "N", "W": "E"}

    stack, path = [(task["start"], "")], None
    while stack:
        cell, way = stack.pop()
        if cell == task["goal"]:
            path = way
        for d, there in doors[cell].items():
            if not way or d != opposite[way[-1]]:
                stack.append((there, way + d))

    def whole(cell, entered):
        """Moves and bumps of a whole subtree, the way back out of it included."""
        moves = bumps = 0
        todo = [(cell, entered)]
        while todo:
            at, came = todo.pop()
            moves += 1
            for d in "NESW":
                if d == opposite.get(came):
                    continue
                if d in doors[at]:
                    todo.append((doors[at][d], d))
                    moves += 1
                else:
                    bumps += 1
        return moves, bumps

    moves = bumps = 0
    cell, came = task["start"], None
    for step in path:
        for d in "NESW":
            if d == opposite.get(came):
                continue
            if d == step:
                break
            if d in doors[cell]:
                below = whole(doors[cell][d], d)
                moves, bumps = moves + 1 + below[0], bumps + below[1]
            else:
                bumps += 1
        moves += 1
        cell, came = doors[cell][step], step
    return {"path": path, "length": len(path), "moves": moves, "bumps": bumps}, moves + bumps


def logic_grid(task):
    """Backtracking, the item with the fewest houses first; every elimination is needed, whatever its order."""
    n, k = task["n"], task["k"]
    clues = [clue.split() for clue in task["clues"]]
    holds = {
        "same": lambda x, y: x == y,
        "left": lambda x, y: x + 1 == y,
        "next": lambda x, y: abs(x - y) == 1,
    }
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[:k]
    items = [letter + str(value) for letter in letters for value in range(n)]
    houses, found = {}, []

    def fits(item, house):
        for other in houses:
            if other[0] == item[0] and houses[other] == house:
                return False
        for word, x, y in clues:
            if word == "at":
                if x == item and house != int(y):
                    return False
            elif x == item and y in houses and not holds[word](house, houses[y]):
                return False
            elif y == item and x in houses and not holds[word](houses[x], house):
                return False
        return True

    def search():
        open_items = [item for item in items if item not in houses]
        if not open_items:
            found.append(dict(houses))
            return
        options = {item: [h for h in range(n) if fits(item, h)] for item in open_items}
        item = min(open_items, key=lambda item: len(options[item]))
        for house in options[item]:
            houses[item] = house
            search()
            del houses[item]

    search()
    assert len(found) == 1, "one solution"
    answer = []
    for letter in letters:
        by_house = {found[0][letter + str(value)]: str(value) for value in range(n)}
        answer.append("".join(by_house[house] for house in range(n)))
    return {"houses": answer}, k * n * (n - 1)


def sudoku(task):
    """The singles in the order of the page, with sets."""
    grid = list(task["grid"])
    rows = [[9 * r + c for c in range(9)] for r in range(9)]
    columns = [[9 * r + c for r in range(9)] for c in range(9)]
    boxes = [
        [9 * (3 * (b // 3) + i // 3) + 3 * (b % 3) + i % 3 for i in range(9)] for b in range(9)
    ]
    units = rows + columns + boxes
    peers = {cell: {p for unit in units if cell in unit for p in unit} - {cell} for cell in range(81)}
    counts = {"naked": 0, "hidden": 0}

    def candidates(cell):
        return set("123456789") - {grid[peer] for peer in peers[cell]}

    def single():
        options = {cell: candidates(cell) for cell in range(81) if grid[cell] == "."}
        for cell, digits in options.items():
            if len(digits) == 1:
                return "naked", cell, min(digits)
        for unit in units:
            for digit in "123456789":
                places = [cell for cell in unit if digit in options.get(cell, ())]
                if len(places) == 1:
                    return "hidden", places[0], digit
        raise AssertionError("singles do not solve this")

    while "." in grid:
        kind, cell, digit = single()
        grid[cell] = digit
        counts[kind] += 1
    assert all({grid[cell] for cell in unit} == set("123456789") for unit in units)
    answer = {"grid": "".join(grid), "naked": counts["naked"], "hidden": counts["hidden"]}
    return answer, counts["naked"] + counts["hidden"]


def game_24(task):
    """The depth-first search itself; it skips sets of values that it has seen fail."""
    target = Fraction(task["target"])
    failed = set()

    def search(values, exprs):
        if len(values) == 1:
            return exprs[0] if values[0] == target else None
        key = tuple(sorted((x.numerator, x.denominator) for x in values))
        if key in failed:
            return None
        for i in range(len(values)):
            for j in range(i + 1, len(values)):
                rest = [place for place in range(len(values)) if place not in (i, j)]
                for left, op, right in (
                    (i, "+", j),
                    (i, "-", j),
                    (j, "-", i),
                    (i, "*", j),
                    (i, "/", j),
                    (j, "/", i),
                ):
                    x, y = values[left], values[right]
                    if op == "/" and y == 0:
                        continue
                    result = x + y if op == "+" else x - y if op == "-" else x * y if op == "*" else x / y
                    if len(rest) == 0 and result != target:
                        continue
                    found = search(
                        [values[place] for place in rest] + [result],
                        [exprs[place] for place in rest] + [f"({exprs[left]}{op}{exprs[right]})"],
                    )
                    if found:
                        return found
        failed.add(key)
        return None

    numbers = task["numbers"]
    expression = search([Fraction(number) for number in numbers], [str(number) for number in numbers])
    return {"expression": expression}, len(numbers) - 1


TASKS = {
    "tower-of-hanoi": tower_of_hanoi,
    "n-queens": n_queens,
    "n-queens-last-queen": last_queen,
    "blind-maze": blind_maze,
    "logic-grid": logic_grid,
    "sudoku": sudoku,
    "24-game": game_24,
}
