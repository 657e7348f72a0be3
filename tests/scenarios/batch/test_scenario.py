"""Scenarios: the whole product, and keys that change exactly when an answer may change."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from milp_planner.errors import BadInput
from scenarios.batch import scenario as module
from scenarios.batch.scenario import expand
from scenarios.batch.suite import Suite
from tests.scenarios.batch.small import suite


def test_expand_is_the_product() -> None:
    """Every combination once, in the order of the file."""
    found = expand(suite(seeds=[0, 1], objectives=["total", "step_time"]))
    assert len(set(found)) == len(found) == 2 * 2 * 2 * 2
    assert [s.asked.formulation for s in found[:2]] == ["greedy", "cpsat"]


def test_lists_of_settings_are_crossed() -> None:
    """Each value is a scenario of the formulation that has the setting, and of no other."""
    settings = {
        "dp.hbm_bins_per_device": [5, 10],
        "dp.variant": "first",
        "cpsat.cores": [True, False],
    }
    found = expand(suite(formulations=["dp", "greedy"], sweep={}, settings=settings))
    assert [(s.asked.formulation, s.asked.options) for s in found] == [
        ("dp", {"hbm_bins_per_device": 5, "variant": "first"}),
        ("dp", {"hbm_bins_per_device": 10, "variant": "first"}),
        ("greedy", {}),
    ]
    assert len({s.key() for s in found}) == 3


def test_keys_are_unique_and_stable() -> None:
    """Reading the same suite again gives the same keys."""
    first = [s.key() for s in expand(suite())]
    assert first == [s.key() for s in expand(suite())]
    assert len(set(first)) == len(first) == 4


@pytest.mark.parametrize(
    "changes",
    [
        {"time_limit": 59},
        {"polish": True},
        {"certificate": False},
        {"seeds": 1},
        {"objectives": "total"},
        {"settings": {"greedy.threshold": 1, "cpsat.cores": False}},
        {"sweep": {"ranks_per_machine": 2, "hbm": ["33MiB", "9GiB"]}},
    ],
)
def test_keys_change_with_what_decides(changes: dict[str, object]) -> None:
    """Other inputs or settings make another result."""
    before = {s.key() for s in expand(suite())}
    assert before.isdisjoint(s.key() for s in expand(suite(**changes)))


def test_keys_change_with_the_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another solver may give another answer."""
    one = expand(suite())[0]
    before = one.key()
    monkeypatch.setattr(module, "versions", lambda: {"milp-planner": "another"})
    assert one.key() != before


def test_keys_do_not_depend_on_the_rest_of_the_suite() -> None:
    """A new formulation, axis value or assertion leads only to the new solves."""
    more = suite(
        formulations=["greedy", "dp", "cpsat"],
        assertions=[{"name": "a", "fits": True}],
        name="renamed",
    )
    assert {s.key() for s in expand(suite())} < {s.key() for s in expand(more)}


def test_keys_follow_the_content_of_a_file(tmp_path: Path) -> None:
    """An edited model is another model, even under the same name."""
    text = "name: m\nworkload: {batch_per_rank: 8}\ntables: [{name: t, rows: ROWS, dim: 8}]\n"
    keys = []
    for rows in ("100", "101"):
        (tmp_path / "m.yaml").write_text(text.replace("ROWS", rows))
        module._inputs.cache_clear()
        module._content.cache_clear()
        keys.append(expand(suite(models=["m.yaml"]), tmp_path)[0].key())
    assert keys[0] != keys[1]


@pytest.mark.parametrize("share", ["0.5%", 0.005])
def test_a_gap_is_a_share_and_part_of_the_key(share: object) -> None:
    """0.5% and 0.005 are the same; a solve that stops at another gap is another result."""
    plain, near = expand(suite())[0], expand(suite(gap=share))[0]
    assert (plain.settings().gap, near.settings().gap) == (0.0, 0.005)
    assert plain.key() != near.key()
    assert Suite.from_dict(suite(gap=share).to_dict()) == suite(gap=share)


@pytest.mark.parametrize("gap", [0.5, 1, "0.5"])
def test_an_old_suite_that_meant_per_cent_is_told_so(gap: object) -> None:
    """One sentence says how to write what it meant."""
    with pytest.raises(BadInput, match=r"gap: found .*; allowed: a share .*; did you mean [\d.]+%"):
        suite(gap=gap)
    with pytest.raises(BadInput, match=r"max_gap: found 5; .* did you mean 5%\?"):
        suite(assertions=[{"name": "a", "max_gap": 5}])


def test_a_scenario_is_small_to_ship() -> None:
    """Only names and numbers are sent, and not a model of 10,000 tables."""
    found = expand(suite(models=["generated:tables=10000"]))[0]
    assert len(pickle.dumps(found)) < 1500


def test_an_impossible_point_is_a_scenario_that_fails() -> None:
    """It has a key, and the other points are not refused."""
    found = expand(suite(clusters=["1xa10"], sweep={"machines": [1, 2]}))
    assert len({s.key() for s in found}) == 4


def test_unknown_inputs_are_refused_at_once() -> None:
    """A typing mistake must not become two hundred failures."""
    with pytest.raises(BadInput, match="did you mean 8xh100"):
        expand(suite(clusters=["8xh10"]))
