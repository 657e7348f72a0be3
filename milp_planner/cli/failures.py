"""The message and exit code of each kind of failure."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
import traceback
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, TextIO

import typer

from milp_planner.errors import NEAREST, BadInput, PlannerError, printable

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

OK, FALLS_SHORT, BAD_INPUT, NO_PLAN, INTERNAL, INTERRUPTED = 0, 1, 2, 3, 70, 130

#: Base class of all errors in arguments. Depending on its version, typer bundles or imports click.
_USAGE_ERROR = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "UsageError")


KINDS = {
    FALLS_SHORT: "falls_short", BAD_INPUT: "bad_input", NO_PLAN: "no_plan",
    INTERNAL: "internal_error", INTERRUPTED: "interrupted",
}  # fmt: skip
"""Kind of a failure in ``--json``, by its exit code."""


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether a command line contains ``--json``."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return "--json" in arguments[:end]


def report(error: BaseException, as_json: bool = False) -> int:
    """Report a failure on stderr, in one sentence or, for a bug, with its traceback.

    Errors of the operating system (an invalid file name, a full disk, no memory left) are not bugs.
    With ``--json`` one object is printed, ``{"error": {"kind", "message", "exit_code"}}``, with
    ``problems`` for bad input (as ``check`` lists them) and ``traceback`` for a bug.

    Returns
    -------
    int
        Exit code.
    """
    if isinstance(error, typer.Exit):
        return int(error.exit_code)
    if type(error).__name__ == "NoArgsIsHelpError":
        print(str(error))  # the help text itself
        return BAD_INPUT
    code, message, foreseen = _judged(error)
    if as_json:
        _say_json(error, code, message, foreseen)
        return code
    if not foreseen:
        traceback.print_exception(error)
    say(message)
    return code


def _judged(error: BaseException) -> tuple[int, str, bool]:
    """Exit code and message of a failure, and whether it was expected (not a bug)."""
    if isinstance(error, (KeyboardInterrupt, typer.Abort)):
        return INTERRUPTED, "interrupted", True
    if isinstance(error, _USAGE_ERROR):
        return BAD_INPUT, _usage(error), True
    if isinstance(error, PlannerError):
        return error.exit_code, str(error), True
    if isinstance(error, OSError):
        where = "standard output" if error.filename is None else error.filename
        return BAD_INPUT, f"{where}: {error.strerror or error}", True
    if isinstance(error, MemoryError):
        return NO_PLAN, "out of memory: use a machine with more memory, or a smaller input", True
    return _mathematics(error)


def _say_json(error: BaseException, code: int, message: str, foreseen: bool) -> None:
    report_body: dict[str, object] = {"kind": KINDS[code], "message": message, "exit_code": code}
    if isinstance(error, BadInput):
        report_body["problems"] = [asdict(problem) for problem in error.problems]
    if not foreseen:
        report_body["traceback"] = "".join(traceback.format_exception(error))
    with contextlib.suppress(OSError):  # stderr may be closed or full: the exit code remains
        print(json.dumps({"error": report_body}), file=sys.stderr)


def open_streams() -> None:
    """Make every standard stream writable, with an encoding that can write all our output.

    What a reader no longer wants (``| head``) is dropped, so that a command ends with its own code.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:  # closed by the parent process: the next file opened would take its number
            os.open(os.devnull, os.O_RDWR)
    sys.stdout, sys.stderr = _stream(1, sys.stdout), _stream(2, sys.stderr)


def _stream(number: int, before: TextIO | None) -> TextIO:
    """A stream like the one of ``before``, whose reader may leave."""
    raw = _Output(number, "wb", closefd=False)
    at_once = getattr(before, "write_through", False)  # PYTHONUNBUFFERED
    return io.TextIOWrapper(
        raw if at_once else io.BufferedWriter(raw),
        "utf-8" if before is None else before.encoding, NEAREST,
        line_buffering=number == 2 or raw.isatty(), write_through=at_once,
    )  # fmt: skip


class _Output(io.FileIO):
    """A file that takes everything, and drops it once its reader has left."""

    def write(self, data: ReadableBuffer) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            return memoryview(data).nbytes


def close_output(code: int, as_json: bool = False) -> int:
    """Flush standard output and return the exit code, which changes if nothing can be written."""
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the last flush cannot fail
        if code == BAD_INPUT:  # a print has failed already, and one sentence is enough
            return code
        return report(error, as_json)
    return code


def _usage(error: BaseException) -> str:
    context = getattr(error, "ctx", None)
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    hint = f" (see {context.command_path} --help)" if context is not None else ""
    return _CHOICE.sub(_chosen, " ".join(message.split())) + hint


#: How Typer words a value that is not of an enumeration.
_CHOICE = re.compile(r"(?:Value error, )?'([^']*)' is not one of ('.*')\.?$")
_QUOTED = re.compile("'([^']*)'")


def _chosen(found: re.Match[str]) -> str:
    """The same in our words, with the nearest name."""
    from milp_planner.inputs.problems import choice

    return f"found {found[1]}; {choice(found[1], _QUOTED.findall(found[2]))}"


def _mathematics(error: BaseException) -> tuple[int, str, bool]:
    """Errors of ``formulations``; if one was raised, the package is already imported."""
    from formulations.errors import InstanceError, InternalError, MissingSolver

    if isinstance(error, (InstanceError, MissingSolver)):
        return BAD_INPUT, str(error), True
    if isinstance(error, InternalError):
        return INTERNAL, str(error), True
    bug = (
        f"internal error ({type(error).__name__}): this is a bug in milp-planner; please report it "
        "with the command and its traceback"
    )
    return INTERNAL, bug, False


def say(sentence: str) -> None:
    """Write a line to stderr."""
    with contextlib.suppress(OSError):  # stderr may be closed or full: the exit code remains
        print(f"milp-planner: {printable(sentence)}", file=sys.stderr)


def finish(status: str, interrupted: bool = False) -> None:
    """Exit with the code of an Outcome's status, or 130 if interrupted; return if it is 0."""
    code = {"infeasible": FALLS_SHORT, "unknown": NO_PLAN}.get(status, OK)
    code = INTERRUPTED if interrupted else code
    if code != OK:
        raise typer.Exit(code)
