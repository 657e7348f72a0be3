"""``price`` as a whole: the shape of its result, and its refusals."""

from __future__ import annotations

import numpy as np
import pytest

from milp_planner.errors import BadInput
from milp_planner.pricing import price
from tests.milp_planner.pricing.build import cluster, model, priced, uneven_cluster


def test_an_empty_model_is_refused() -> None:
    """A certified plan of nothing would hide a mistake."""
    with pytest.raises(BadInput, match="tables: found none, so there is nothing to place"):
        price(model(), cluster())


def test_a_table_without_options_is_refused_in_a_sentence() -> None:
    """It names table and cluster, the reason, and what would be allowed."""
    limits = {"sharding_types": ["grid_shard"]}
    with pytest.raises(BadInput) as error:
        price(model({}, {"name": "stuck", "constraints": limits}), cluster())
    text = str(error.value)
    assert "table 'stuck' has no legal option on cluster 'c'" in text
    assert "grid_shard: needs two machines or more" in text
    assert "allowed: TorchRec tables take any sharding type" in text


def test_a_mode_without_hbm_is_refused_in_a_sentence() -> None:
    """A CPU-only cluster cannot honour modes: [HBM_ONLY]."""
    limited = model({"kind": "dynamicemb", "constraints": {"modes": ["HBM_ONLY"]}})
    with pytest.raises(BadInput, match="without HBM only HOST_ONLY"):
        price(limited, cluster(hbm=0))


def test_refused_families_are_kept() -> None:
    """Families that one machine does not offer are recorded for each table."""
    options = priced({}, {"kind": "dynamicemb"})
    assert set(options.refused) == {"t0"}
    assert len(options.refused["t0"]) == 3


def test_an_unknown_profile_is_refused() -> None:
    """The nearest shipped name is offered."""
    with pytest.raises(BadInput, match="did you mean 'h100'"):
        price(model({}), cluster(profile="h1000"))


def test_offsets_partition_options_and_entries() -> None:
    """A table's options and an option's entries are contiguous; names are unique within a table."""
    options = priced({}, {"kind": "dynamicemb"}, {"dim": 256}, machines=2)
    assert options.first[0] == 0
    assert options.first[-1] == len(options) == len(options.choices)
    assert (np.diff(options.first) > 0).all()
    assert (np.diff(options.entries.first) > 0).all()
    assert options.entries.first[-1] == len(options.entries.rows)
    for table in range(3):
        names = [options.names[o] for o in options.of(table)]
        assert len(set(names)) == len(names)


def test_prices_are_whole_and_not_negative() -> None:
    """Everything an Instance takes over is an integer of at least 0."""
    e = priced({"access": {"kind": "zipf", "alpha": 1.2}}, {"kind": "dynamicemb"}).entries
    for values in (e.hbm, e.buffer, e.ddr, e.cost, e.move, e.repeat):
        assert values.dtype == np.int64
        assert (values >= 0).all()


def test_equal_tables_have_equal_prices_whatever_their_order() -> None:
    """A table's price does not depend on its neighbours."""
    tables = [{"rows": 5000}, {"kind": "dynamicemb"}, {"rows": 77, "output": "sequence"}]
    there, back = priced(*tables), priced(*reversed(tables))
    for table in range(3):
        a = there.entries.cost[there.entries.first[there.of(table).start]]
        b = back.entries.cost[back.entries.first[back.of(2 - table).start]]
        assert a.tolist() == b.tolist()


def test_uneven_machines_are_priced() -> None:
    """Shards on a machine of four ranks hold half as much as on one of two ranks."""
    options = price(model({"rows": 4000}), uneven_cluster())
    four = options.index(0, "table_row_wise/HBM_ONLY/4_ranks")
    two = options.index(0, "table_row_wise/HBM_ONLY/2_ranks")
    rows = options.entries.rows[options.entries.first[[four, two]]]
    assert rows.tolist() == [1000, 2000]
