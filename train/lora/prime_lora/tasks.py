"""The tasks, from the package prime-bench, which is on no index."""

from .errors import InputError

try:
    from prime_bench import Instance, StepEnv, task
except ImportError as error:
    raise InputError(
        "the package prime-bench is missing: `make fine-tuning` installs it, or `make python` and "
        "then pip install target/python/dist/*.whl"
    ) from error

__all__ = ["Instance", "StepEnv", "task"]
