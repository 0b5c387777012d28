"""A single-player game of TextArena (`pip install prime-bench textarena`), step by step, with its own rules and reward.

    prime-agents run --task-program 'python3 examples/packages/textarena_task.py' --input '{"game": "PegJump-v0", "seed": 1}'

A game is a function of its seed and the actions so far, so the actions are the state: each step plays them again.
"""

import random

import textarena

import prime_bench


def peg_jump(env):
    board = env.state.game_state["board"]
    return [f"[{a} {b}]" for a, over, b in env.ALLOWED_MOVES if board[a] and board[over] and not board[b]]


#: The legal actions of games; a game that is not here needs a model.
LEGAL = {"PegJump-v0": peg_jump}


class TextArena(prime_bench.Task):
    name = "textarena"
    title = "A game of TextArena"
    statement = "Win the game that the state describes."
    step = "an action in the form that the game asks for, in brackets"
    constraints = [
        {"name": "lost", "severity": "critical", "meaning": "the game is not over without being won"},
        {"name": "repeat", "severity": "critical", "meaning": "no position comes back"},
    ]
    example = {"game": "PegJump-v0", "seed": 1}

    def play(self, given, actions):
        # Games draw from the module's generator.
        random.seed(given["seed"])
        env = textarena.make(given["game"])
        env.reset(num_players=1, seed=given["seed"])
        positions = [repr(env.state.game_state)]
        for action in actions:
            env.step(action)
            if env.state.made_invalid_move or env.state.game_info[0].get("invalid_move"):
                raise prime_bench.Refused("the game refuses it")
            positions.append(repr(env.state.game_state))
        seen = env.get_observation()[1] if not env.state.done else ""
        return env, positions, seen

    def start(self, given):
        return []

    def apply(self, given, state, line):
        self.play(given, [*state, line])
        return [*state, line]

    def violations(self, given, state, line, after):
        env, positions, _ = self.play(given, after)
        lost = env.state.done and (env.state.rewards or {}).get(0, 0) < 1
        broken = [prime_bench.Broken("lost", env.state.game_info[0].get("reason", ""))] if lost else []
        return broken + ([prime_bench.Broken("repeat")] if positions[-1] in positions[:-1] else [])

    def done(self, given, state):
        return bool(self.play(given, state)[0].state.done)

    def score_answer(self, given, answer):
        env = self.play(given, answer)[0]
        return (env.state.rewards or {}).get(0, 0.0) if env.state.done else 0.0

    def choices(self, given, state):
        legal = LEGAL.get(given["game"])
        return None if legal is None else legal(self.play(given, state)[0].env)

    def view(self, given, state):
        return str(self.play(given, state)[2])


if __name__ == "__main__":
    prime_bench.serve(TextArena())
