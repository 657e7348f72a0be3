"""Errors of this package: one sentence each, about what to change."""

from __future__ import annotations


class RoutingError(ValueError):
    """An argument is wrong: says what was given and what is allowed."""


class CheckpointError(ValueError):
    """A checkpoint is damaged, unfinished or of another layout: says which file and the fix."""


class BackendUnavailable(RuntimeError):
    """A faster path was asked for and its package or device is absent: says what is missing."""
