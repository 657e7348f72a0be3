"""The division into sharding groups that is chosen with the plan, and the claims about the
others."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from formulations import Settings, checker
from milp_planner import Plan, plan, read_plan, verify
from milp_planner.errors import BadInput
from milp_planner.features.plan.divide import note_of
from milp_planner.features.plan.divisions import divisions_of
from milp_planner.features.report.page import render, report_of
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.sharding_group import group_of
from milp_planner.plans.compile import compile_for
from milp_planner.plans.divisions import groups_of
from tests.formulations.brute_force import brute_force
from tests.milp_planner.pricing.build import cluster, model

QUICK = Settings(time_limit=30, workers=1)
LIMITS = {"sharding_types": ["table_wise", "row_wise", "data_parallel"], "modes": ["HBM_ONLY"]}


def tables(**more: Any) -> Model:
    """Three tables, of 65 kB to 130 kB."""
    rows = ({"rows": n, "dim": 32, "constraints": LIMITS, **more} for n in (1000, 700, 500))
    return model(*rows, batch_per_rank=64)


def place(sync: Any = 1, hbm: str = "80GiB", **two_d: Any) -> Cluster:
    """2 machines of 2 ranks with a slow network between them."""
    links = {"intra_machine": "400GB/s", "inter_machine": "2GB/s"}
    return cluster(2, 2, hbm=hbm, interconnect=links, two_d={"sync_interval": sync, **two_d})


def every_division(given: Model, whole: Cluster) -> dict[tuple[int, str, str], int]:
    """By brute force, the optimum of each size, layout and strategy that has one."""
    found = {}
    strategies = ("default", "fully_sharded")
    for size, layout, how in product((1, 2, 4), ("strided", "contiguous"), strategies):
        two_d = {"sharding_group_size": size, "layout": layout, "strategy": how}
        asked = {**whole.to_dict()["two_d"], **two_d}
        group = group_of(Cluster.from_dict({**whole.to_dict(), "two_d": asked}))
        truth = brute_force(compile_for(given, group, "step_time").instance)
        if truth.objective is not None:
            found[size, layout, how] = truth.objective
    return found


@pytest.mark.parametrize(
    ("sync", "hbm", "ranks"),
    [(1, "80GiB", 4), (100, "80GiB", 1), (100, "300KiB", 2), (100, "200KiB", None)],
)
def test_brute_force_over_all_divisions(sync: int, hbm: str, ranks: int | None) -> None:
    """One group if averaging is expensive, a group per rank if it is rare, a group per machine if
    that does not fit, or no plan: each is proved the best of all divisions."""
    given, whole = tables(), place(sync, hbm)
    best = min(every_division(given, whole).values(), default=None)
    for formulation in ("cpsat", "auto"):
        found = plan(given, whole, formulation=formulation, settings=QUICK)
        assert (found.outcome.before_goals or found.outcome.objective) == best
        assert found.status == ("infeasible" if best is None else "optimal")
        assert ranks in (None, found.cluster.num_ranks)
        told = verify(found)
        assert told.ok
        assert [c.text for c in told.claims if c.name == "divisions"][-1].endswith(
            "none holds a better plan"
        )


def test_every_division_is_there_once() -> None:
    """One group, then all sizes and layouts; on one machine layouts do not differ."""
    sizes = [(g.num_ranks, g.two_d.layout, g.two_d.strategy) for g in groups_of(place()) if g.two_d]
    assert [s for s, _, _ in sizes] == [4, 2, 2, 2, 2, 1, 1]
    assert len({*sizes}) == 7
    alone = cluster(1, 4, two_d={"strategy": "default"})
    assert [g.num_ranks for g in groups_of(alone)] == [4, 2, 1]
    with pytest.raises(BadInput, match="which do not divide"):
        [*groups_of(place(sharding_group_size=3))]


@pytest.fixture(scope="module")
def chosen() -> Plan:
    """Two contiguous groups, the best of seven divisions; no rank has room for all rows."""
    return plan(tables(), place(100, "300KiB"), formulation="cpsat", settings=QUICK)


def test_the_table(chosen: Plan) -> None:
    """It has one row per division with the bytes of all groups, one of them chosen; page and
    terminal agree."""
    info = divisions_of(chosen)
    assert info is not None
    assert [row.chosen for row in info.rows].count(True) == 1
    row = next(row for row in info.rows if row.chosen)
    assert (row.groups, row.group_ranks) == (2, 2)
    assert row.sync
    assert row.stored == sum(
        2 * int(chosen.instance.shard_move[e]) * n for e, n in _entries(chosen)
    )
    assert info.gap == 0
    assert "Sharding groups" in render(report_of(chosen))
    assert divisions_of(plan(tables(), cluster(1, 2), formulation="cpsat")) is None


def _entries(found: Plan) -> list[tuple[int, int]]:
    """The placed options' shard entries, each with its number of shards; rows divide evenly."""
    options = found.outcome.placement.options if found.outcome.placement else []
    instance, counts = found.instance, []
    for table, option in zip(found.tables, options, strict=True):
        block = int(instance.option_blocks[option])
        first, last = instance.block_shards[block], instance.block_shards[block + 1]
        assert last - first == 1
        counts.append((int(first), sum(map(len, table.ranks))))
    return counts


def test_a_file_of_it(chosen: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file is read back and verified; the checker agrees with the standard library alone."""
    path = chosen.save(tmp_path / "plan.json")
    again = read_plan(path)
    assert again.divisions is not None
    assert again.cluster == chosen.cluster
    assert verify(path).ok
    assert checker.main([str(path)]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("divisions: of 6 others none has a plan below ")


def forged(chosen: Plan, path: Path, change: Any) -> tuple[int, list[str]]:
    """The checker's exit code for a changed file, and what verify refutes about it."""
    document = json.loads(chosen.save(path).read_text())
    change(document["divisions"]["others"])
    path.write_text(json.dumps(document))
    refuted = [c.text for c in verify(path).claims if c.ok is False]
    return checker.main([str(path)]), refuted


def test_a_bound_that_no_certificate_proves(chosen: Plan, tmp_path: Path) -> None:
    """Raised with its certificate's target, it is refused by both."""

    def raise_it(others: list[dict[str, Any]]) -> None:
        for outcome in (each["outcome"] for each in others if each["outcome"]["bound"]):
            outcome["certificate"]["target"] *= 2
            outcome["certified_bound"] *= 2
            outcome["bound"] = outcome["certified_bound"]
            outcome["bound_source"] = {"method": "certificate", "exact": True}
            gone = dict.fromkeys(("tables", "objective", "gap", "before_goals"))
            outcome.update(gone, objectives={}, trace=[], goals=[])
            outcome.update(status="unknown", stopped_by="time_limit")

    code, refuted = forged(chosen, tmp_path / "p.json", raise_it)
    assert code == 1
    assert any("some case of its certificate is left open" in text for text in refuted)


def test_a_division_left_out(chosen: Plan, tmp_path: Path) -> None:
    """The checker knows no clusters and accepts the file; verify misses the division."""
    code, refuted = forged(chosen, tmp_path / "p.json", lambda others: others.pop())
    assert code == 0
    assert refuted == ["some divisions asked for are missing"]


def test_another_instance(chosen: Plan, tmp_path: Path) -> None:
    """An easier instance under a division's name is not the one that model and cluster give."""

    def swap(others: list[dict[str, Any]]) -> None:
        others[0].update({key: others[-1][key] for key in ("instance", "outcome")})

    _, refuted = forged(chosen, tmp_path / "p.json", swap)
    assert any("it is not the one that model and cluster give" in text for text in refuted)


def test_a_better_plan_elsewhere(chosen: Plan, tmp_path: Path) -> None:
    """Both refute a plan of one group if another division in its file has a better plan."""
    worse = plan(tables(), place(100, "300KiB", sharding_group_size=4), formulation="cpsat")
    assert chosen.divisions is not None
    path = tmp_path / "p.json"
    mine, other = (json.loads(each.save(path).read_text()) for each in (chosen, worse))
    two_d = {**mine["cluster"]["two_d"], "whole": None}
    entry = {"two_d": two_d, "instance": mine["instance"], "outcome": mine["outcome"]}
    other["divisions"] = {**mine["divisions"], "others": [entry]}
    path.write_text(json.dumps(other))
    assert checker.main([str(path)]) == 1
    assert "another division has a better plan" in [c.text for c in verify(path).claims]


def test_what_cannot_be_priced_is_told(tmp_path: Path) -> None:
    """With Adam only one group can be priced; the rows say why, verify refuses the others."""
    found = plan(tables(optimizer="adam"), place(), formulation="cpsat", settings=QUICK)
    info = divisions_of(found)
    assert found.cluster.replicas == 1
    assert info is not None
    assert [bool(row.refused) for row in info.rows] == [False] + 6 * [True]
    assert verify(found.save(tmp_path / "p.json")).ok


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"objective": "total"}, "total counts the ranks of one sharding group"),
        ({"on_plan": lambda *_: None}, "on_plan needs one fixed sharding group"),
        ({"today": "today.csv"}, "start needs one fixed sharding group"),
    ],
)
def test_what_is_refused(asked: dict[str, Any], why: str) -> None:
    """Arguments that need a single Instance are refused in a sentence."""
    with pytest.raises(BadInput, match=why):
        plan(tables(), place(), **asked)


def test_nothing_can_be_priced() -> None:
    """The error is that of the first division."""
    with pytest.raises(BadInput, match="whose state DMPCollection cannot average"):
        plan(tables(optimizer="adam"), place(sharding_group_size=2))


def test_a_division_left_open_is_told(chosen: Plan) -> None:
    """The note says if another division's certified bound is below the plan's cost, or missing."""
    best, told = chosen.outcome.objective, chosen.divisions
    assert best is not None and told is not None
    assert not chosen.outcome.note
    first = next(other for other in told.others if other.outcome and other.outcome.certified_bound)

    def noted(bound: int | None) -> str:
        assert first.outcome is not None
        opened = replace(first, outcome=first.outcome.with_(certified_bound=bound))
        others = tuple(opened if other is first else other for other in told.others)
        return note_of(chosen.outcome, replace(told, others=others))

    assert noted(best) == ""
    assert noted(best - best // 10).endswith("may hold a better plan, by at most 10%")
    assert noted(None).endswith("another one may hold a better plan")
