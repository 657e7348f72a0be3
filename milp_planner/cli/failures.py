"""What each kind of failure prints, and the exit code it means."""

from __future__ import annotations

import os
import sys
import traceback

import typer

from milp_planner.errors import PlannerError

OK, FALLS_SHORT, BAD_INPUT, NO_PLAN, INTERNAL, INTERRUPTED = 0, 1, 2, 3, 70, 130

#: The base of all errors in arguments; typer ships or imports click depending on its version.
_USAGE_ERROR = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "UsageError")


def report(error: BaseException) -> int:
    """Print one sentence for a foreseen failure, a traceback for a bug; return the exit code."""
    if isinstance(error, typer.Exit):
        return int(error.exit_code)
    if isinstance(error, (KeyboardInterrupt, typer.Abort)):
        say("interrupted")
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):
        _drop_output()
        return OK
    if isinstance(error, _USAGE_ERROR):
        return _report_usage(error)
    if isinstance(error, PlannerError):
        say(str(error))
        return error.exit_code
    return _report_mathematics(error)


def close_output() -> None:
    """Flush standard output; a reader that went away early (``| head``) is no failure."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()


def _report_usage(error: BaseException) -> int:
    context = getattr(error, "ctx", None)
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    if context is not None and type(error).__name__ == "NoArgsIsHelpError":
        print(message)  # the help text itself
        return BAD_INPUT
    hint = f" (see {context.command_path} --help)" if context is not None else ""
    say(" ".join(message.split()) + hint)
    return BAD_INPUT


def _report_mathematics(error: BaseException) -> int:
    """Errors of ``formulations``, imported only now: they are loaded if they were raised."""
    from formulations.errors import InstanceError, InternalError, MissingSolver

    if isinstance(error, (InstanceError, MissingSolver)):
        say(str(error))
        return BAD_INPUT
    if isinstance(error, InternalError):
        say(str(error))
        return INTERNAL
    traceback.print_exception(error)
    say(
        f"internal error ({type(error).__name__}): this is a bug in milp-planner; please report it "
        "with the command and the lines above"
    )
    return INTERNAL


def say(sentence: str) -> None:
    """Tell something on stderr, beside the answer or instead of one."""
    print(f"milp-planner: {sentence}", file=sys.stderr)


def _drop_output() -> None:
    """Point standard output at nothing, so that the interpreter's last flush stays silent."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
