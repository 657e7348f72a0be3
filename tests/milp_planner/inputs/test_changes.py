"""Changes of inputs by path."""

from __future__ import annotations

from typing import Any

import pytest

from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.changes import apply, changed
from tests.milp_planner.pricing.build import cluster, model

MODEL = model({"rows": 1000, "dim": 8}, {"rows": 33, "dim": 8, "name": "user.x"})
PLACE = cluster(2, 2, hbm="24GiB", ddr="100GiB")


def of(path: str, value: Any) -> tuple[Model, Cluster]:
    """The inputs after one change."""
    return changed(MODEL, PLACE, {path: value})


@pytest.mark.parametrize("path", ["hbm", "cluster.hbm", "cluster.machines.ranks.hbm",
                                  "machines.*.ranks.*.hbm"])  # fmt: skip
@pytest.mark.parametrize(
    ("value", "gib"),
    [("96GiB", 96), (2**30, 1), ("+8GiB", 32), ("-8GiB", 16), ("-1TB", 0), ("×1.5", 36),
     ("*1/2", 12), ("+50%", 36), ("-25%", 18)],
)  # fmt: skip
def test_memory_is_set_added_to_and_scaled(path: str, value: Any, gib: int) -> None:
    """For all ranks, by any spelling of the path; the model stays the same object."""
    kept, place = of(path, value)
    assert {rank.hbm_bytes for rank in place.ranks} == {gib * 2**30}
    assert kept is MODEL and place.name == PLACE.name


def test_one_machine_and_one_table() -> None:
    """By number and by name, which may contain dots; what is not named stays."""
    _, place = of("cluster.machines.1.ddr", "1GiB")
    assert [m.ddr_bytes for m in place.machines] == [PLACE.machines[0].ddr_bytes, 2**30]
    grown, place = of("tables.user.x.rows", "×1.2")
    assert [t.rows for t in grown.tables] == [1000, 40] and place is PLACE  # 39.6, rounded up
    some = of("tables.user*.constraints.modes", ["HOST_ONLY"])[0]
    assert [t.constraints.modes for t in some.tables] == [None, ("HOST_ONLY",)]


def test_the_first_change_of_a_field_counts() -> None:
    """So a pattern can stand for all other tables."""
    grown, _ = changed(MODEL, PLACE, {"tables.user.x.rows": "+0%", "tables.*.rows": "+100%"})
    assert [t.rows for t in grown.tables] == [2000, 33]


def test_a_number_repeats_the_first_machine_or_rank() -> None:
    """Before single ones change, in whatever order they are given."""
    _, place = changed(
        MODEL, PLACE, {"hbm": "1GiB", "cluster.machines": 3, "ranks_per_machine": "4"}
    )
    assert [len(m.ranks) for m in place.machines] == [4, 4, 4]
    assert {rank.hbm_bytes for rank in place.ranks} == {2**30}
    assert len(changed(MODEL, PLACE, {"machines": 1})[1].machines) == 1


def test_fields_go_by_their_own_name() -> None:
    """Those of the workload, of reservations, of a division that was not given, and of links."""
    grown, place = changed(MODEL, PLACE, {
        "dedup": "true", "workload.batch_per_rank": "+50%", "hbm_percent": 10, "strategy": "auto",
        "intra_machine": "×2",
    })  # fmt: skip
    assert grown.workload.dedup
    assert grown.workload.batch_per_rank == 3 * MODEL.workload.batch_per_rank // 2
    assert place.reservations.hbm_percent == 10 and place.two_d is not None
    assert place.interconnect is not None and PLACE.interconnect is not None
    assert place.interconnect.intra_machine == 2 * PLACE.interconnect.intra_machine


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("hbn", 1, "change of 'hbn': .*did you mean hbm"),
        ("tables.user.y.rows", 1, "no table is called 'user'"),
        ("workload.dedupe", 1, "dedupe: unknown field; did you mean dedup"),
        ("tables.*.rows", "many", "tables"),
        ("hbm_percent", "+10GB", "amounts are added to whole numbers"),
        ("cluster.machines", 0, "machines"),
    ],
)
def test_what_cannot_be_changed_is_said(path: str, value: Any, words: str) -> None:
    """In one sentence with the nearest name."""
    with pytest.raises(BadInput, match=words):
        of(path, value)


def test_a_curve_is_scaled_up_to_one() -> None:
    """The second number of every point, and a rate in its own unit."""
    data = {"profile": {"caching": {"points": [[0, 0.4], [1, 0.8]]}, "hbm": "100B/s"}}
    apply(data, {"profile.caching": "×2", "profile.hbm": "×1.5"})
    assert data["profile"] == {"caching": {"points": [[0, 0.8], [1, 1.0]]}, "hbm": "150B/s"}
