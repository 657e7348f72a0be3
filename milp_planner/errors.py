"""Errors a user can act on, each with the exit code the command line gives it."""

from __future__ import annotations


class PlannerError(Exception):
    """Anything milp-planner reports as one sentence instead of a traceback.

    Attributes
    ----------
    exit_code : int
        What the command line exits with.
    """

    exit_code = 70


class BadInput(PlannerError):
    """A file, field or argument is wrong: says what, where and what is allowed."""

    exit_code = 2


class MissingExtra(PlannerError):
    """An optional package is absent: says what to install."""

    exit_code = 2
