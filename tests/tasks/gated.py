"""Serves a task of an example, which waits at its twelfth step for as long as a lock is held: `gated.py FILE CLASS LOCK`."""

import fcntl
import importlib.util
import sys

import prime_bench

FREE_STEPS = 12


def gated(task, lock):
    class Gated(task):
        steps = 0

        def apply(self, given, state, line):
            self.steps += 1
            if self.steps > FREE_STEPS:
                with open(lock) as held:
                    fcntl.flock(held, fcntl.LOCK_SH)
            return super().apply(given, state, line)

    return Gated()


if __name__ == "__main__":
    file, name, lock = sys.argv[1:]
    spec = importlib.util.spec_from_file_location("task", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    prime_bench.serve(gated(getattr(module, name), lock))
