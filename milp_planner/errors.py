"""Errors a user can act on, each with the exit code the command line gives it."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass

CHECK = "milp-planner check MODEL CLUSTER"
"""The command that lists every problem of a model and a cluster."""

MOST_PROBLEMS = 10_000
"""Problems of one input that are collected; only a damaged or hostile file has more."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with an input."""

    message: str
    """What was found and what is allowed."""
    field: str = ""
    """As people write it, ``tables[3].rows``; empty for what no field holds."""
    file: str = ""
    """Name of the file; empty where the message names it or there is none."""
    line: int | None = None
    """Line of the field, from 1; None where the file has none (JSON, Python)."""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line is not None else self.file
        return ": ".join(part for part in (where, self.field, self.message) if part)


class PlannerError(Exception):
    """Anything milp-planner reports as one sentence instead of a traceback."""

    exit_code = 70
    """What the command line exits with."""


class BadInput(PlannerError):
    """A file, field or argument is wrong: says what, where and what is allowed."""

    exit_code = 2

    def __init__(self, message: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self._problems = tuple(problems)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Every problem that was found, the one that the sentence names first."""
        return self._problems or (Problem(str(self)),)

    @classmethod
    def of(cls, problems: Sequence[Problem], listed_by: str = "") -> BadInput:
        """Several problems (one at least) as one error: the likeliest cause, and how many follow.

        ``listed_by`` is the command that lists them all, where there is one.
        """
        more = len(problems) - 1
        least = "at least " if len(problems) >= MOST_PROBLEMS else ""
        rest = f" (and {least}{more} more problem{'s' if more > 1 else ''})"
        if listed_by:
            rest = f" (and {least}{more} more: {listed_by} lists {'them' if more > 1 else 'it'})"
        return cls(f"{problems[0]}{rest if more else ''}", problems)


class FallsShort(PlannerError):
    """What was asked for would not run: says why, and which change would do."""

    exit_code = 1


class MissingExtra(PlannerError):
    """An optional package is absent: says what to install."""

    exit_code = 2


#: Control characters, line separators and what turns the direction of text, for a regex's class.
CONTROLS = r"\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069"
#: Name of the error handler that writes what an encoding does not have as its nearest ASCII.
NEAREST = "milp_planner_nearest"

_PICTURES = {
    **{code: 0x2400 + code for code in range(32) if code != ord("\n")},
    0x7F: 0x2421,
    **dict.fromkeys((*range(0x80, 0xA0), *range(0x2028, 0x202F), *range(0x2066, 0x206A)), 0xFFFD),
}
_ASCII = {
    **dict.fromkeys("–−—", "-"), "…": "...", "·": "*", "×": "x", "→": "->", "≤": "<=", "≥": ">=",
    "±": "+-", "²": "^2", "³": "^3", "⁹": "^9", "µ": "u", "✓": "+", "✗": "!", "│": "|", "█": "#",
    "▓": "#", "▒": "=", "░": ".", "▪": "*", "◀": "<", "é": "e", "Σ": "sum ", "σ": "sigma",
}  # fmt: skip


def printable(text: str) -> str:
    """Text with a picture for every control character but the line break (ESC becomes ␛)."""
    return text.translate(_PICTURES)


def _nearest(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_ASCII.get(each, "?") for each in lacking), error.end


codecs.register_error(NEAREST, _nearest)
