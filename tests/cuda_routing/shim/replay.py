"""Run fixed batches on one compiled library: ``python -m tests.cuda_routing.shim.replay LIBRARY``.

Exits with 1 on the first wrong result. A process of its own, because a broken kernel may abort,
hang, or be watched by a sanitizer.
"""

import sys
from pathlib import Path

import numpy as np

from cuda_routing.features import Features, make_features
from cuda_routing.oracle import bucketize_numpy
from tests.cuda_routing.shim.host import SMALL, HostLauncher, bucketize_host

Batch = tuple[np.ndarray, np.ndarray, Features]


def fixed_batches() -> list[Batch]:
    """Batches that together reach every line of the kernels (int64 keys and lengths)."""
    generator = np.random.default_rng(11)
    short = generator.integers(0, 4, size=240)
    long = np.array([0, 700, 0, 0, 1, 0, 301, 0])
    wide = generator.integers(0, 30, size=60)
    return [
        _batch(short, 4, 8, [0, 1, 2, 3], generator, block_sizes=40),
        _batch(long, 2, 7, [0, 0], generator, boundaries=[[0, 5, 5, 90, 200, 300, 400, 401], None],
               block_sizes=50),
        _batch(wide, 1, 300, 1, generator),
        _batch(long, 8, 2, 3, generator),
        _batch(np.array([128]), 1, 64, 2, generator),
        _batch(np.array([1]), 1, 1, 1, generator),
        _batch(short, 3, 48, 2, generator),
        _batch(np.array([2900, 60]), 2, 40, [1, 2], generator),  # several chunks of tiles
    ]  # fmt: skip


def _batch(
    lengths: np.ndarray, count: int, ranks: int, rule: object, generator: np.random.Generator,
    **options: object,
) -> Batch:  # fmt: skip
    """A batch with half of its keys small and half with any bits."""
    size = int(lengths.sum())
    keys = generator.integers(0, 500, size=size)
    wild = generator.integers(-(2**63), 2**63 - 1, size=size)
    keys = np.where(generator.random(size) < 0.5, keys, wild)
    return lengths, keys, make_features(count, lengths.size, ranks, rule, **options)


def replay(library: Path) -> str | None:
    """The first difference found, or None."""
    for number, (lengths, keys, features) in enumerate(fixed_batches()):
        weights = np.arange(keys.size, dtype=np.float32)
        options = {"weights": weights, "positions": True}
        expected = bucketize_numpy(lengths, keys, features, **options)
        for once in (False, True):
            for reverse in (False, True):
                launcher = HostLauncher(library, reverse=reverse)
                found = bucketize_host(
                    launcher, SMALL, lengths, keys, features, once=once, **options
                )
                for name in ("lengths", "keys", "weights", "positions", "permute"):
                    if not np.array_equal(getattr(found, name), getattr(expected, name)):
                        return f"batch {number}, once={once}, reverse={reverse}: {name} differ"
    return None


if __name__ == "__main__":
    difference = replay(Path(sys.argv[1]))
    print(difference or "all batches agree")
    sys.exit(1 if difference else 0)
