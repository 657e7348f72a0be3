"""Two processes' results of a sharded training step, against the unsharded module."""

from pathlib import Path
from typing import Any

import torch

from . import two_processes


def saved(folder: Path, world: int = two_processes.WORLD) -> list[dict[str, Any]]:
    """The results that each process wrote."""
    return [torch.load(folder / str(r), weights_only=False) for r in range(world)]


def assert_trained_alike(seen: list[dict[str, Any]], copies: int = 1) -> None:
    """There is one plan; each rank's output and every shard after one SGD step agree to 1e-5, and
    all tables are there so many times."""
    assert all(rank.get("plan") == seen[0].get("plan") for rank in seen)
    covered = 0
    for rank in seen:
        assert rank["output"].abs().sum() > 0
        torch.testing.assert_close(rank["output"], rank["expected"], rtol=1e-5, atol=1e-6)
        for name, (row, column), (rows, columns), weight in rank["shards"]:
            expected = rank["updated"][name][row : row + rows, column : column + columns]
            torch.testing.assert_close(weight, expected, rtol=1e-5, atol=1e-6)
            covered += rows * columns
    assert covered == copies * sum(rows * dim for rows, dim, _ in two_processes.SHAPES.values())
