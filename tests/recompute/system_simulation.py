"""Recomputes the answers and step counts of the tasks 78-85 (simulated systems) from their inputs.

Written from the benchmark's pages alone: each function takes an `input` object and returns (answer, steps).
"""

import heapq
from itertools import accumulate
from math import comb, prod


class Failed(Exception):
    """A command of the file system that fails, with its code."""


class Node:
    """A file, or a directory (which has `entries`); linked to its parent, / to itself."""

    def __init__(self, owner, mode, parent=None, entries=None):
        self.owner, self.mode, self.content, self.entries = owner, mode, 0, entries
        self.parent = parent or self

    def demand(self, user, right):
        digit = int(self.mode[0] if user == self.owner else self.mode[1])
        if user != "root" and not digit & right:
            raise Failed("perm")

    def demand_directory(self, user):
        if self.entries is None:
            raise Failed("notdir")
        self.demand(user, 1)

    def name(self):
        return next(name for name, node in self.parent.entries.items() if node is self)

    def components(self):
        return [] if self.parent is self else self.parent.components() + [self.name()]


def file_system(given):
    root = Node("root", "77", entries={})
    user, cwd, errors = "root", root, 0

    def walk(components, at):
        for component in components:
            at.demand_directory(user)
            if component == "..":
                at = at.parent
            elif component != ".":
                if component not in at.entries:
                    raise Failed("noent")
                at = at.entries[component]
        return at

    def run(word, *rest):
        nonlocal user, cwd
        if word == "su":
            user = rest[0]
            return
        path = rest[1] if word == "chmod" else rest[0]
        start = root if path.startswith("/") else cwd
        components = [component for component in path.split("/") if component]
        if word in ("mkdir", "touch", "rm", "rmdir"):
            parent = walk(components[:-1], start)
            parent.demand_directory(user)
            name = components[-1]
            entry = parent.entries.get(name)
            if word in ("mkdir", "touch"):
                if entry and word == "touch" and entry.entries is None:
                    return
                if entry:
                    raise Failed("exists")
                parent.demand(user, 2)
                new = Node(user, "75", parent, {}) if word == "mkdir" else Node(user, "64", parent)
                parent.entries[name] = new
                return
            if not entry:
                raise Failed("noent")
            if word == "rm" and entry.entries is not None:
                raise Failed("isdir")
            if word == "rmdir" and entry.entries is None:
                raise Failed("notdir")
            parent.demand(user, 2)
            if word == "rmdir" and entry.entries:
                raise Failed("notempty")
            if entry is cwd:
                raise Failed("busy")
            del parent.entries[name]
            return
        node = walk(components, start)
        if word == "cd":
            node.demand_directory(user)
            cwd = node
        elif word == "chmod":
            if user not in ("root", node.owner):
                raise Failed("perm")
            node.mode = rest[0]
        else:
            if node.entries is not None:
                raise Failed("isdir")
            node.demand(user, 2 if word == "write" else 4)
            if word == "write":
                node.content = int(rest[1])

    for command in given["commands"]:
        try:
            run(*command.split())
        except Failed:
            errors += 1

    def listed(node):
        kind = "f" if node.entries is None else "d"
        yield node.components(), kind, node.owner, node.mode, node.content
        for entry in (node.entries or {}).values():
            yield from listed(entry)

    tree = [["/" + "/".join(path), *facts] for path, *facts in sorted(listed(root))]
    answer = {"tree": tree, "cwd": "/" + "/".join(cwd.components()), "user": user, "errors": errors}
    return answer, len(given["commands"])


def blockchain_ledger(given):
    M = 1000003
    balances, size = list(given["balances"]), given["block_size"]
    nonces, hashes, bad_nonce, bad_funds = [0] * len(balances), [], 0, 0
    blocks = [given["transactions"][i : i + size] for i in range(0, len(given["transactions"]), size)]
    assert len(blocks) == len(given["miners"])
    for height, (block, miner) in enumerate(zip(blocks, given["miners"]), 1):
        run, fees = (31 * (hashes[-1] if hashes else 0) + height) % M, 0
        for sender, receiver, amount, fee, nonce in block:
            if nonces[sender] != nonce:
                bad_nonce += 1
            elif balances[sender] < amount + fee:
                bad_funds += 1
            else:
                nonces[sender] += 1
                balances[sender] -= amount + fee
                balances[receiver] += amount
                fees += fee
                run = (31 * run + 7 * sender + 11 * receiver + amount) % M
        balances[miner] += given["reward"] + fees
        hashes.append((31 * run + miner) % M)
    answer = {
        "balances": balances, "nonces": nonces, "hashes": hashes, "rejected_nonce": bad_nonce,
        "rejected_funds": bad_funds,
    }
    return answer, len(given["transactions"]) + len(blocks)


def railway_scheduling(given):
    trains, free = given["trains"], [0] * len(given["segments"])
    arrivals, delays, occupancy, steps = [0] * len(trains), [0] * len(trains), [[] for _ in free], 0
    events = [(train["departs"], number, train["from"]) for number, train in enumerate(trains)]
    heapq.heapify(events)
    while events:
        ready, number, station = heapq.heappop(events)
        train = trains[number]
        ahead = station + (1 if train["to"] > station else -1)
        segment = min(station, ahead)
        enter = max(ready, free[segment])
        leave = enter + given["segments"][segment] * train["pace"]
        delays[number] += enter - ready
        free[segment] = leave + given["headway"]
        occupancy[segment].append([number, enter, leave])
        steps += 1
        if ahead == train["to"]:
            arrivals[number] = leave
        else:
            heapq.heappush(events, (leave + given["dwell"], number, ahead))
    return {"arrivals": arrivals, "delays": delays, "makespan": max(arrivals), "occupancy": occupancy}, steps


def meeting_scheduler(given):
    """Each room is a row of 20 slots, each with the request that booked it."""
    rooms = [[None] * 20 for _ in given["rooms"]]
    by_size = sorted(range(len(rooms)), key=lambda room: (given["rooms"][room], room))
    bookings, busy, capacity, cancelled = {}, 0, 0, 0
    for number, request in enumerate(given["requests"]):
        word, *numbers = request.split()
        numbers = [int(n) for n in numbers]
        if word == "cancel":
            if numbers[0] in bookings:
                room, _ = bookings.pop(numbers[0])
                rooms[room] = [None if slot == numbers[0] else slot for slot in rooms[room]]
                cancelled += 1
            continue
        start, length, people = numbers
        large = [room for room in by_size if given["rooms"][room] >= people]
        if not large:
            capacity += 1
            continue
        options = [
            (room, t)
            for t in range(start, start + given["max_shift"] + 1)
            if t + length <= 20
            for room in large
            if all(slot is None for slot in rooms[room][t : t + length])
        ]
        if not options:
            busy += 1
            continue
        room, t = bookings[number] = options[0]
        rooms[room][t : t + length] = [number] * length
    answer = {
        "bookings": [[number, *booking] for number, booking in sorted(bookings.items())],
        "used": [sum(slot is not None for slot in room) for room in rooms],
        "rejected_busy": busy, "rejected_capacity": capacity, "cancelled": cancelled,
    }
    return answer, len(given["requests"])


def elevator_scheduling(given):
    """Tick by tick, every tick of them."""
    calls, floors = given["calls"], list(given["elevators"])
    count = len(floors)
    direction, moved, doors = [0] * count, [0] * count, [0] * count
    waiting, riding = [set() for _ in floors], [set() for _ in floors]
    delivered, steps, t = [-1] * len(calls), 0, 0
    while -1 in delivered:
        for number, (time, start, _) in enumerate(calls):
            if time == t:
                waiting[min(range(count), key=lambda e: abs(floors[e] - start))].add(number)
        for e in range(count):
            here = floors[e]
            leave = {c for c in riding[e] if calls[c][2] == here}
            board = {c for c in waiting[e] if calls[c][1] == here}
            goals = {calls[c][2] for c in riding[e]} | {calls[c][1] for c in waiting[e]}
            if leave or board:
                riding[e] = (riding[e] - leave) | board
                waiting[e] -= board
                for c in leave:
                    delivered[c] = t
                doors[e] += 1
            elif not goals:
                direction[e] = 0
                continue
            else:
                if direction[e] == 0:
                    nearest = min(sorted(goals), key=lambda goal: abs(goal - here))
                    direction[e] = 1 if nearest > here else -1
                elif not any((goal - here) * direction[e] > 0 for goal in goals):
                    direction[e] = -direction[e]
                floors[e] += direction[e]
                moved[e] += 1
            steps += 1
        t += 1
    total = sum(delivered) - sum(time for time, _, _ in calls)
    return {"delivered": delivered, "moved": moved, "doors": doors, "floors": floors, "total_time": total}, steps


def packet_routing(given):
    tables = given["tables"]
    fates, load = "", [0] * len(tables)
    for at, dst, ttl in given["packets"]:
        while at != dst and ttl > 0 and tables[at][dst] != -1:
            load[at] += 1
            ttl -= 1
            at = tables[at][dst]
        fates += "D" if at == dst else "T" if ttl == 0 else "N"
    answer = {
        "fates": fates, "delivered": fates.count("D"), "dropped_ttl": fates.count("T"),
        "dropped_route": fates.count("N"), "hops": sum(load), "load": load,
    }
    return answer, sum(load) + len(fates)


def assembly_line(given):
    stages = given["stages"]
    final, introduced, blame, steps = [], [0] * len(stages), [0] * len(stages), 0
    for unit in range(given["units"]):
        origin, mark = {}, ""
        for number, stage in enumerate(stages):
            steps += 1
            if stage["adds"] and stage["from"] <= unit <= stage["to"] and stage["adds"] not in origin:
                origin[stage["adds"]] = number
                introduced[number] += 1
            if stage["spreads"]:
                x, y = stage["spreads"]
                if x in origin:
                    origin.setdefault(y, origin[x])
            origin.pop(stage["repairs"], None)
            if stage["scraps"] in origin:
                blame[origin[stage["scraps"]]] += 1
                mark = "!"
                break
        final.append(("".join(sorted(origin)) or "-") + mark)
    scrapped = sum(types.endswith("!") for types in final)
    clean = final.count("-")
    answer = {
        "final": final, "clean": clean, "defective": len(final) - clean - scrapped, "scrapped": scrapped,
        "introduced": introduced, "blame": blame,
    }
    return answer, steps


def chemical_reaction(given):
    counts, reactions = list(given["counts"]), given["reactions"]
    fired = [0] * len(reactions)
    for u in given["draws"]:
        sums = list(accumulate(r["rate"] * prod(comb(counts[s], c) for s, c in r["in"]) for r in reactions))
        if sums[-1] == 0:
            break
        chosen = min(j for j, total in enumerate(sums) if 1000 * total > u * sums[-1])
        for side, sign in (("in", -1), ("out", 1)):
            for species, count in reactions[chosen][side]:
                counts[species] += sign * count
        fired[chosen] += 1
    mass = sum(count * mass for count, mass in zip(counts, given["masses"]))
    return {"counts": counts, "fired": fired, "mass": mass}, sum(fired)


TASKS = {
    "file-system": file_system,
    "blockchain-ledger": blockchain_ledger,
    "railway-scheduling": railway_scheduling,
    "meeting-scheduler": meeting_scheduler,
    "elevator-scheduling": elevator_scheduling,
    "packet-routing": packet_routing,
    "assembly-line": assembly_line,
    "chemical-reaction": chemical_reaction,
}
