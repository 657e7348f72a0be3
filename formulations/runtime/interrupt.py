"""Ctrl-C in Python: the first ends the search with the best plan found, the second abandons it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_TICK = 0.1


def interruptible(
    job: Callable[[], T], stop: threading.Event, watch: Callable[[], object] | None = None
) -> T:
    """Run a job that returns what it has soon after ``stop`` is set.

    A ``KeyboardInterrupt`` while it runs sets ``stop`` and is not raised; ``stop`` is cleared
    again at the end, so that the same settings serve for another solve. The job runs in a thread
    of its own, because Python handles signals only in the main thread and between two of its
    instructions, and a solver's native call is one long instruction. Outside the main thread, where
    Python raises no ``KeyboardInterrupt``, the job is simply called, unless there is a ``watch``.

    Parameters
    ----------
    job : callable
    stop : threading.Event
    watch : callable, optional
        Called ten times a second in the caller's thread while the job runs, and once after it.
        False counts as a ``KeyboardInterrupt``, after which it is not called again.

    Raises
    ------
    KeyboardInterrupt
        On the second interrupt; the job then ends by itself in the background.
    Exception
        Whatever the job or ``watch`` raises, once the job has stopped.
    """
    if watch is None and threading.current_thread() is not threading.main_thread():
        return job()
    results: list[T] = []
    errors: list[BaseException] = []
    done = threading.Event()

    def body() -> None:
        try:
            results.append(job())
        except BaseException as error:  # handed to the caller's thread below
            errors.append(error)
        finally:
            done.set()

    begun = ours = False
    try:
        threading.Thread(target=body, name="solve").start()
        begun = True
        _wait(done, watch)
    except BaseException as error:
        ours = not stop.is_set()
        stop.set()
        if not begun:
            raise
        _wait(done)
        if not isinstance(error, KeyboardInterrupt):
            errors.append(error)
    if ours:
        stop.clear()
    if errors:
        raise errors[0]
    return results[0]


def _wait(done: threading.Event, watch: Callable[[], object] | None = None) -> None:
    ended = False
    while not ended:
        ended = done.wait(_TICK)
        if watch is not None and watch() is False:
            raise KeyboardInterrupt
