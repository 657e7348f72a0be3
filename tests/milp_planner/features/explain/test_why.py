"""Alternatives against enumeration with the option pinned.

The slowest ranks, what they exchange, and how even the ranks are.

Raising skew to a power, against the same shares written out row by row.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from formulations import (
    Instance,
    Settings,
    Status,
    solve,
)
from formulations.capacity.budget import Budget
from formulations.diagnose.questions import constraints_of, lift
from formulations.instance import Pin
from formulations.result.check import check
from formulations.result.outcome import StoppedBy, found
from milp_planner import Cluster, Model, plan
from milp_planner.errors import BadInput
from milp_planner.features.explain.axes import with_more
from milp_planner.features.explain.perturb import is_skewed, with_skew
from milp_planner.features.explain.slowest import Imbalance, imbalance_of, slowest_of
from milp_planner.features.explain.swap import swap
from milp_planner.features.explain.why import MOST_TABLES, Alternative, why
from milp_planner.features.plan.tables import piles
from milp_planner.inputs.access import Access, MissRate
from milp_planner.plans.placement import decode
from milp_planner.pricing.hit_ratios import CachePolicy, hit_ratios
from milp_planner.pricing.popularity import popularity
from milp_planner.start.mapping import start_on
from tests.formulations.brute_force import brute_force, table_placements
from tests.formulations.examples import ANY, at, built, two_modes
from tests.milp_planner.features.explain.quick import quick, small, truth

LIMITS = Settings(time_limit=30, workers=1)


def _pinned(instance: Instance, table: int, name: str) -> int | None:
    option = instance.option_index(table, name)
    return truth(replace(instance, pins=(Pin(table, option),))).objective


def _forbids(instance: Instance, table: int, other: Alternative) -> None:
    """The named constraints alone leave no plan with this option."""
    option = instance.option_index(table, other.option)
    left = replace(instance, pins=(Pin(table, option),))
    for name in constraints_of(left):
        if name not in (*other.forbidden_by, "pins"):
            left = lift(left, name)
    assert brute_force(left).objective is None


@settings(max_examples=12, deadline=None)
@given(instance=small())
def test_every_alternative_costs_what_enumeration_says(instance: Instance) -> None:
    """Cost, bound and impossibility are those of the instance with the option pinned."""
    plan = solve(instance, "cpsat", LIMITS)
    assume(plan.status == Status.OPTIMAL)
    info, _ = why(instance, plan, quick(), count=9)
    for index, row in enumerate(info.tables):
        assert len(row.alternatives) == row.options - 1
        for other in row.alternatives:
            best = _pinned(instance, index, other.option)
            assert other.cost == best
            assert (other.status == "infeasible") == (best is None)
            assert other.bound is None if best is None else other.bound == best
            assert best is None or best >= info.objective
            if best is None:
                _forbids(instance, index, other)


def test_no_time_leaves_certified_bounds() -> None:
    """Even without time to re-solve there are bounds, and they hold against enumeration."""
    bounds = []

    @settings(max_examples=6, deadline=None)
    @given(instance=small())
    def each(instance: Instance) -> None:
        plan = solve(instance, "cpsat", LIMITS)
        assume(plan.status == Status.OPTIMAL)
        budget = quick()
        budget.settings.stop.set()
        info, _ = why(instance, plan, budget, count=9)
        for index, row in enumerate(info.tables):
            for other in row.alternatives:
                best = _pinned(instance, index, other.option)
                if other.status == "infeasible":
                    assert best is None
                elif best is not None:
                    assert other.bound is None or other.bound <= best
                    assert other.cost is None or other.cost >= best
                    bounds.append(other.bound)

    each()
    assert any(bound is not None for bound in bounds)


def test_the_budget_that_forbids_is_named() -> None:
    """CACHING for both needs 20 of the 12 bytes of DDR: with b kept at CACHING, a lacks 8."""
    instance = two_modes()
    plan = solve(instance, "cpsat", LIMITS)
    info, _ = why(instance, plan, quick(), count=1)
    hybrid = next(row for row in info.tables if row.option == "HYBRID")
    (other,) = hybrid.alternatives
    assert other.option == "CACHING"
    assert [(s.resource, s.short_by) for s in other.lacks] == [("ddr", 8)]
    assert other.beside is None
    assert other.cost == 12  # the other table leaves CACHING


@pytest.mark.parametrize("hbm", [8, 7])
def test_what_no_plan_can_have_names_its_conflict(hbm: int) -> None:
    """With hbm 8 only CACHING for both fits, so hbm alone forbids HYBRID; with 7 no solve is needed
    to see that, as HYBRID alone needs 8."""
    instance = two_modes(hbm=8, ddr=20)
    plan = solve(instance, "cpsat", LIMITS)
    info, _ = why(with_more(instance, "hbm", hbm - 8), plan, quick(), tables=["a"])
    (other,) = info.tables[0].alternatives
    assert (other.status, other.cost, other.bound) == ("infeasible", None, None)
    assert other.forbidden_by == ("hbm",)


def test_unknown_tables_and_empty_plans_are_refused() -> None:
    """One sentence each."""
    instance = two_modes()
    plan = solve(instance, "cpsat", LIMITS)
    with pytest.raises(BadInput, match="table 'c'"):
        why(instance, plan, quick(), tables=["c"])
    with pytest.raises(BadInput, match="places nothing"):
        why(instance, plan.with_(placement=None), quick())


@settings(max_examples=25, deadline=None)
@given(instance=small())
def test_a_swap_is_what_the_check_says_of_it(instance: Instance) -> None:
    """A swap's objective and shortages, from partial loads, are those of the whole check; an option
    with a single shard gets the best place."""
    best = truth(instance).placement
    assume(best is not None)
    whole = piles(instance, best, range(instance.num_tables))
    for option in range(instance.num_options):
        found = swap(instance, best, option, whole)
        if found is None:  # too few places, so enumeration finds none either
            assert not list(table_placements(instance, option))
            continue
        verdict = check(instance, found.placement)
        assert found.objective == (
            verdict.objectives[instance.objective.value] if verdict.feasible else None
        )
        assert bool(found.lacks or found.clashes) == (not verdict.feasible)
        over = [
            (r.name, int((use - r.capacity).max()))
            for r, use in zip(instance.resources, verdict.loads.use, strict=True)
            if (use > r.capacity).any()
        ]
        assert [(each.resource, each.short_by) for each in found.lacks] == over
        blocks = [instance.block(b) for b in instance.blocks_of(option)]
        if len(blocks) == 1 and blocks[0].count == 1 and found.objective is None:
            table = int(instance.table_of[option])
            for ranks in table_placements(instance, option):
                there = list(found.placement.ranks)
                there[table] = [np.asarray(r, dtype=int) for r in ranks]
                assert not check(instance, replace(found.placement, ranks=there)).feasible


def test_of_many_tables_the_costliest_are_asked_about() -> None:
    """Above the limit, those with most time on one rank are explained, costliest first."""
    tables = [{"a": at(ANY, i + 1), "b": at(ANY, i + 2)} for i in range(MOST_TABLES + 5)]
    instance = built(tables, hbm=10**6)
    outcome = solve(instance, "greedy", Settings(time_limit=2))
    info, _ = why(instance, outcome, Budget(Settings(time_limit=0.5)), count=1)
    assert [t.table for t in info.tables] == [f"t{i}" for i in reversed(range(5, MOST_TABLES + 5))]
    assert info.left == 5
    named, _ = why(instance, outcome, Budget(Settings(time_limit=0.5)), ["t0"], count=1)
    assert [t.table for t in named.tables] == ["t0"]


MODEL = {
    "name": "m", "workload": {"batch_per_rank": 128},
    "tables": [
        {"name": name, "rows": 1000, "dim": dim, "pooling_factor": 3, "constraints": {
            "pin": {"sharding_type": "table_wise", "mode": "HBM_ONLY", "ranks": [rank]}
        }}
        for name, dim, rank in (("a", 64, 0), ("b", 16, 0), ("c", 32, 1))
    ],
}  # fmt: skip
CLUSTER = {
    "name": "two", "profile": "h100", "machines": 1, "ranks_per_machine": 2, "hbm": "1GiB",
    "ddr": "1GiB", "interconnect": {"intra_machine": "450GB/s"},
}  # fmt: skip


def test_bytes_by_hand() -> None:
    """256 samples: 3 ids of 8 bytes per table in, dim values of 4 bytes out; rank 0 is slowest."""
    info = slowest_of(plan(Model.from_dict(MODEL), Cluster.from_dict(CLUSTER), time_limit=5))
    assert [(r.rank, r.incoming, r.outgoing) for r in info.rows] == [
        (0, 2 * 256 * 3 * 8, 256 * (64 + 16) * 4), (1, 256 * 3 * 8, 256 * 32 * 4)
    ]  # fmt: skip
    assert [name for name, _ in info.rows[0].tables] == ["a", "b"]
    assert sum(time for _, time in info.rows[0].tables) == info.rows[0].time
    out = next(each for each in info.evenness if each.what == "out")
    assert (out.rank, out.most, out.mean) == (0, 256 * 80 * 4, 256 * 56 * 4)
    assert out.above == pytest.approx(80 / 56 - 1)


def test_imbalance_by_hand() -> None:
    """Shares of 3/4 and 1/4, equal shares, and everything on one rank."""
    found = imbalance_of(np.asarray([3, 1]))
    assert (found.variation, found.distance, found.chi) == (0.25, 0.5, 0.25)
    assert found.kl == pytest.approx(1 - (2 - 0.75 * np.log2(3)))
    assert imbalance_of(np.asarray([5, 5, 5])) == Imbalance(0.0, 0.0, 0.0, 0.0)
    one = imbalance_of(np.asarray([0, 7, 0, 0]))
    assert (one.chi, one.kl, one.distance) == (pytest.approx(1), pytest.approx(1), 1.5)


def test_megabytes_are_those_that_torchrec_printed(
    shared_data: Path, production: tuple[Path, Path]
) -> None:
    """Rank 28 of TorchRec's published plan is the slowest, with 840.93 MB in and 15,279.23 out."""
    printed = shared_data / "torchrec-production" / "sharding_stats_example.txt.gz"
    start = start_on(printed, *production, "busiest_rank", exact=True)
    compiled, today = start.compiled, start.placement
    outcome = found(compiled.instance, "today", today, StoppedBy.EXHAUSTED, None, None)
    info = slowest_of(decode(compiled.options, compiled.instance, outcome))
    first = info.rows[0]
    assert first.rank == 28 and first.tables[1][0].endswith("table_1290")
    assert (first.incoming or 0) / 2**20 == pytest.approx(840.93, abs=0.01)
    assert (first.outgoing or 0) / 2**20 == pytest.approx(15_279.23, rel=0.01)


ROWS = 40
ACCESS: TypeAdapter[Access] = TypeAdapter(Access)
powers = st.floats(0.05, 1.95)
masses = st.lists(st.floats(0, 1), min_size=2, max_size=8).filter(lambda m: sum(m) > 1e-3)


def zipf_shares(alpha: float) -> np.ndarray:
    """Each row's share under Zipf's law."""
    weights = np.arange(1, ROWS + 1) ** -alpha
    return weights / weights.sum()


def by_row(access: Access) -> np.ndarray:
    """Share of each row, most popular first."""
    found = popularity(access, ROWS)
    return np.repeat(found.shares, np.rint(found.counts).astype(int))


def curve(alpha: float, first: float) -> dict[str, object]:
    """Miss rates of an ideal cache under Zipf's law, with a share ``first`` of first accesses."""
    hits = np.cumsum(zipf_shares(alpha))
    points = [(k / ROWS, max(1 - (1 - first) * h, first)) for k, h in enumerate(hits, start=1)]
    return {"kind": "miss_rate", "points": points}


@given(alpha=st.floats(0.1, 2.0), power=powers)
def test_zipf_in_other_words_follows_the_exponent(alpha: float, power: float) -> None:
    """Zipf's law to a power is Zipf's law, also as a curve."""
    expected = zipf_shares(alpha * power)
    found = with_skew(ACCESS.validate_python({"kind": "zipf", "alpha": alpha}), ROWS, power)
    assert by_row(found) == pytest.approx(expected, rel=1e-6)
    found = with_skew(ACCESS.validate_python(curve(alpha, 0.2)), ROWS, power)
    ratios = np.arange(ROWS + 1) / ROWS
    hits = hit_ratios(found, ROWS, ratios, CachePolicy("CACHING", False, 0.0)).values
    assert hits[1:] == pytest.approx(0.8 * np.cumsum(expected), abs=1e-9)


@given(counts=masses, mass=masses, power=powers)
def test_bins_and_top_ids_follow_their_rows(
    counts: list[float], mass: list[float], power: float
) -> None:
    """Each row's share becomes p to the power, normalised; the changed statistics are valid."""
    size = min(len(counts), len(mass))
    whole = np.maximum(np.rint(np.array(counts[:size]) * 10), 1)
    share = np.array(mass[:size]) + 1e-3
    pairs = np.stack([whole / whole.sum(), share / share.sum()], axis=1)
    histogram = ACCESS.validate_python({"kind": "histogram", "bins": pairs.tolist()})
    per_row = np.repeat(pairs[:, 1] / whole, whole.astype(int)) ** power
    found = with_skew(histogram, int(whole.sum()), power)
    seen = popularity(found, int(whole.sum()))
    expanded = np.repeat(seen.shares, np.rint(seen.counts).astype(int))
    assert expanded == pytest.approx(np.sort(per_row / per_row.sum())[::-1], rel=1e-6)
    ids = [{"share": s / share.sum() * 0.7, "id": i} for i, s in enumerate(share)]
    top = ACCESS.validate_python({"kind": "top_ids", "ids": ids})
    rest = ROWS - size
    rows = np.append(0.7 * share / share.sum(), np.full(rest, 0.3 / rest)) ** power
    assert by_row(with_skew(top, ROWS, power)) == pytest.approx(
        np.sort(rows / rows.sum())[::-1], rel=1e-6
    )
    for changed in (found, with_skew(top, ROWS, power)):
        assert ACCESS.validate_python(changed.to_dict()) == changed


@given(
    falls=st.lists(st.floats(0, 1), min_size=1, max_size=6).map(lambda m: sorted(m, reverse=True)),
    at_zero=st.booleans(),
    power=powers,
)
def test_a_curve_stays_a_curve(falls: list[float], at_zero: bool, power: float) -> None:
    """Its ends and cache ratios stay, miss rates lie within [0, 1] and never rise."""
    ratios = np.linspace(0, 1, len(falls) + 1)[0 if at_zero else 1 :]
    points = list(zip(ratios.tolist(), falls, strict=False))
    given_curve = ACCESS.validate_python({"kind": "miss_rate", "points": points})
    found = with_skew(given_curve, ROWS, power)
    assert isinstance(found, MissRate)
    assert [x for x, _ in found.points] == [x for x, _ in points]
    assert found.points[-1][1] == pytest.approx(points[-1][1], abs=1e-12)
    assert ACCESS.validate_python(found.to_dict()) == found


def test_a_larger_power_is_more_skew() -> None:
    """Popular rows get more lookups and misses fall; a power of 1 changes nothing."""
    for value in (curve(0.8, 0.1), {"kind": "histogram", "bins": [(0.1, 0.6), (0.9, 0.4)]}):
        access = ACCESS.validate_python(value)
        half = [
            float(hit_ratios(with_skew(access, ROWS, p), ROWS, np.array([0.2]),
                             CachePolicy("CACHING", True, 0.0)).values[0]) for p in (0.8, 1.0, 1.2)
        ]  # fmt: skip
        assert half == sorted(half) and half[0] < half[2]
        assert with_skew(access, ROWS, 1.0) is access and is_skewed(access)


def test_a_measured_busiest_rank_goes_along() -> None:
    """Its excess over the mean is scaled; without statistics there is no skew."""
    hot = {"measured_skew": {"max_over_mean": 1.5, "ranks": 4}}
    for kind in ({"kind": "unknown"}, {"kind": "top_ids", "ids": [{"share": 0.5}]}):
        found = with_skew(ACCESS.validate_python({**kind, **hot}), ROWS, 1.2)
        assert is_skewed(found) and found.measured_skew is not None
        assert found.measured_skew.max_over_mean == pytest.approx(1.6)
    assert not is_skewed(ACCESS.validate_python("unknown"))
    assert not is_skewed(ACCESS.validate_python({"kind": "zipf", "alpha": 0}))
