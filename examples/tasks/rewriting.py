"""A rewriting system: a term is rewritten into another one, a rule at a time, and each step is checked.

    prime-agents run --task-program 'python3 examples/tasks/rewriting.py' --set agents.executor.implementation=uniform \
      --input '{"rules": {"comm": ["x+y", "y+x"], "zero": ["x+0", "x"]}, "left": "(0+a)+b", "right": "a+b"}'
"""

import ast

import prime_bench


def read(source):
    def term(node):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return (term(node.left), term(node.right))
        if isinstance(node, (ast.Name, ast.Constant)):
            return ast.unparse(node)
        raise ValueError(ast.dump(node))
    try:
        return term(ast.parse(source, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise prime_bench.Refused(f"{source} is not a sum of names and digits") from error


def text(term):
    return term if isinstance(term, str) else "+".join(f"({text(side)})" if isinstance(side, tuple) else side for side in term)


def match(pattern, term, found):
    """What the variables of a pattern, x to z, stand for in a term; None if it does not match."""
    if pattern in ("x", "y", "z"):
        return {**found, pattern: term} if found.get(pattern, term) == term else None
    if isinstance(pattern, str) or isinstance(term, str):
        return found if pattern == term else None
    left = match(pattern[0], term[0], found)
    return None if left is None else match(pattern[1], term[1], left)


def fill(pattern, found):
    return found.get(pattern, pattern) if isinstance(pattern, str) else tuple(fill(side, found) for side in pattern)


def rewritten(term, one, other):
    found = match(one, term, {})
    made = [] if found is None else [fill(other, found)]
    for at in range(0 if isinstance(term, str) else 2):
        made += [(*term[:at], side, *term[at + 1 :]) for side in rewritten(term[at], one, other)]
    return made


class Rewriting(prime_bench.Task):
    name = "rewriting"
    statement = "Rewrite the left term into the right one. A step is a rule and the term that it makes: comm b+a"

    def start(self, given):
        read(given["right"])
        return [text(read(given["left"]))]

    def apply(self, given, state, line):
        if line not in self.choices(given, state):
            raise prime_bench.Refused("no rule makes that of the term")
        return [*state, line.split(" ", 1)[1]]

    def violations(self, given, state, line, after):
        return [prime_bench.Broken("circle", "the term was there before")] if after[-1] in state else []

    def done(self, given, state):
        return read(state[-1]) == read(given["right"])

    def answer(self, given, state):
        return state[-1]

    def choices(self, given, state):
        term, rules = read(state[-1]), {name: (read(one), read(other)) for name, (one, other) in given["rules"].items()}
        return list({f"{name} {text(made)}": 0 for name, rule in rules.items() for made in rewritten(term, *rule)})


if __name__ == "__main__":
    prime_bench.serve(Rewriting())
