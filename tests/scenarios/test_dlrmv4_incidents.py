"""The shipped suites ``dlrmv4-incidents`` and ``dlrmv4-cap``: the plans that ran out of memory are
refused, and one plan fits under the run's cap."""

import pytest

from benchmarks.dlrmv4.study import BURST_ROWS
from milp_planner import plan
from milp_planner.features.plan.doubts import doubts
from milp_planner.features.plan.shortage import shortage_of
from milp_planner.inputs import Cluster, Model
from milp_planner.integrations.replay.plan_for import plan_for
from scenarios.batch.assertions import judge
from scenarios.batch.execute import execute
from scenarios.batch.scenario import expand
from scenarios.batch.suite import find_suite


@pytest.mark.parametrize(
    "name", ["dlrmv4-incidents", pytest.param("dlrmv4-cap", marks=pytest.mark.slow)]
)
def test_every_assertion_holds(name: str) -> None:
    """Each assertion matches some scenario of the suite, and all hold."""
    suite, folder = find_suite(name)
    scenarios = [(s.key(), s) for s in expand(suite, folder)]
    records = {key: execute(scenario, key) for key, scenario in scenarios}
    judged = [judge(assertion, scenarios, records) for assertion in suite.assertions]
    assert all(each.scenarios for each in judged)
    assert all(each.holds for each in judged), [each.broken for each in judged]


def test_the_bursts_are_what_the_suite_says() -> None:
    """Rows of the three tables on the hot rank, item_id at its tail, the others at the ratio: the
    published 42.7 million of window 235, and 48.9 million."""
    suite, folder = find_suite("dlrmv4-incidents")
    model, cluster = next(iter(expand(suite, folder))).inputs()
    ids = model.workload.batch_per_rank * 2627
    tail = 1 + 6 * (2627 / (ids * 1.0)) ** 0.5  # the default: six standard deviations
    assert cluster.num_ranks == 32
    for ratio, rows in zip(suite.sweep.peak_skew, (BURST_ROWS, 48.9e6), strict=True):
        assert ids * (tail + 2 * ratio) == pytest.approx(rows, rel=0.002)


def _inputs(**axes: object) -> tuple[Model, Cluster]:
    """Inputs of the suite's row-wise scenario at 288 GiB, 2627 ids and the published burst, with
    these axes."""
    suite, folder = find_suite("dlrmv4-incidents")
    wanted = {
        "hbm": 288 * 2**30, "sharding": "row_wise", "sequence_length": 2627, "batch": 1024,
        "peak_skew": 7.34, **axes,
    }  # fmt: skip
    [scenario] = [s for s in expand(suite, folder) if wanted.items() <= dict(s.axes).items()]
    return scenario.inputs()


@pytest.mark.parametrize(
    ("axes", "columns", "low_memory"),
    [
        ({"codec": "stock"}, True, True),
        ({"codec": "stock", "batch": 2048}, False, False),
        ({"codec": "low_memory", "peak_skew": 8.5}, True, None),
    ],
)
def test_the_refusal_names_rank_tables_and_remedy(
    axes: dict[str, object], columns: bool, low_memory: bool | None
) -> None:
    """Every rank may be the hot one, and the two tables come first; cutting columns as the trainer
    does helps but for twice the batch, the low-memory codec where it did. ``check`` says the same
    of that rank, and nothing else."""
    inputs = _inputs(**axes)
    found = shortage_of(plan(*inputs, time_limit=20).outcome.detail)
    assert found.forced.ranks == tuple(range(31))  # the last rank has a few rows less
    assert {each.name for each in found.forced.tables[:2]} == {"artist_id", "album_id"}
    tried = {each.kind: each for each in found.remedies}
    assert tried["sharding"].fits == columns
    assert {"artist_id", "album_id"} <= {*tried["sharding"].tables}
    assert ("codec" in tried) == (low_memory is not None)
    assert low_memory is None or tried["codec"].fits == low_memory
    [warning] = doubts(*inputs)
    assert warning.message == f"no plan exists: {found.forced}"


def test_for_the_trainer_remedies_are_cut_as_it_cuts() -> None:
    """Where a model also allows narrower shards, one table in those would do; ``--for`` tries the
    trainer's, which need both tables."""
    model, cluster = _inputs(codec="stock")
    data = model.to_dict()
    for table in data["tables"]:
        table["constraints"]["column_widths"] = [256, 128, 64, 32, 16]
    wide = Model.from_dict(data)
    plans = plan(wide, cluster, time_limit=20), plan_for("dlrmv4", wide, cluster, time_limit=60)
    found = [shortage_of(each.outcome.detail) for each in plans]
    tried = [{r.kind: r for r in each.remedies}["sharding"] for each in found if each]
    assert [len(each.tables) for each in tried] == [1, 2]
    assert all(each.fits for each in tried)


@pytest.mark.parametrize("sharding", ["row_wise", "column_wise"])
def test_the_refusal_at_100_gib_says_how_much_is_short(sharding: str) -> None:
    """The answer names the least memory with which a plan exists: for the buffers of the burst or,
    column-wise, of two tables without a burst."""
    inputs = _inputs(hbm=100 * 2**30, sharding=sharding, codec="low_memory")
    found = shortage_of(plan(*inputs, time_limit=20).outcome.detail)
    [hbm] = [each for each in found.tiers if each.resource == "hbm"]
    assert hbm.proved
    assert hbm.short_by == hbm.needed - hbm.largest
    assert hbm.needed > {"row_wise": 200, "column_wise": 60}[sharding] * 2**30


def test_check_does_not_doubt_what_fits() -> None:
    """Column-wise, and row-wise at window 235 with the low-memory codec, there is no warning."""
    for sharding in ("column_wise", "row_wise"):
        assert doubts(*_inputs(codec="low_memory", sharding=sharding)) == ()
