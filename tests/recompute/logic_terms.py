"""Logic tasks 68, 69 and 70 of PRIME-Bench: answers and step counts recomputed from the pages alone.

Unification with nested tuples, type inference with mutable type variables, lambda reduction with named variables.
`TASKS` maps a slug to a function from the input object to (answer object, steps).
"""

import re
import sys

sys.setrecursionlimit(100_000)


def unification(data):
    def parse(text):
        tokens = re.findall(r"[a-zX]\d*|[(),]", text)

        def term(at):
            name, at = tokens[at], at + 1
            arguments = []
            while at < len(tokens) and tokens[at] in ("(" if not arguments else ","):
                argument, at = term(at + 1)
                arguments.append(argument)
            return (name, *arguments), at + bool(arguments)

        return term(0)[0]

    def text_of(t):
        return t[0] + ("(" + ",".join(map(text_of, t[1:])) + ")" if t[1:] else "")

    def put(t, name, value):
        return value if t[0] == name else (t[0], *(put(part, name, value) for part in t[1:]))

    def occurs(name, t):
        return t[0] == name or any(occurs(name, part) for part in t[1:])

    equations = [(parse(data["left"]), parse(data["right"]))]
    bindings, steps, reason = {}, 0, "ok"
    while equations:
        (s, t), rest = equations[0], equations[1:]
        steps += 1
        if s == t:
            equations = rest
            continue
        if s[0][0] != "X":
            if t[0][0] == "X":
                s, t = t, s
            elif s[0] != t[0] or len(s) != len(t):
                reason = "clash"
                break
            else:
                equations = list(zip(s[1:], t[1:])) + rest
                continue
        name = s[0]
        if occurs(name, t):
            reason = "occurs"
            break
        equations = [(put(u, name, t), put(v, name, t)) for u, v in rest]
        bindings = {other: put(u, name, t) for other, u in bindings.items()}
        bindings[name] = t
    mgu = {}
    if reason == "ok":
        mgu = {name: text_of(bindings[name]) for name in sorted(bindings, key=lambda name: int(name[1:]))}
    return {"unifiable": reason == "ok", "reason": reason, "mgu": mgu}, steps


class Var:
    """A type variable: it knows what it is bound to."""

    def __init__(self, number):
        self.number, self.to = number, None


class Untyped(Exception):
    pass


def type_inference(data):
    tokens = data["expression"].replace("(", " ( ").replace(")", " ) ").split()
    primitives = {
        "add": ("Int", ("Int", "Int")),
        "eq": ("Int", ("Int", "Bool")),
        "not": ("Bool", "Bool"),
        "true": "Bool",
        "false": "Bool",
    }
    created, lets, calls, lines = 0, [], 0, 0

    def parse(at):
        if tokens[at] != "(":
            return tokens[at], at + 1
        parts, at = [], at + 1
        while tokens[at] != ")":
            part, at = parse(at)
            parts.append(part)
        return parts, at + 1

    def fresh():
        nonlocal created
        created += 1
        return Var(created - 1)

    def head(t):
        while isinstance(t, Var) and t.to is not None:
            t = t.to
        return t

    def free(t):
        """Variables in order of first appearance."""
        t = head(t)
        if isinstance(t, Var):
            return [t]
        return list(dict.fromkeys(free(t[0]) + free(t[1]))) if isinstance(t, tuple) else []

    def unify(a, b):
        a, b = head(a), head(b)
        if a is b:
            return
        if isinstance(a, Var) or isinstance(b, Var):
            variable, other = (a, b) if isinstance(a, Var) else (b, a)
            if variable in free(other):
                raise Untyped("occurs")
            variable.to = other
        elif isinstance(a, tuple) and isinstance(b, tuple):
            unify(a[0], b[0])
            unify(a[1], b[1])
        elif a != b:
            raise Untyped("mismatch")

    def call(a, b):
        nonlocal calls
        calls += 1
        unify(a, b)

    def text_of(t, names):
        t = head(t)
        if isinstance(t, Var):
            return names.get(t, f"t{t.number}")
        if isinstance(t, tuple):
            left = text_of(t[0], names)
            return (f"({left})" if isinstance(head(t[0]), tuple) else left) + " -> " + text_of(t[1], names)
        return t

    def lettered(variables):
        return {v: chr(ord("a") + i) for i, v in enumerate(variables)}

    def instantiate(t, new):
        t = head(t)
        if isinstance(t, tuple):
            return instantiate(t[0], new), instantiate(t[1], new)
        return new.get(t, t) if isinstance(t, Var) else t

    def infer(e, env):
        nonlocal lines
        t = node(e, env)
        lines += 1
        return t

    def node(e, env):
        if isinstance(e, str):
            if e.isdigit():
                return "Int"
            if e in primitives:
                return primitives[e]
            quantified, t = env[e]
            return instantiate(t, {v: fresh() for v in quantified})
        if e[0] == "lam":
            a = fresh()
            return a, infer(e[2], {**env, e[1]: ([], a)})
        if e[0] == "app":
            f, a = infer(e[1], env), infer(e[2], env)
            r = fresh()
            call(f, (a, r))
            return r
        if e[0] == "if":
            call(infer(e[1], env), "Bool")
            t, u = infer(e[2], env), infer(e[3], env)
            call(t, u)
            return t
        t = infer(e[2], env)
        fixed = {v for quantified, u in env.values() for v in free(u) if v not in quantified}
        quantified = [v for v in free(t) if v not in fixed]
        names = lettered(quantified)
        forall = f"forall {' '.join(names.values())}. " if names else ""
        lets.append([e[1], forall + text_of(t, names)])
        return infer(e[3], {**env, e[1]: (quantified, t)})

    try:
        t = infer(parse(0)[0], {})
        found, error = text_of(t, lettered(free(t))), ""
    except Untyped as untyped:
        found, error = "", str(untyped)
        lines += 1
    answer = {"typed": not error, "type": found, "error": error, "lets": lets, "unifications": calls}
    return answer, lines


def lambda_reduction(data):
    """Terms with names, every binder another one: substitution is plain replacement, with binders renamed in copies."""
    count = 0

    def name():
        nonlocal count
        count += 1
        return count

    tokens = data["term"].replace("(", " ( ").replace(")", " ) ").split()

    def parse(at, scope):
        if tokens[at] != "(":
            return scope[int(tokens[at])], at + 1
        if tokens[at + 1] == "L":
            binder = name()
            body, at = parse(at + 2, [binder, *scope])
            return ("L", binder, body), at + 1
        t, at = parse(at + 1, scope)
        u, at = parse(at, scope)
        return (t, u), at + 1

    def copy(t, new):
        if isinstance(t, int):
            return new.get(t, t)
        if t[0] == "L":
            binder = name()
            return "L", binder, copy(t[2], {**new, t[1]: binder})
        return copy(t[0], new), copy(t[1], new)

    def replaced(t, variable, value):
        if isinstance(t, int):
            return copy(value, {}) if t == variable else t
        if t[0] == "L":
            return "L", t[1], replaced(t[2], variable, value)
        return replaced(t[0], variable, value), replaced(t[1], variable, value)

    def step(t):
        """The term after one contraction in normal order, or None."""
        if isinstance(t, int):
            return None
        if t[0] == "L":
            body = step(t[2])
            return body and ("L", t[1], body)
        if isinstance(t[0], tuple) and t[0][0] == "L":
            return replaced(t[0][2], t[0][1], t[1])
        left = step(t[0])
        if left is not None:
            return left, t[1]
        right = step(t[1])
        return None if right is None else (t[0], right)

    def size(t):
        if isinstance(t, int):
            return 1
        return 1 + size(t[2]) if t[0] == "L" else 1 + size(t[0]) + size(t[1])

    def text_of(t, scope):
        if isinstance(t, int):
            return str(scope.index(t))
        if t[0] == "L":
            return f"(L {text_of(t[2], [t[1], *scope])})"
        return f"({text_of(t[0], scope)} {text_of(t[1], scope)})"

    term, steps = parse(0, [])[0], 0
    largest = size(term)
    while (after := step(term)) is not None:
        term, steps = after, steps + 1
        largest = max(largest, size(term))
    return {"normal_form": text_of(term, []), "size": size(term), "max_size": largest}, steps


TASKS = {"unification": unification, "type-inference": type_inference, "lambda-reduction": lambda_reduction}
