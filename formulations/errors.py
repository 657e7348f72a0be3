"""What can go wrong in the mathematics, each as one sentence."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class InstanceError(ValueError):
    """The instance, or an outcome read for it, is malformed: says where and what is allowed."""


class UnsupportedInstance(InstanceError):
    """A formulation does not cover this shape of instance: says which part, and what covers it."""


class MissingSolver(ImportError):
    """A solver package is absent: says what to install."""


class InternalError(RuntimeError):
    """An exact model returned an answer the check rejects: a bug of ours, never the user's."""

    def __init__(self, what: str) -> None:
        super().__init__(our_bug(what))


def our_bug(what: str) -> str:
    """A sentence that tells a bug of ours, and what to send with the report."""
    return (
        f"{what}. This is a bug in milp-planner: please report it with the instance file "
        "(`milp-planner plan … --json` or the INSTANCE.json you solved)."
    )


def meant(name: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` for an unknown name; an empty text where no known name is close."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
