"""The DLRMv4 study: the facts against the hypotheses by hand, and the ledger of the hot rank."""

import pytest

from benchmarks.dlrmv4.study import (
    BURST_ROWS,
    CAPACITY,
    CODECS,
    ENCODING,
    GIB,
    LENGTHS,
    MOVED,
    burst,
    evidence,
    facts,
    hot,
    kept,
    largest_batch,
    outside,
    rows_that_fill,
    run,
    tried,
    verdict,
)
from milp_planner import plan
from milp_planner.inputs import Model
from scenarios.batch.vary import vary_model

IDS = 1024 * 2627
SMALL = 8 * 1024
ROW = 512 * 4


def tail(ids: float, samples: float = 1024) -> float:
    """The worst batch for this mean number of ids: six standard deviations more."""
    return ids * (1 + 6 / (samples * ids / IDS) ** 0.5)


def test_the_model_states_what_the_facts_leave() -> None:
    """The chosen hypothesis has the ledger's two copies, and its largest outside in whole MiB is
    the model's."""
    chosen = tried()[evidence().chosen.hypothesis]
    assert (chosen.copies, chosen.encoding) == (2, ENCODING)
    assert outside() == evidence().chosen.outside.high // 2**20 * 2**20


def test_one_hypothesis_explains_everything() -> None:
    """Two copies with all tables cut; one copy misses the clamp, two tables cut the 58%, and the
    unpatched codec as much or more."""
    assert verdict(2, "all_tables").refuted_by == ()
    for copies, layout, missed in ((1, "all_tables", "clamp's 81.5"), (2, "two_tables", "58%")):
        [name] = verdict(copies, layout).refuted_by
        assert missed in name
    others = [v for v in evidence().verdicts if tried()[v.hypothesis].encoding != ENCODING]
    assert all(v.refuted_by for v in others)


def test_a_death_is_one_fact() -> None:
    """Each of the two deaths is counted once; what was in use before the second is not put at the
    first one's burst."""
    deaths = [fact for fact in facts().facts if fact.outcome == "out of memory"]
    assert [fact.codec for fact in deaths] == ["stock", "low_memory"]
    [steady] = [fact for fact in facts().facts if "208 to 238" in fact.name]
    assert steady.rows is not None and steady.rows[0] < BURST_ROWS


def test_column_wise_by_hand() -> None:
    """The rank with a shard of artist_id: 32 ranks' ids times 128 floats, twice and encoded, a
    quarter of two tables, ids four times (two batches, kept until their gradients are back), bags,
    and what it receives."""
    looked_up = 32 * IDS * 128 * 4
    assert looked_up / GIB == pytest.approx(41.05, abs=0.01)
    small = 32 * 1024 * 128 * 4
    shards = (1_293_395 + 40_000_000) * (128 * 4 + 4)
    ids = 4 * 8 * 32 * (IDS + 1024) + 4 * 16 * 32 * 1024 * (2 + 1)
    received = (3 * IDS + SMALL) * 512 * 2
    need = 2.5 * (looked_up + small) + shards + ids + received
    assert hot("all_tables").need == pytest.approx(need, rel=0.002)


def test_rows_by_hand() -> None:
    """Row-wise, the measured ratios 1, 1.3 and 2.8 with their tails."""
    row = sum(tail(skew * IDS) for skew in (1.0, 1.3, 2.8)) + 8 * tail(1024, 1024 * IDS / 1024)
    assert hot().rows == pytest.approx(row, rel=1e-3)


def test_entries_of_the_burst_by_hand() -> None:
    """42.7 million rows of 512 floats: returned, permuted, clamped, and cast to two bytes."""
    output = BURST_ROWS * ROW
    for codec in CODECS:
        found = hot(codec=codec, rows=BURST_ROWS)
        sent = found.moments["forward_send"]
        assert found.rows == pytest.approx(BURST_ROWS, rel=1e-6)
        assert sum(sent.values()) == found.need
        assert sent["output"] == sent["send_buffer"] == pytest.approx(output, rel=1e-6)
        assert sent["encoding"] == pytest.approx(ENCODING[codec] * output, rel=1e-6)
        assert sent["weights"] / GIB == pytest.approx(558.95 / 32, rel=0.001)
        assert sent["inputs"] == pytest.approx(2 * 2 * 8 * BURST_ROWS, rel=1e-3)
        one = hot(codec=codec, rows=BURST_ROWS, copies=1)
        assert found.need - one.need == pytest.approx(output, rel=1e-6)
    received = hot(rows=BURST_ROWS).moments["forward_send"]["receive_buffer"]
    assert received == (3 * IDS + SMALL) * 512 * 2


def test_rows_and_their_ratio_agree() -> None:
    """The burst given by its rows needs what it needs given as a load over the mean."""
    assert hot(peak=burst()).need == pytest.approx(hot(rows=BURST_ROWS).need, rel=1e-4)


def test_what_the_page_says_of_the_failures() -> None:
    """The mean skew explains neither failure. The burst kills the stock codec and not the
    low-memory one, for which it must grow."""
    for codec in CODECS:
        assert hot(codec=codec).need + outside() < kept()
    assert hot(codec="stock", rows=BURST_ROWS).need + outside() > CAPACITY
    assert hot(rows=BURST_ROWS).need + outside() < kept()
    assert BURST_ROWS < rows_that_fill(kept()) < rows_that_fill(CAPACITY)
    assert hot("two_tables").need + outside() < kept()


def test_rows_are_found_for_a_total() -> None:
    """The rows found for a total need it."""
    for total in (kept(), CAPACITY):
        need = hot(rows=rows_that_fill(total)).need + outside()
        assert need == pytest.approx(total, rel=1e-4)


def test_deduplication_excludes_the_burst() -> None:
    """32 ranks as busy as the hot one return fewer distinct rows than the burst has."""
    assert 32 * hot(dedup=True).rows < BURST_ROWS


def test_conclusions_do_not_hang_on_the_length() -> None:
    """With every published length column-wise fits, and the burst with the stock codec does not."""
    assert hot(length=next(iter(LENGTHS))) == hot(), "the first is the model's own"
    for length in LENGTHS:
        assert hot("all_tables", length=length).need + outside() < kept()
        stock = hot(codec="stock", rows=BURST_ROWS, length=length)
        assert stock.need + outside() > CAPACITY


def _fits(peak: float, batch: int = 1024, **axes: object) -> bool:
    """Whether the planner finds a plan or proves that there is none, all row-wise."""
    model, cluster = run()
    axes = {"codec": "low_memory", "batch": batch, "peak_skew": peak, **axes}
    varied = vary_model(model, axes, MOVED, ranks=32).to_dict()
    for table in varied["tables"]:
        table["constraints"]["sharding_types"] = ["row_wise"]
    status = plan(Model.from_dict(varied), cluster, time_limit=20).outcome.status.value
    assert status in ("optimal", "feasible", "infeasible")
    return status != "infeasible"


@pytest.mark.slow
def test_the_planner_draws_the_lines_where_the_study_does() -> None:
    """All row-wise with the low-memory codec, the burst fits up to the study's samples a rank, with
    the stock codec not at all, and with deduplication even so."""
    peak = burst()
    assert _fits(peak, largest_batch(peak))
    assert not _fits(peak, largest_batch(peak) + 1)
    assert not _fits(peak, codec="stock")
    assert _fits(peak, codec="stock", dedup=True)
