"""``price`` as a whole: the shape of its result, and its refusals.

Absurd sizes are refused in a sentence; hopeless options are dropped if sums would overflow.

What pricing computes for a job, and when.

Finding options by table and name.

Rounding between seconds, picoseconds and multiples.
"""

from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulations.instance.validate import validate
from milp_planner.errors import BadInput
from milp_planner.plans.compile import compile_instance
from milp_planner.pricing import price
from milp_planner.pricing.exchange import links_of
from milp_planner.pricing.job import job_of
from milp_planner.pricing.profile import load_profile
from milp_planner.pricing.units import ceil_div, picoseconds, round_up
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


def test_distinct_rows_are_computed_only_where_a_price_needs_them() -> None:
    """A prefetch pipeline and a curve over batch cover need them; the shipped curves do not."""
    site, shipped = cluster(), load_profile("a10")
    covered = shipped.caching.model_copy(update={"over": "batch_cover"})
    for profile, prefetch, needed in (
        (shipped, False, False),
        (shipped, True, True),
        (shipped.model_copy(update={"caching": covered}), False, True),
    ):
        job = job_of(model({}, prefetch_pipeline=prefetch), site, profile, links_of(site))
        assert (job.traffic.distinct[0] > 0) == needed


def test_options_are_found_by_name() -> None:
    """Index, ratio and group of a named option; no such name is a KeyError."""
    options = priced({}, {"kind": "dynamicemb"})
    index = options.index(1, "row_wise/HYBRID/0.4/roundrobin")
    assert index in options.of(1)
    assert options.choices[index].ratio == Fraction(2, 5)
    assert "caching=false" in options.groups[options.group[index]]
    with pytest.raises(KeyError):
        options.index(0, "row_wise/HYBRID/0.4/roundrobin")


def test_picoseconds_round_to_the_nearest_with_ties_to_even() -> None:
    """Half a picosecond goes to the even neighbour; nothing is truncated."""
    assert picoseconds(np.array([1e-3, 0.5e-12, 1.5e-12, 2.6e-12])).tolist() == [10**9, 0, 2, 3]


@given(st.integers(0, 2**60), st.integers(1, 2**30))
def test_ceil_div_is_exact(numerator: int, denominator: int) -> None:
    """The quotient is the least integer that is large enough."""
    quotient = int(ceil_div(numerator, denominator))
    assert (quotient - 1) * denominator < numerator <= quotient * denominator


@given(st.integers(0, 2**40), st.integers(1, 4096))
def test_round_up_is_the_least_multiple(value: int, multiple: int) -> None:
    """The result is a multiple, not below the value, and less than one multiple above it."""
    result = int(round_up(value, multiple))
    assert result % multiple == 0
    assert value <= result < value + multiple


#: Imported by its path, since the package's name for it is the function.
limits = import_module("milp_planner.pricing.price")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"rows": 2**50}, "'t0': its rows and optimizer state would take"),
        ({"rows": 2**50, "kind": "dynamicemb"}, "'t0': its rows and optimizer state would take"),
        ({"kind": "dynamicemb", "bucket_capacity": 2**50}, "rows and optimizer state"),
        ({"kind": "dynamicemb", "admission_capacity": 2**50}, "'t0': its admission counter"),
        ({"pooling_factor": 1e13}, "'t0': its exchange of one step would take"),
    ],
)
def test_absurd_sizes_are_refused(table: dict[str, Any], words: str) -> None:
    """One sentence names the table, what is too large, and the limit of 2^53."""
    with pytest.raises(BadInput, match=words):
        price(model(table), cluster())


def test_absurd_times_are_refused() -> None:
    """A step of hours is an input error, not an overflow."""
    slow = cluster(interconnect={"intra_machine": "1kB/s", "inter_machine": "1kB/s"})
    with pytest.raises(BadInput, match="one step of a shard would take"):
        price(model({"rows": 10**7}), slow)


def test_small_problems_keep_options_that_do_not_fit() -> None:
    """A plan under audit may use them."""
    options = price(model({"rows": 10**9}), cluster(hbm="1GiB"))
    assert "data_parallel/HBM_ONLY" in options.names
    assert not limits.fits_somewhere(options).all()


def test_sums_beyond_the_limit_drop_what_fits_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is a valid Instance with the fitting options at unchanged prices."""
    tables = ({"rows": 10**9}, {"rows": 1000})
    full = price(model(*tables), cluster(hbm="1GiB"))
    keep = limits.fits_somewhere(full)
    bound = limits._largest_sum(full)
    monkeypatch.setattr(limits, "MAX_ACTIVITY", bound)
    pruned = price(model(*tables), cluster(hbm="1GiB"))
    assert list(pruned.names) == [n for n, k in zip(full.names, keep, strict=True) if k]
    assert "options fit on no rank" in pruned.refused["t0"][-1]
    validate(compile_instance(pruned))
    for table in (0, 1):
        for option in pruned.of(table):
            same = full.index(table, pruned.names[option])
            a, b = pruned.entries.first[option], full.entries.first[same]
            assert pruned.entries.cost[a].tolist() == full.entries.cost[b].tolist()


def test_sums_beyond_the_limit_even_so_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence says that the problem is too large."""
    monkeypatch.setattr(limits, "MAX_ACTIVITY", 10)
    with pytest.raises(BadInput, match=r"beyond 2\^62; plan fewer tables or ranks"):
        priced({})


def test_a_table_that_fits_nowhere_keeps_its_options() -> None:
    """The solver has to prove that there is no plan."""
    options = price(model({"rows": 10**9}), cluster(hbm="1MiB", ddr="1MiB"))
    assert limits.fits_somewhere(options).all()


def test_row_wise_must_fit_the_smallest_rank() -> None:
    """Whole shards may use the largest rank, row-wise ones need all."""
    machines = [{"ddr": "1TB", "ranks": [{"hbm": "80GiB"}, {"hbm": "1MiB"}]}]
    site = type(cluster()).from_dict({**cluster().to_dict(), "machines": machines})
    options = price(model({"rows": 10**6}), site)
    fits = limits.fits_somewhere(options)
    assert fits[options.index(0, "table_wise/HBM_ONLY")]
    assert not fits[options.index(0, "row_wise/HBM_ONLY")]


def test_select_renumbers_everything() -> None:
    """Offsets, groups and entries of the chosen options match."""
    options = priced({}, {"kind": "dynamicemb"})
    keep = np.zeros(len(options), dtype=bool)
    keep[[2, options.first[1] + 3]] = True
    small = limits.select(options, keep)
    assert small.first.tolist() == [0, 1, 2]
    assert small.names == [options.names[2], options.names[options.first[1] + 3]]
    assert small.group[1] == options.group[options.first[1] + 3]
    assert small.entries.first[-1] == len(small.entries.rows)
    validate(compile_instance(small))
