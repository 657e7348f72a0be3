"""Access statistics and their consistency.

Measured frequencies: what a curve of ranks and shares means for a table; shipped curves.

Access statistics from a sample of keys.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.simulator.streams import drawn, scattered
from cuda_routing import key_files
from milp_planner.errors import BadInput
from milp_planner.inputs import Model
from milp_planner.inputs.access import (
    Histogram,
    HotId,
    MissRate,
    TopIds,
    Unknown,
    WorstBatch,
    Zipf,
    bins_of_curve,
    curve_names,
    read_curve,
)
from milp_planner.inputs.files import load_model
from milp_planner.inputs.table import Table
from milp_planner.pricing.hit_ratios import CachePolicy, hit_ratios
from milp_planner.pricing.popularity import distinct_rows, hot_share, popularity, zipf
from tests.corpus import mistakes
from tests.milp_planner.inputs import builders


def read(access: Any) -> Any:
    """The access statistics of a one-table model."""
    return Model.from_dict(builders.model(builders.table(access=access))).tables[0].access


def test_word_unknown() -> None:
    """The bare word unknown is the class Unknown, and the default."""
    assert read("unknown") == Unknown() == read({"kind": "unknown"})
    assert Model.from_dict(builders.model(builders.table())).tables[0].access == Unknown()


def test_every_kind() -> None:
    """Each kind is read into its class with its values."""
    pairs = ((0.1, 0.4), (0.9, 0.6)), ((0.1, 0.4), (0.5, 0.1))
    hot = HotId(share=0.2), HotId(share=0.1, id=0)
    for access in (
        Zipf(kind="zipf", alpha=1.0, hot_ids=(4, 0)),
        Histogram(kind="histogram", bins=pairs[0]),
        TopIds(kind="top_ids", ids=hot),
        MissRate(kind="miss_rate", points=pairs[1]),
    ):
        assert read(access.to_dict()) == access
    assert read({"kind": "zipf", "alpha": 1, "hot_ids": [4, 0]}).alpha == 1.0


def test_measured_figures_go_with_any_kind() -> None:
    """Measured figures are kept beside any kind of statistics."""
    skew = {"max_over_mean": 2.8, "ranks": 2}
    access = read({"kind": "unknown", "unique_fraction": 0.02, "measured_skew": skew})
    assert access.unique_fraction == 0.02
    assert access.measured_skew.max_over_mean == 2.8


HERE = Path()
ALL_KEYS, SMALL_KEYS = 882_774_559, 121_198
"""Keys of the logs, and of the 18 features with at most 39,060 values."""


def read_file(folder: Path, access: str, fields: str = "rows: 100") -> Table:
    """The table of a model file, whose statistics lie beside it."""
    (folder / "model.yaml").write_text(
        "name: m\nworkload: {batch_per_rank: 8}\ntables:\n"
        f"  - {{name: t, {fields}, dim: 8, access: {{{access}, unique_fraction: 0.5}}}}\n"
    )
    return load_model(folder / "model.yaml").tables[0]


def read_frequency(folder: Path, text: str) -> Table:
    """From a curve."""
    (folder / "curve.csv").write_text(text)
    skew = "peak_skew: {max_over_mean: 3, ranks: 8, deduplication: after}"
    return read_file(folder, f"kind: frequency, curve: curve.csv, {skew}")


def test_classes_by_hand(tmp_path: Path) -> None:
    """Half of the lookups for one row, 0.3 for the next four, the rest for the other 95."""
    access = read_frequency(tmp_path, "rank,share\n1,0.5\n5,0.8\n").access
    assert isinstance(access, Histogram) and access.unique_fraction == 0.5
    assert access.peak_skew == WorstBatch(max_over_mean=3, ranks=8, deduplication="after")
    assert np.allclose(access.bins, [(0.01, 0.5), (0.04, 0.3), (0.95, 0.2)])


def test_a_smaller_table_keeps_the_most_popular() -> None:
    """Three rows with 0.5 and twice 0.075 of the lookups share all lookups."""
    found = bins_of_curve(((1, 0.5), (5, 0.8)), 3)
    assert np.allclose(found, [(1 / 3, 0.5 / 0.65), (2 / 3, 0.15 / 0.65)])


def test_the_rest_is_no_hotter_than_what_was_counted() -> None:
    """The one row left over for half of the lookups gets as many as the last counted row."""
    found = bins_of_curve(((2, 0.4), (4, 0.5)), 5)
    assert np.allclose(found, [(0.4, 0.4 / 0.55), (0.4, 0.1 / 0.55), (0.2, 0.05 / 0.55)])


@given(rows=st.integers(1, 2**40), name=st.sampled_from(curve_names()))
def test_any_table_size_has_falling_popularity(rows: int, name: str) -> None:
    """Shares sum to one, counts to the rows, and no class is hotter than the one before it."""
    bins = np.array(bins_of_curve(read_curve(name, HERE), rows))
    assert bins.sum(axis=0) == pytest.approx([1, 1])
    each = bins[:, 1] / bins[:, 0]
    assert (np.diff(each) <= each[:-1] * 2e-3).all()


def test_the_shipped_curve_is_the_measured_one() -> None:
    """The hottest 0.01, 0.1 and 1% of keys get 0.933, 0.968 and 0.983 of lookups (spread66M)."""
    ranks, shares = np.array(read_curve("criteo", HERE)).T
    at = np.array([ALL_KEYS // 10_000, ALL_KEYS // 1000])
    assert np.interp(at, ranks, shares) == pytest.approx([0.933, 0.968], abs=0.002)
    assert shares[0] == pytest.approx(0.0332, abs=1e-4)
    assert shares[-1] == pytest.approx(1 - 28_614_745 / 1_708_195_441, abs=1e-5)


def test_the_large_features_have_at_least_so_much() -> None:
    """Their share never exceeds what all features have, less the lookups of the other 18 of 26 (six
    digits)."""
    ranks, shares = np.array(read_curve("criteo", HERE)).T
    large, least = np.array(read_curve("criteo-large", HERE)).T
    bound = (np.interp(8 * large, ranks, shares) - 18 / 26) / (8 / 26)
    assert (least <= bound + 2e-5).all()
    keys = (ALL_KEYS - SMALL_KEYS) / 8
    assert np.interp([keys / 1000, keys / 100], large, least) == pytest.approx(
        [0.90, 0.95], abs=0.01
    )


def test_everything_follows_the_curve() -> None:
    """Hit ratio, distinct rows and the hot rank are those of its classes, summed by hand."""
    frequency = {"kind": "frequency", "curve": "criteo"}
    table = Table.from_dict(builders.table(rows=40_000_000, access=frequency))
    known = popularity(table.access, table.rows)
    p, n = known.shares, known.counts
    assert p[0] == pytest.approx(0.03317, abs=1e-4) and n[0] == pytest.approx(1)
    assert hot_share(known, 64) >= p[0] + (1 - p[0]) / 64
    drawn = float((n * (1 - (1 - p) ** 65_536)).sum())
    assert distinct_rows(table.access, table.rows, 8192, 8) == pytest.approx(drawn, rel=1e-6)
    [hit] = hit_ratios(
        table.access, table.rows, np.array([0.1]), CachePolicy("CACHING", True, 65_536)
    ).values
    best = float(np.interp(4_000_000, np.cumsum(n), np.cumsum(n * p)))
    assert best - 0.005 < hit <= best + 1e-9


@pytest.mark.parametrize(("text", "wrong"), mistakes(__file__, "a wrong curve is one sentence"))
def test_a_wrong_curve_is_one_sentence(tmp_path: Path, text: str, wrong: str) -> None:
    """It has file, line, and what is allowed."""
    with pytest.raises(BadInput, match=wrong):
        read_frequency(tmp_path, text)


RATIOS = np.array([0.02, 0.1, 0.3, 0.6])


def read_sample(folder: Path, keys: Any, rows: int = 100, **fields: Any) -> Table:
    """From keys."""
    if keys is not None:
        np.save(folder / "keys.npy", np.asarray(keys, dtype=np.int64))
    more = ", ".join(f"{name}: {value}" for name, value in {"rows": rows, **fields}.items())
    return read_file(folder, "kind: sample, keys: keys.npy", more)


@pytest.mark.parametrize(("a_row", "most"), [(10, 0.03), (1, 0.12)])
@pytest.mark.parametrize("alpha", [0.6, 0.9, 1.2])
@pytest.mark.parametrize("rows", [10_000, 50_000])
def test_hit_ratios_are_those_of_the_popularity_drawn_from(
    tmp_path: Path, rows: int, alpha: float, a_row: int, most: float
) -> None:
    """For both modes and scores; a sample sees too little of the tail, and never overestimates."""
    generator = np.random.default_rng(3)
    places = drawn(zipf(rows, alpha)).draw(a_row * rows, generator)
    access = read_sample(tmp_path, scattered(places, rows, 5), rows).access
    assert isinstance(access, Histogram)
    assert len(access.bins) <= 64
    for mode, frequency in (("CACHING", False), ("CACHING", True), ("HYBRID", False)):
        policy = CachePolicy("HYBRID" if mode == "HYBRID" else "CACHING", frequency, rows / 50)
        found = hit_ratios(access, rows, RATIOS, policy).values
        true = hit_ratios(Zipf(kind="zipf", alpha=alpha), rows, RATIOS, policy).values
        assert np.abs(found - true).max() < most
        assert (found - true).max() < 0.02


def test_rows_not_seen_share_what_was_seen_once(tmp_path: Path) -> None:
    """Good-Turing: 6 of 26 keys were seen once, so unseen rows get 6/26 of the lookups."""
    known = popularity(read_sample(tmp_path, [7] * 20 + list(range(10, 16))).access, 100)
    assert known.counts.tolist() == pytest.approx([1, 6, 93])
    assert (known.counts * known.shares)[-1] == pytest.approx(6 / 26)
    assert known.rows == pytest.approx(100)


def test_nothing_seen_twice_says_nothing(tmp_path: Path) -> None:
    """If no key occurs twice, all rows are equally popular; measured figures stay."""
    access = read_sample(tmp_path, range(10, 20)).access
    assert access == Histogram(kind="histogram", bins=((1.0, 1.0),), unique_fraction=0.5)


def test_every_row_seen(tmp_path: Path) -> None:
    """If every row was seen, no lookups are left for unseen ones."""
    known = popularity(read_sample(tmp_path, [0] * 6 + [1] * 3 + [2] * 3, rows=3).access, 3)
    assert known.counts.tolist() == pytest.approx([1, 2])
    assert (known.counts * known.shares).tolist() == pytest.approx([0.5, 0.5], abs=0.1)


def test_keys_of_a_hashed_table_may_be_any(tmp_path: Path) -> None:
    """Only the number of distinct keys counts."""
    keys = [-5, 2**62, 2**62]
    assert read_sample(tmp_path, keys, kind="dynamicemb", rows=2).access.kind == "histogram"
    with pytest.raises(BadInput, match="more than 1 different keys; allowed: one per row"):
        read_sample(tmp_path, keys, kind="dynamicemb", rows=1)


@pytest.mark.parametrize(
    ("keys", "sentence"), mistakes(__file__, "wrong keys are told in one sentence")
)
def test_wrong_keys_are_told_in_one_sentence(tmp_path: Path, keys: Any, sentence: str) -> None:
    """It has file and line of the field, what was found, and what is allowed."""
    with pytest.raises(BadInput, match=r"model\.yaml:4: tables\[0\]\.access\.keys: .*" + sentence):
        read_sample(tmp_path, keys)


def test_long_files_are_counted_piece_by_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The classes do not depend on the size of the pieces."""
    keys = np.random.default_rng(0).zipf(1.5, 5000) % 1000
    whole = read_sample(tmp_path, keys, rows=1000)
    monkeypatch.setattr(key_files.KeyFiles.__init__, "__defaults__", (7,))
    assert read_sample(tmp_path, keys, rows=1000) == whole


def test_defaults_and_values_in_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sample may serve all tables; without a model file its path is relative to the working
    directory."""
    monkeypatch.chdir(tmp_path)
    np.save("keys.npy", np.array([1, 1, 2, 2]))
    table = builders.table()
    sample = {"kind": "sample", "keys": "keys.npy"}
    model = Model.from_dict({**builders.model(table), "defaults": {"access": sample}})
    assert model.tables[0].access.kind == "histogram"
    assert Model.from_dict(model.to_dict()) == model
    untaken = {**builders.model({**table, "access": "unknown"}), "defaults": {"access": sample}}
    assert Model.from_dict(untaken).tables[0].access == Unknown()
