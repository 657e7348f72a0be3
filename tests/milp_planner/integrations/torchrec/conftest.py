"""Tests of this folder need TorchRec; ``../test_torchrec_extra.py`` skips visibly without it."""

from importlib.util import find_spec

if find_spec("torchrec") is None:
    collect_ignore_glob = ["*test_*.py"]  # in its subfolders, too
