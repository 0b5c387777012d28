"""Answers and step counts of the string tasks (ids 53-57), recomputed from the pages in the plainest way.

TASKS maps a slug to a function from the input object to (answer, steps).
"""

import sys

sys.setrecursionlimit(10_000)


def kmp_pattern(x):
    text, pattern = x["text"], x["pattern"]
    m = len(pattern)
    # Borders by their definition.
    failure = [
        max(length for length in range(end) if pattern[:length] == pattern[end - length : end]) for end in range(1, m + 1)
    ]

    def comparisons(letters, k, restart):
        """Comparisons of the scan; restart is k after a whole pattern."""
        count = 0
        for letter in letters:
            while True:
                count += 1
                if letter == pattern[k]:
                    k += 1
                    break
                if k == 0:
                    break
                k = failure[k - 1]
            if k == m:
                k = restart
        return count

    in_pattern = comparisons(pattern[1:], 0, None)
    in_text = comparisons(text, 0, failure[-1])
    answer = {
        "failure": failure,
        "matches": [start for start in range(len(text)) if text.startswith(pattern, start)],
        "pattern_comparisons": in_pattern,
        "text_comparisons": in_text,
    }
    return answer, in_pattern + in_text


def regex_nfa(x):
    # Juxtaposition made explicit as ".", then the shunting-yard algorithm.
    symbols = []
    for symbol in x["regex"]:
        if symbols and symbols[-1] not in "(|" and symbol not in ")|*+?":
            symbols.append(".")
        symbols.append(symbol)
    binding = {"|": 0, ".": 1}
    nodes, waiting = [], []
    for symbol in symbols:
        if symbol in "abcd*+?":
            nodes.append(symbol)
        elif symbol == "(":
            waiting.append(symbol)
        elif symbol == ")":
            while waiting[-1] != "(":
                nodes.append(waiting.pop())
            waiting.pop()
        else:
            while waiting and waiting[-1] != "(" and binding[waiting[-1]] >= binding[symbol]:
                nodes.append(waiting.pop())
            waiting.append(symbol)
    nodes += reversed(waiting)

    states, edges, stack = 0, [], []
    for node in nodes:
        if node == ".":
            (b_start, b_end), (a_start, a_end) = stack.pop(), stack.pop()
            edges.append([a_end, "", b_start])
            stack.append((a_start, b_end))
            continue
        s, t = states, states + 1
        states += 2
        if node == "|":
            (b_start, b_end), (a_start, a_end) = stack.pop(), stack.pop()
            edges += [[s, "", a_start], [s, "", b_start], [a_end, "", t], [b_end, "", t]]
        elif node in "abcd":
            edges.append([s, node, t])
        else:
            start, end = stack.pop()
            edges.append([s, "", start])
            if node in "*?":
                edges.append([s, "", t])
            if node in "*+":
                edges.append([end, "", start])
            edges.append([end, "", t])
        stack.append((s, t))
    [(start, accept)] = stack

    def closure(active):
        while True:
            more = active | {q for p, letter, q in edges if letter == "" and p in active}
            if more == active:
                return active
            active = more

    active = closure({start})
    for read in x["text"]:
        active = closure({q for p, letter, q in edges if letter == read and p in active})
    answer = {
        "states": states,
        "start": start,
        "accept": accept,
        "edges": edges,
        "final": sorted(active),
        "matched": accept in active,
    }
    return answer, len(nodes) + 1 + len(x["text"])


def cfg_derivation(x):
    select = {(left, right[0]): number for number, (left, right) in enumerate(x["productions"])}
    derivation, word = [], x["word"]

    def derive(nonterminal, place):
        """Where the yield of the nonterminal that begins at this place ends, and the depth of its tree."""
        number = select[nonterminal, word[place]]
        derivation.append(number)
        below = 0
        for symbol in x["productions"][number][1]:
            if symbol in x["nonterminals"]:
                place, depth = derive(symbol, place)
                below = max(below, depth)
            else:
                assert word[place] == symbol
                place += 1
        return place, below + 1

    end, depth = derive("S", 0)
    assert end == len(word)
    return {"derivation": derivation, "depth": depth}, len(derivation)


def translation_chain(x):
    words, stages = x["sentence"], []
    for language in x["languages"]:
        order, *argument = language["order"].split()
        if order == "reverse":
            words = words[::-1]
        elif order == "rotate":
            k = int(argument[0]) % len(words)
            words = words[k:] + words[:k]
        elif order == "evens-first":
            words = words[::2] + words[1::2]
        elif order == "swap-pairs":
            words = [word for m in range(0, len(words), 2) for word in words[m : m + 2][::-1]]
        elif order == "last-first":
            words = words[-1:] + words[:-1]
        else:
            assert order == "keep"
        words = [language["dictionary"][word] for word in words]
        stages.append(" ".join(words))
    return {"stages": stages, "result": stages[-1]}, len(words) * len(stages)


def ascii_art_parse(x):
    # Objects do not touch, so that each is a connected part of the ink.
    ink = {(r, c): char for r, row in enumerate(x["grid"]) for c, char in enumerate(row) if char != " "}
    objects, seen = [], set()
    for start in sorted(ink):
        if start in seen:
            continue
        part, border = {start}, [start]
        while border:
            r, c = border.pop()
            for near in [(r + i, c + j) for i in (-1, 0, 1) for j in (-1, 0, 1)]:
                if near in ink and near not in part:
                    part.add(near)
                    border.append(near)
        seen |= part
        rows, columns = [r for r, _ in part], [c for _, c in part]
        objects.append(
            {
                "kind": {"+": "rect", "-": "hline", "|": "vline"}[ink[start]],
                "top": min(rows),
                "left": min(columns),
                "bottom": max(rows),
                "right": max(columns),
            }
        )
    kinds = [found["kind"] for found in objects]
    rects, hlines, vlines = (kinds.count(kind) for kind in ("rect", "hline", "vline"))
    answer = {"objects": objects, "rects": rects, "hlines": hlines, "vlines": vlines, "ink": len(ink)}
    return answer, 5 * rects + 2 * hlines + 2 * vlines


TASKS = {
    "kmp-pattern": kmp_pattern,
    "regex-nfa": regex_nfa,
    "cfg-derivation": cfg_derivation,
    "translation-chain": translation_chain,
    "ascii-art-parse": ascii_art_parse,
}
