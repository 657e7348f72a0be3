"""Run a command under a cap on resident memory, children included, and keep its memory curve.

The cap is on what is resident, not on address space: solvers reserve far more than they touch,
and a limit on address space would stop them early.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

#: Seconds between two looks.
_STEP = 0.2
_MIB = 2**20


@dataclass
class Watched:
    """What became of a command.

    Attributes
    ----------
    lines : list of str
        What it printed.
    message : str
        Last line of its standard error.
    exit : int
    ended : str
        ``done``, ``memory`` or ``time`` (killed for either).
    seconds : float
    peak_mib : int
        Most memory resident at once, of the process and its children.
    memory : list of (seconds, MiB)
        One a second.
    """

    lines: list[str]
    message: str
    exit: int
    ended: str
    seconds: float
    peak_mib: int = 0
    memory: list[tuple[float, int]] = field(default_factory=list)


def watch(command: list[str], cap_mib: int, seconds: float) -> Watched:
    """Run a command; kill it and its children above ``cap_mib`` or after ``seconds``."""
    begin = time.monotonic()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    found = Watched([], "", 0, "done", 0.0)
    guard = threading.Thread(target=_guard, args=(process, found, cap_mib, begin, seconds))
    guard.start()
    try:
        out, err = process.communicate()
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    finally:
        guard.join()
    found.lines = out.splitlines()
    found.message = (err.strip().splitlines() or [""])[-1]
    found.exit = process.returncode
    found.seconds = round(time.monotonic() - begin, 1)
    return found


def _guard(
    process: subprocess.Popen[str], found: Watched, cap_mib: int, begin: float, seconds: float
) -> None:
    while process.poll() is None:
        now, mib = time.monotonic() - begin, tree_mib(process.pid)
        found.peak_mib = max(found.peak_mib, mib, _high_water_mib(process.pid))
        if not found.memory or now - found.memory[-1][0] >= 1.0:
            found.memory.append((round(now, 1), mib))
        if mib > cap_mib or now > seconds:
            found.ended = "memory" if mib > cap_mib else "time"
            os.killpg(process.pid, signal.SIGKILL)
            return
        time.sleep(_STEP)


def tree_mib(root: int) -> int:
    """Memory resident now, of a process and all its descendants, in MiB."""
    total, queue = 0, [root]
    while queue:
        pid = queue.pop()
        try:
            pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
            total += pages * os.sysconf("SC_PAGE_SIZE")
            for task in Path(f"/proc/{pid}/task").iterdir():
                queue += [int(child) for child in (task / "children").read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended between two reads
    return total // _MIB


def _high_water_mib(pid: int) -> int:
    """The kernel's own peak (VmHWM) of one process, which sees what polling misses."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    lines = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(lines[0].split()[1]) // 1024 if lines else 0
