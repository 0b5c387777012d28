#!/usr/bin/env python3
"""A coordinator with the policy of the built-in `threshold`: a starting point for your own policies."""

from prime_agent import serve


def decide(request):
    score = request["verdict"]["score"]
    if score == 0:
        return {"decision": "proceed"}
    if score > request["tau_hard"]:
        return {"decision": "backtrack"}
    if request["retries"] < request["retries_max"]:
        return {"decision": "retry"}
    # No retries left: a small violation is accepted and stays recorded.
    return {"decision": "proceed" if score <= request["tau_soft"] else "backtrack"}


if __name__ == "__main__":
    serve("coordinator", decide)
