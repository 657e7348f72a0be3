"""Traces that cannot be replayed are refused before anything is simulated.

Drawn lookups follow their law; scattered ids are a permutation.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.simulator.streams import drawn, read_keys, scattered
from benchmarks.simulator.whole import simulate_plan
from milp_planner.errors import BadInput
from milp_planner.pricing.popularity import zipf
from tests.benchmarks.simulator.test_plan import planned

ARRAY = {"name": "t", "rows": 60_000, "dim": 64, "pooling_factor": 8, "optimizer": "sgd"}
LOOKUPS = 2 * 256 * 8

HASH = {"name": "t", "rows": 60_000, "dim": 64, "pooling_factor": 8, "kind": "dynamicemb"}


@pytest.mark.parametrize("key", [60_000, 10**12, -5])
def test_arrays_have_their_rows_only(key: int) -> None:
    """The sentence names the key and what is allowed; the last row is allowed."""
    keys = np.full(2 * LOOKUPS, 59_999)
    found = planned(ARRAY)
    assert simulate_plan(found, 1, 0, {"t": keys}).tables[0].held == 1
    keys[3] = key
    with pytest.raises(BadInput) as error:
        simulate_plan(found, 1, 0, {"t": keys})
    assert str(error.value) == (
        f"the trace of table 't': key number 4 is {key}; allowed: 0 to 59999, the rows of table 't'"
    )


def test_hash_tables_may_have_any_id() -> None:
    """Ids beyond the capacity, and negative ones, are keys like any other."""
    keys = np.resize([10**12, -5], 2 * LOOKUPS)
    assert simulate_plan(planned(HASH), 1, 0, {"t": keys}).tables[0].held == 1


def test_int32_keys_have_32_bits() -> None:
    """A key that the runtime cannot hold is refused; the widest that it can hold is not."""
    table = {**HASH, "index_type": "int32"}
    keys = np.resize([2**32 - 1, -(2**31)], 2 * LOOKUPS)
    assert simulate_plan(planned(table), 1, 0, {"t": keys}).tables[0].held == 1
    keys[7] = 2**32
    with pytest.raises(BadInput, match="key number 8 is 4294967296; allowed: -2147483648 to 42"):
        simulate_plan(planned(table), 1, 0, {"t": keys})


@pytest.mark.parametrize("mode", ["HBM_ONLY", "CACHING", "HYBRID"])
def test_tables_too_large_to_replay_are_refused(mode: str) -> None:
    """More slots than memory and 32-bit numbers allow: a sentence with the remedy."""
    constraints: dict[str, Any] = {"modes": mode}
    if mode != "HBM_ONLY":
        constraints["cache_ratios"] = [0.2]
    table = {**HASH, "rows": 1_600_000_000, "dim": 4, "constraints": constraints}
    with pytest.raises(BadInput, match=r"slots; allowed: at most 268,435,456 .* drop --trace"):
        simulate_plan(planned(table), 1, 0, {"t": np.zeros(2 * LOOKUPS, np.int64)})


def test_a_bad_trace_is_found_before_anything_is_simulated() -> None:
    """Even the last table's trace is checked before the first table is replayed."""
    done: list[str] = []
    found = planned({**ARRAY, "name": "first"}, {**ARRAY, "name": "last"})
    with pytest.raises(BadInput, match="'last'"):
        simulate_plan(found, 1, 0, {"last": np.full(2 * LOOKUPS, -1)}, done.append)
    assert done == []


@pytest.mark.parametrize("alpha", [0.0, 0.7, 1.3])
def test_drawn_lookups_follow_the_law(alpha: float) -> None:
    """Shares of the hottest rows and of the rest agree with Zipf's law."""
    weights = np.arange(1, 2001, dtype=np.float64) ** -alpha
    found = drawn(zipf(2000, alpha)).draw(400_000, np.random.default_rng(0))
    shares = np.bincount(found, minlength=2000) / 400_000
    for rows in (1, 10, 64, 500, 2000):
        expected = weights[:rows].sum() / weights.sum()
        assert shares[:rows].sum() == pytest.approx(expected, abs=0.004)


def test_a_thinned_stream_keeps_its_shape() -> None:
    """With a tenth of the rows, the same share of rows gets the same share of lookups."""
    whole = drawn(zipf(100_000, 0.9))
    thin = whole.thinned(0.1)
    assert thin.rows == 10_000
    generator = np.random.default_rng(1)
    for share in (0.01, 0.2, 0.7):
        a = (whole.draw(200_000, generator) < share * 100_000).mean()
        assert (thin.draw(200_000, generator) < share * 10_000).mean() == pytest.approx(a, abs=0.01)


@given(st.integers(1, 600), st.integers(0, 50), st.data())
@settings(max_examples=60)
def test_scattered_ids_are_a_permutation(rows: int, seed: int, data: st.DataObject) -> None:
    """Every id occurs once, and known ids keep their places."""
    first = data.draw(st.lists(st.integers(0, rows - 1), max_size=min(rows, 6), unique=True))
    ids = scattered(np.arange(rows), rows, seed, first)
    assert sorted(ids.tolist()) == list(range(rows))
    assert ids[: len(first)].tolist() == first


def test_keys_come_from_files(tmp_path: Path) -> None:
    """Several files are read one after another; a file without a key is refused."""
    np.save(tmp_path / "a.npy", np.array([3, 1]))
    (tmp_path / "b.txt").write_text("7\n-2\n")
    assert read_keys([tmp_path / "a.npy", tmp_path / "b.txt"]).tolist() == [3, 1, 7, -2]
    (tmp_path / "c.txt").write_text("")
    with pytest.raises(BadInput, match="holds no key"):
        read_keys([tmp_path / "c.txt"])
