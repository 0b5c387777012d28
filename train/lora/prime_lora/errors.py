"""Faults of input, each with a sentence that says what is wrong, where, and what to do."""


class InputError(Exception):
    """Ends the program with status 2 and its text, without a traceback."""
