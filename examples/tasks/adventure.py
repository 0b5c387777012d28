"""A text adventure: rooms, doors, things; a world is the input, and its moves are lists of choices.

    prime-agents run --task-program 'python3 examples/tasks/adventure.py' --set agents.executor.implementation=uniform \
      --input '{"rooms": {"hall": {"north": "vault", "east": "study"}, "study": {"west": "hall"}, "vault": {"south": "hall"}}, \
                "things": {"key": "study", "crown": "vault"}, "locked": {"vault": "key"}, "start": "hall", "goal": "crown"}'
"""

import prime_bench


class Adventure(prime_bench.Task):
    name = "adventure"
    title = "A text adventure"
    statement = "Walk through the rooms, take what you need, and bring the goal back to where you started."
    step = "`go DIRECTION`, `take THING` or `drop THING`"
    constraints = [{"name": "circle", "severity": "critical", "meaning": "no situation comes back"}]
    example = {
        "rooms": {"hall": {"north": "vault", "east": "study"}, "study": {"west": "hall"}, "vault": {"south": "hall"}},
        "things": {"key": "study", "crown": "vault"},
        "locked": {"vault": "key"},
        "start": "hall",
        "goal": "crown",
    }

    def start(self, given):
        if given["start"] not in given["rooms"] or given["goal"] not in given["things"]:
            raise prime_bench.Refused("`start` must be a room and `goal` a thing")
        return {"room": given["start"], "things": given["things"], "before": []}

    def apply(self, given, state, line):
        if line not in self.choices(given, state):
            raise prime_bench.Refused("that is not possible here")
        verb, what = line.split(" ", 1)
        room, things = state["room"], dict(state["things"])
        if verb == "go":
            room = given["rooms"][room][what]
        else:
            things[what] = "you" if verb == "take" else room
        return {"room": room, "things": things, "before": [*state["before"], [state["room"], state["things"]]]}

    def violations(self, given, state, line, after):
        returns = [after["room"], after["things"]] in after["before"]
        return [prime_bench.Broken("circle", "you were in this situation before")] if returns else []

    def done(self, given, state):
        return state["room"] == given["start"] and state["things"][given["goal"]] == "you"

    def answer(self, given, state):
        return {"goal": given["goal"], "room": state["room"]}

    def choices(self, given, state):
        carried = sorted(thing for thing, place in state["things"].items() if place == "you")
        here = sorted(thing for thing, place in state["things"].items() if place == state["room"])
        doors = given["rooms"][state["room"]].items()
        is_open = lambda room: given["locked"].get(room) in (None, *carried)  # noqa: E731
        ways = [f"go {direction}" for direction, room in doors if is_open(room)]
        return [*ways, *(f"take {thing}" for thing in here), *(f"drop {thing}" for thing in carried)]

    def view(self, given, state):
        return f"You are in the {state['room']}. You can: {', '.join(self.choices(given, state))}."


if __name__ == "__main__":
    prime_bench.serve(Adventure())
