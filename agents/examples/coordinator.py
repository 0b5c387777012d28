#!/usr/bin/env python3
"""A coordinator with the policy of the built-in `threshold`: a start for policies of your own."""

from prime_agent import serve


def decide(request):
    score = request["verdict"]["score"]
    if score == 0:
        return {"decision": "proceed"}
    if score > request["tau_hard"]:
        return {"decision": "backtrack"}
    if request["retries"] < request["retries_max"]:
        return {"decision": "retry"}
    # Retried often enough: a small violation is tolerated, and stays on record.
    return {"decision": "proceed" if score <= request["tau_soft"] else "backtrack"}


if __name__ == "__main__":
    serve("coordinator", decide)
