"""Errors of this package; each message is one sentence that says what to change."""

from __future__ import annotations


class RoutingError(ValueError):
    """An argument is wrong: says what was given and what is allowed."""


class CheckpointError(ValueError):
    """A checkpoint is damaged, unfinished or of another layout: says which file and the fix."""


class BackendUnavailable(RuntimeError):
    """A backend was requested whose package or device is missing: says what is missing."""
