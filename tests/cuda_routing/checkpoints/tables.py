"""Tables of known content, which every rank saves and which are read back as one dictionary."""

from pathlib import Path

import numpy as np

from cuda_routing.checkpoints import Shard, inspect, load_shard, save_shard
from cuda_routing.rules import Rule, block_size_of, local_keys, owners

ROWS = 400
DIM = 3


def content(keys: np.ndarray) -> dict[str, np.ndarray]:
    """Values, scores and optimizer state that no other key has."""
    return {
        "values": np.stack([keys * 2.0, keys + 0.5, -keys], 1).astype(np.float32),
        "scores": (keys + 7).astype(np.uint64),
        "opt_values": (keys[:, None] * np.array([3.0, 4.0])).astype(np.float32),
    }


def some_keys(count: int, seed: int = 0) -> np.ndarray:
    """Different keys of the table, in random order."""
    return np.random.default_rng(seed).permutation(ROWS)[:count].astype(np.int64)


def shard_of(keys: np.ndarray, rank: int, world: int, rule: Rule, *, full: bool = True) -> Shard:
    """The part of a table that one rank holds."""
    block = block_size_of(ROWS, world)
    mine = keys[owners(keys, world, rule, block_size=block) == rank]
    parts = content(mine) if full else {"values": content(mine)["values"]}
    return Shard(local_keys(mine, world, rule, block_size=block), **parts)


def save_table(
    folder: Path, keys: np.ndarray, world: int, rule: Rule, *, table: str = "t", full: bool = True,
    tag: str | None = None,
) -> None:  # fmt: skip
    """Save a table from all ranks."""
    for rank in range(world):
        save_shard(
            folder, table, shard_of(keys, rank, world, rule, full=full), rank=rank,
            world_size=world, rule=rule, rows=ROWS, evict_strategy="LRU", tag=tag, durable=False,
        )  # fmt: skip


def assert_holds(folder: Path, keys: np.ndarray, *, table: str = "t", full: bool = True) -> None:
    """Every key is there once, on the rank that owns it, with its own content."""
    info = inspect(folder, table)
    block = block_size_of(ROWS, info.world_size)
    seen = []
    for rank in range(info.world_size):
        shard = load_shard(folder, table, rank=rank, world_size=info.world_size, rule=info.rule)
        first = rank * block if info.rule is Rule.CONTINUOUS else 0
        found = shard.keys + first
        owner = owners(found, info.world_size, info.rule, block_size=block)
        assert (owner == rank).all()
        expected = content(found)
        np.testing.assert_array_equal(shard.values, expected["values"])
        if full:
            np.testing.assert_array_equal(shard.scores, expected["scores"])
            np.testing.assert_array_equal(shard.opt_values, expected["opt_values"])
        seen.append(found)
    np.testing.assert_array_equal(np.sort(np.concatenate(seen)), np.sort(keys))
