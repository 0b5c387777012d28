"""Scheduling: jobs with durations and predecessors get start times on one machine, so that all are done by the deadline.

    prime-agents run --task-program 'python3 examples/tasks/schedule.py' --set agents.executor.implementation=uniform \
      --input '{"jobs": {"cut": 2, "sew": 3, "dye": 1, "pack": 1}, "after": {"sew": ["cut"], "pack": ["sew", "dye"]}, \
                "due": {"dye": 3, "pack": 7}}'
"""

import prime_bench


class Schedule(prime_bench.Task):
    name = "schedule"
    title = "One machine"
    statement = "Put the jobs into an order. A job starts when the one before it ends; each must end by its due time."
    step = "the job that comes next"
    constraints = [
        {"name": "late", "severity": "critical", "meaning": "each job ends by its due time"},
        {"name": "order", "severity": "critical", "meaning": "a job comes after those that it needs"},
    ]
    example = {"jobs": {"cut": 2, "sew": 3}, "after": {"sew": ["cut"]}, "due": {"sew": 5}}

    def start(self, given):
        unknown = [job for job in [*given["after"], *given["due"]] if job not in given["jobs"]]
        if unknown:
            raise prime_bench.Refused(f"{unknown[0]} is not a job")
        return {"order": [], "time": 0}

    def apply(self, given, state, line):
        if line not in self.choices(given, state):
            raise prime_bench.Refused("no such job is left")
        return {"order": [*state["order"], line], "time": state["time"] + given["jobs"][line]}

    def violations(self, given, state, line, after):
        missing = [job for job in given["after"].get(line, []) if job not in state["order"]]
        broken = [prime_bench.Broken("order", f"{line} needs {job} first") for job in missing[:1]]
        due = given["due"].get(line)
        late = due is not None and after["time"] > due
        # A job that is left may be late by now, whatever comes next.
        waiting = [job for job in self.choices(given, after) if after["time"] + given["jobs"][job] > given["due"].get(job, 10**9)]
        if late:
            broken.append(prime_bench.Broken("late", f"{line} ends at {after['time']} and is due at {due}"))
        elif waiting:
            broken.append(prime_bench.Broken("late", f"{waiting[0]} cannot end in time any more"))
        return broken

    def done(self, given, state):
        return len(state["order"]) == len(given["jobs"])

    def answer(self, given, state):
        return state["order"]

    def choices(self, given, state):
        return [job for job in given["jobs"] if job not in state["order"]]


if __name__ == "__main__":
    prime_bench.serve(Schedule())
