"""Traces that cannot be replayed are refused before anything is simulated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from milp_planner.errors import BadInput
from milp_planner.features.simulate.plan import simulate_plan
from tests.milp_planner.features.simulate.test_ranks import planned

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
