"""Where compiled loops are kept, found without importing Numba.

They lie in the user's cache folder and not beside the sources: what pip did not install it would
not remove, and a folder left behind hides a package of the same name.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterable
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

from formulations.search.numbers import UNUSED


def user_cache() -> Path:
    """The folder for caches of the user on this system."""
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local) if local else Path.home() / "AppData" / "Local"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(base) if base else Path.home() / ".cache"


def folder_for(sources: Iterable[Path], kept: Path) -> Path:
    """The folder in ``kept`` for code compiled from these files.

    Its name has a digest of their texts, places and times, since Numba keeps code by place and time
    but does not notice that a function called in another file has changed.
    """
    digest = sha256()
    for source in sources:
        digest.update(f"{source.resolve()} {source.stat().st_mtime_ns}".encode())
        digest.update(source.read_bytes())
    return kept / f"loops-{digest.hexdigest()[:16]}"


def loops_folder() -> Path | None:
    """Our folder; None if it cannot be written, in which case Numba chooses a place."""
    here, chosen = Path(__file__).parent / "kernels", os.environ.get("NUMBA_CACHE_DIR")
    try:
        kept = Path(chosen) if chosen else user_cache() / "milp-planner"
        read = [here.parent / "anneal_data.py", here.parent / "numbers.py"]
        folder = folder_for([*sorted(here.glob("*.py")), *read], kept)
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # read-only, or a user without a home
        return None
    return folder if os.access(folder, os.W_OK) else None


def mark() -> Path | None:
    """The file that marks our folder as complete for this version of Python and of Numba."""
    folder = loops_folder()
    return folder and folder / f"complete-{sys.implementation.cache_tag}-{version('numba')}"


def used(complete: Path) -> None:
    """Mark a folder as complete and in use; remove those of other versions that nobody uses."""
    complete.touch()
    os.utime(complete.parent)
    for old in complete.parent.parent.glob("loops-*"):
        if old != complete.parent and time.time() - old.stat().st_mtime > UNUSED * 86_400:
            shutil.rmtree(old, ignore_errors=True)
