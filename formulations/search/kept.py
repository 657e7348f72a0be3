"""Where compiled loops are kept, found without importing Numba."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path


def folder_for(sources: Iterable[Path], kept: Path) -> Path:
    """The folder in ``kept`` for code compiled from these files; folders of other versions are
    removed."""
    text = b"".join(source.read_bytes() for source in sources)
    folder = kept / f"loops-{sha256(text).hexdigest()[:16]}"
    for old in kept.glob("loops-*"):
        if old != folder:
            shutil.rmtree(old, ignore_errors=True)
    return folder


def loops_folder() -> Path | None:
    """Our folder; None if it is not writable, in which case Numba chooses a place."""
    here, chosen = Path(__file__).parent / "kernels", os.environ.get("NUMBA_CACHE_DIR")
    if not (chosen or os.access(here, os.W_OK)):
        return None
    kept = Path(chosen or here / "__pycache__")
    return folder_for([*sorted(here.glob("*.py")), here.parent / "anneal_data.py"], kept)


def mark() -> Path | None:
    """The file that marks our folder as complete for this version of Python and of Numba."""
    folder = loops_folder()
    return folder and folder / f"complete-{sys.implementation.cache_tag}-{version('numba')}"
