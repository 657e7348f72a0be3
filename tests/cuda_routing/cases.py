"""Batches that hypothesis draws for every parity test, and their result in plain Python."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

from cuda_routing.features import Features, make_features
from cuda_routing.result import Bucketized
from cuda_routing.rules import Rule

RANKS = [1, 2, 7, 8, 64, 256, 512]
FIELDS = ("lengths", "keys", "weights", "positions", "permute")


@dataclass(frozen=True)
class Case:
    """One batch with its routing."""

    lengths: np.ndarray
    keys: np.ndarray
    weights: np.ndarray
    features: Features
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def call(self) -> dict[str, Any]:
        """Keyword arguments of bucketize for this batch."""
        return self.options


@st.composite
def batches(draw: st.DrawFn, *, ranks: list[int] | None = None, longest: int = 60) -> Case:
    """Rules, ranks, dtypes, negative keys, empty rows, one long row, many short rows."""
    count = draw(st.integers(1, 4))
    width = draw(st.sampled_from([np.int32, np.int64]))
    p = draw(st.sampled_from(ranks or RANKS))
    rules = draw(st.lists(st.sampled_from(list(Rule)), min_size=count, max_size=count))
    shape = draw(st.sampled_from(["mixed", "long", "short", "empty"]))
    sizes = draw(st.lists(st.integers(0, 6), min_size=count, max_size=count))
    rows = sum(sizes)
    seed = draw(st.integers(0, 2**32 - 1))
    lengths = _lengths(shape, rows, longest, np.random.default_rng(seed))
    keys = _keys(draw, int(lengths.sum()), width, p, seed)
    options: dict[str, Any] = {
        "block_sizes": draw(
            st.lists(st.sampled_from([0, 1, 3, 1000, 2**31, 2**62]), min_size=count, max_size=count)
        ),
        "batch_sizes": sizes,
        "boundaries": [draw(_boundaries(rule, p)) for rule in rules],
        "dynamicemb_int32": draw(st.booleans()),
    }
    features = make_features(count, rows, p, rules, **options)
    options |= {"num_features": count, "ranks": p, "rule": rules}
    weights = np.random.default_rng(seed).standard_normal(keys.size).astype(np.float32)
    kind = draw(st.sampled_from([np.int32, np.int64]))
    return Case(lengths.astype(kind), keys, weights, features, options)


def _lengths(shape: str, rows: int, longest: int, generator: np.random.Generator) -> np.ndarray:
    if shape == "empty" or rows == 0:
        return np.zeros(rows, np.int64)
    if shape == "long":
        lengths = np.zeros(rows, np.int64)
        lengths[generator.integers(rows)] = 4 * longest
        return lengths
    high = 3 if shape == "short" else longest
    return generator.integers(0, high, size=rows)


def _keys(draw: st.DrawFn, count: int, width: type, ranks: int, seed: int) -> np.ndarray:
    """Small keys, keys of any bits, or the corners of the key range."""
    info = np.iinfo(width)
    kind = draw(st.sampled_from(["small", "any", "corners"]))
    generator = np.random.default_rng(seed + 1)
    if kind == "small":
        return generator.integers(-5, 4 * ranks, size=count).astype(width)
    if kind == "any":
        return generator.integers(info.min, info.max, size=count, dtype=width, endpoint=True)
    corners = [info.min, info.min + 1, -4, -1, 0, 1, ranks - 1, ranks, 3 * ranks, info.max]
    return generator.choice(np.array(corners, dtype=width), size=count)


@st.composite
def _boundaries(draw: st.DrawFn, rule: Rule, ranks: int) -> list[int] | None:
    if rule is not Rule.CONTINUOUS or draw(st.booleans()):
        return None
    inner = draw(st.lists(st.integers(0, 2**33), min_size=ranks, max_size=ranks))
    return [0, *sorted(inner)]


def by_hand(case: Case, route: Any) -> dict[str, np.ndarray]:
    """Bucketize with Python lists: one list per (rank, row), filled key by key."""
    p, rows = case.features.ranks, case.lengths.size
    cells: list[list[tuple[int, int, int]]] = [[] for _ in range(p * rows)]
    i = 0
    for row, length in enumerate(case.lengths.tolist()):
        for place in range(length):
            owner, local = route(i, row)
            cells[owner * rows + row].append((i, int(local), place))
            i += 1
    flat = [entry for cell in cells for entry in cell]
    source = np.array([entry[0] for entry in flat], dtype=np.int64)
    permute = np.empty(source.size, np.int64)
    permute[source] = np.arange(source.size)
    return {
        "lengths": np.array([len(cell) for cell in cells], dtype=np.int64),
        "keys": np.array([entry[1] for entry in flat], dtype=np.int64).astype(case.keys.dtype),
        "weights": case.weights[source],
        "positions": np.array([entry[2] for entry in flat], dtype=np.int64),
        "permute": permute,
    }


def assert_equal(found: Bucketized, expected: Any) -> None:
    """Every field is the same, bit for bit and in dtype."""
    for name in FIELDS:
        left, right = getattr(found, name), getattr(expected, name)
        assert (left is None) == (right is None), name
        if left is not None:
            assert str(left.dtype).removeprefix("torch.") == str(right.dtype), name
            np.testing.assert_array_equal(np.asarray(left), right, err_msg=name)
