"""Tests in this folder need TorchRec's planning service (1.9); with earlier versions they are left
out."""

from importlib.util import find_spec

HAS_SERVICE = (
    find_spec("torchrec") is not None
    and find_spec("torchrec.distributed.planner.provider") is not None
)

if not HAS_SERVICE:
    collect_ignore_glob = ["test_*.py"]
