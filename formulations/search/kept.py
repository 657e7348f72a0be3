"""Where compiled loops are kept; Numba is not imported to say so."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path


def folder_for(sources: Iterable[Path], kept: Path) -> Path:
    """A folder in ``kept`` for what is compiled from these files; those for other texts go."""
    text = b"".join(source.read_bytes() for source in sources)
    folder = kept / f"loops-{sha256(text).hexdigest()[:16]}"
    for old in kept.glob("loops-*"):
        if old != folder:
            shutil.rmtree(old, ignore_errors=True)
    return folder


def loops_folder() -> Path | None:
    """Ours; None where nothing may be written here, and Numba finds another place."""
    here, chosen = Path(__file__).parent / "kernels", os.environ.get("NUMBA_CACHE_DIR")
    if not (chosen or os.access(here, os.W_OK)):
        return None
    kept = Path(chosen or here / "__pycache__")
    return folder_for([*sorted(here.glob("*.py")), here.parent / "anneal_data.py"], kept)


def mark() -> Path | None:
    """A file in that folder that says that all loops are in it, for this Python and this Numba."""
    folder = loops_folder()
    return folder and folder / f"complete-{sys.implementation.cache_tag}-{version('numba')}"
