"""The protocol between prime-agents and a program, shared by the example agents.

A program calls `serve(role, handle)`. `handle` gets each request as a dict and returns the answer as a dict without the
`id`. It raises `CannotDo` for a turn that it can never do; any other exception is a transient failure and is retried.
All fields are described in docs/process-agents.md.
"""

import json
import sys
import traceback

VERSION = 1


class CannotDo(Exception):
    """This program can never do such a turn; a retry would not help."""


def serve(role, handle):
    """Answers requests until end of file on standard input, which tells a program to exit."""
    answers = sys.stdout
    # Standard output is for answers only; anything else that the program prints goes to the log.
    sys.stdout = sys.stderr

    def write(answer):
        # NaN and infinity are not valid JSON: fail here rather than send an unreadable line.
        answers.write(json.dumps(answer, allow_nan=False) + "\n")
        answers.flush()

    hello = sys.stdin.buffer.readline()
    if not hello:
        return
    hello = json.loads(hello)
    if hello["prime"] != VERSION:
        sys.exit(f"this program speaks version {VERSION} of the protocol, not {hello['prime']}")
    if hello["role"] != role:
        sys.exit(f"this program is a {role}, but a {hello['role']} is needed: correct `command`")
    write({"prime": VERSION})

    for line in sys.stdin.buffer:
        request = json.loads(line)
        try:
            answer = handle(request)
        except CannotDo as error:
            answer = {"error": str(error), "retry": False}
        except Exception as error:  # a failed turn must not end the program
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        write({"id": request["id"], **answer})
