"""Limits of the service, and what a process takes of them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Limits:
    """All of them can be set on the command line."""

    body: int = 4 * 2**20
    """Largest request, in bytes."""
    values: int = 300_000
    """Most numbers, texts, lists and mappings in the model or cluster of a request."""
    reading_seconds: int = 4
    reading_memory: int = 2**30
    """Most processor time and memory, in bytes, for reading a request."""
    seconds: float = 300.0
    """Longest time limit of a job."""
    memory: int = 8 * 2**30
    """Most memory of a job's process, in bytes; beyond, it is killed."""
    running: int = 1
    """Jobs solved at the same time; the others wait."""
    waiting: int = 16
    """Jobs that may wait; one more is refused."""
    kept: int = 64
    """Finished jobs whose plans are kept; the oldest goes first."""
    tables: int = 20_000
    ranks: int = 4_096
    """Most of each in one job."""
    grace: float = 5.0
    """Seconds between asking a process to stop and ending it."""
    preparing: float = 60.0
    """Seconds that a process has beyond its time limit, to start, price and write."""


def memory_of(pid: int | str, field: int) -> int:
    """Bytes of a process's address space (field 0), or of the memory that it holds (1); 0 if it has
    ended or the system does not say."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[field])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0
