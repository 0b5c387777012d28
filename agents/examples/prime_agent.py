"""What every program has in common that plays a role for prime-agents: the conversation on its standard streams.

A program calls `serve(role, handle)`. `handle` gets each request as a dict and returns the answer as a dict, without the
`id`. What it may raise: `CannotDo` for a turn that it never can do; anything else is a failure that is tried again.
docs/process-agents.md has every field.
"""

import json
import sys
import traceback

VERSION = 1


class CannotDo(Exception):
    """Such a turn cannot be done by this program, and asking again would not help."""


def serve(role, handle):
    """Answers requests until standard input ends, which is how a program learns that it is not needed any more."""
    answers = sys.stdout
    # Standard output is for answers alone: what is printed elsewhere in the program becomes a line of the log.
    sys.stdout = sys.stderr

    def write(answer):
        # NaN and infinity are no JSON; better an exception here than a line that nobody can read.
        answers.write(json.dumps(answer, allow_nan=False) + "\n")
        answers.flush()

    hello = sys.stdin.buffer.readline()
    if not hello:
        return
    hello = json.loads(hello)
    if hello["prime"] != VERSION:
        sys.exit(f"this program speaks version {VERSION} of the protocol, not {hello['prime']}")
    if hello["role"] != role:
        sys.exit(f"this program is a {role}, and a {hello['role']} is needed: correct `command`")
    write({"prime": VERSION})

    for line in sys.stdin.buffer:
        request = json.loads(line)
        try:
            answer = handle(request)
        except CannotDo as error:
            answer = {"error": str(error), "retry": False}
        except Exception as error:  # one turn's failure should not end the program
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        write({"id": request["id"], **answer})
