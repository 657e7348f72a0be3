"""Shards of every option cover the table, once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from milp_planner.pricing import Options, price
from tests.milp_planner.pricing.build import cluster, model, priced


def cells(options: Options, option: int, ranks: int) -> int:
    """Cells of all shards of an option, a shared entry counted for every position."""
    entries, choice = options.entries, options.choices[option]
    lo, hi = int(entries.first[option]), int(entries.first[option + 1])
    each = entries.rows[lo:hi] * entries.columns[lo:hi]
    local = {"row_wise": ranks, "table_row_wise": choice.machine_ranks,
             "grid_shard": choice.machine_ranks * choice.columns}  # fmt: skip
    positions = local.get(choice.sharding, choice.columns)
    if hi - lo == 1:
        return int(each[0]) * positions
    copies = choice.columns if choice.sharding == "grid_shard" else 1
    assert int(entries.repeat[lo:hi].sum()) * copies == positions
    return int((each * entries.repeat[lo:hi]).sum()) * copies


@given(st.integers(1, 3000), st.sampled_from([4, 32, 96, 100, 128, 512]), st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_shards_cover_the_table(rows: int, dim: int, machines: int) -> None:
    """Every option but data_parallel places every cell exactly once."""
    options = priced({"rows": rows, "dim": dim}, machines=machines, ranks=4)
    split = [o for o in options.of(0) if options.choices[o].sharding != "data_parallel"]
    assert {options.choices[o].sharding for o in split} >= {"table_wise", "row_wise"}
    for option in split:
        assert cells(options, option, 4 * machines) == rows * dim, options.names[option]


def test_uneven_columns_take_the_rest() -> None:
    """128 columns in widths of 48: two shards of 48 and one of 32."""
    limits = {"column_widths": [48], "sharding_types": ["column_wise"], "modes": ["HBM_ONLY"]}
    entries = priced({"dim": 128, "constraints": limits}).entries
    assert entries.columns.tolist() == [48, 32]
    assert entries.repeat.tolist() == [2, 1]


def test_pinned_shards_are_entries_of_their_own() -> None:
    """Four shards with a rank each; the last is narrower."""
    pin = {"sharding_type": "column_wise", "mode": "HBM_ONLY", "ranks": [0, 0, 5, 1]}
    limits = {"column_widths": [36], "pin": pin}
    entries = priced({"dim": 128, "constraints": limits}).entries
    assert entries.columns.tolist() == [36, 36, 36, 20]
    assert entries.repeat.tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("rows", [7, 8, 9, 4096])
def test_row_wise_runs(rows: int) -> None:
    """Full blocks, a shorter one, empty ones."""
    options = price(model({"rows": rows}), cluster(1, 8))
    option = options.index(0, "row_wise/HBM_ONLY")
    lo, hi = options.entries.first[option : option + 2]
    repeat = options.entries.repeat[lo:hi] if hi - lo > 1 else np.array([8])
    assert int((repeat * options.entries.rows[lo:hi]).sum()) == rows
