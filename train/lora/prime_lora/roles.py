"""Samples of the roles that judge and decide."""


def verifier_rows(folder):
    raise NotImplementedError


def coordinator_rows(folder):
    raise NotImplementedError
