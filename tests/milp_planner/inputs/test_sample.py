"""Access statistics from a sample of keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuda_routing import key_files
from milp_planner.errors import BadInput
from milp_planner.features.simulate.streams import drawn, scattered
from milp_planner.inputs import Model
from milp_planner.inputs.access import Histogram, Unknown, Zipf
from milp_planner.inputs.files import load_model
from milp_planner.inputs.table import Table
from milp_planner.pricing.hit_ratios import CachePolicy, hit_ratios
from milp_planner.pricing.popularity import popularity, zipf
from tests.milp_planner.inputs import builders

RATIOS = np.array([0.02, 0.1, 0.3, 0.6])


def read(folder: Path, keys: Any, rows: int = 100, **fields: Any) -> Table:
    """The table of a model file whose keys lie beside it."""
    if keys is not None:
        np.save(folder / "keys.npy", np.asarray(keys, dtype=np.int64))
    text = ["name: m", "workload: {batch_per_rank: 8}", "tables:", f"  - {{name: t, rows: {rows},"]
    more = "".join(f" {name}: {value}," for name, value in fields.items())
    text[-1] += f" dim: 8,{more} access: {{kind: sample, keys: keys.npy, unique_fraction: 0.5}}}}"
    (folder / "model.yaml").write_text("\n".join(text))
    return load_model(folder / "model.yaml").tables[0]


@pytest.mark.parametrize(("a_row", "most"), [(10, 0.03), (1, 0.12)])
@pytest.mark.parametrize("alpha", [0.6, 0.9, 1.2])
@pytest.mark.parametrize("rows", [10_000, 200_000])
def test_hit_ratios_are_those_of_the_popularity_drawn_from(
    tmp_path: Path, rows: int, alpha: float, a_row: int, most: float
) -> None:
    """For both modes and scores; a sample sees too little of the tail, so it never
    overestimates."""
    generator = np.random.default_rng(3)
    places = drawn(zipf(rows, alpha)).draw(a_row * rows, generator)
    access = read(tmp_path, scattered(places, rows, 5), rows).access
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
    known = popularity(read(tmp_path, [7] * 20 + list(range(10, 16))).access, 100)
    assert known.counts.tolist() == pytest.approx([1, 6, 93])
    assert (known.counts * known.shares)[-1] == pytest.approx(6 / 26)
    assert known.rows == pytest.approx(100)


def test_nothing_seen_twice_says_nothing(tmp_path: Path) -> None:
    """If no key occurs twice, all rows are equally popular; measured figures stay."""
    access = read(tmp_path, range(10, 20)).access
    assert access == Histogram(kind="histogram", bins=((1.0, 1.0),), unique_fraction=0.5)


def test_every_row_seen(tmp_path: Path) -> None:
    """If every row was seen, no lookups are left for unseen ones."""
    known = popularity(read(tmp_path, [0] * 6 + [1] * 3 + [2] * 3, rows=3).access, 3)
    assert known.counts.tolist() == pytest.approx([1, 2])
    assert (known.counts * known.shares).tolist() == pytest.approx([0.5, 0.5], abs=0.1)


def test_keys_of_a_hashed_table_may_be_any(tmp_path: Path) -> None:
    """Only the number of distinct keys counts."""
    keys = [-5, 2**62, 2**62]
    assert read(tmp_path, keys, kind="dynamicemb", rows=2).access.kind == "histogram"
    with pytest.raises(BadInput, match="more than 1 different keys; allowed: one per row"):
        read(tmp_path, keys, kind="dynamicemb", rows=1)


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        (None, r"keys\.npy is not a file of keys"),
        ([], r"keys\.npy: has no keys; allowed: at least one"),
        ([3, 100], r"found the key 100; allowed: rows 0 to 99"),
        ([3, -1], r"found the key -1; allowed: rows 0 to 99"),
    ],
)
def test_wrong_keys_are_told_in_one_sentence(tmp_path: Path, keys: Any, sentence: str) -> None:
    """It has file and line of the field, what was found, and what is allowed."""
    with pytest.raises(BadInput, match=r"model\.yaml:4: tables\[0\]\.access\.keys: .*" + sentence):
        read(tmp_path, keys)


def test_long_files_are_counted_piece_by_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The classes do not depend on the size of the pieces."""
    keys = np.random.default_rng(0).zipf(1.5, 5000) % 1000
    whole = read(tmp_path, keys, rows=1000)
    monkeypatch.setattr(key_files.KeyFiles.__init__, "__defaults__", (7,))
    assert read(tmp_path, keys, rows=1000) == whole


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
