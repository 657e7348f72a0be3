"""Scenarios: the whole product, and keys that change exactly when an answer may change.

Results on disk: whatever the last write left behind, every whole record survives.

A batch read back from its folder.
"""

import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from milp_planner.errors import BadInput
from milp_planner.files import write_json
from scenarios.batch import read_batch, run_batch
from scenarios.batch import scenario as module
from scenarios.batch.runner import SUITE_FILE
from scenarios.batch.scenario import expand
from scenarios.batch.store import FILE, Store, latest, read_records
from scenarios.batch.suite import Suite
from tests.scenarios.batch.small import record, suite


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
    """Only names and numbers are sent, and not a model of 1,000 tables."""
    found = expand(suite(models=["generated:tables=1000"]))[0]
    assert len(pickle.dumps(found)) < 1500


def test_an_impossible_point_is_a_scenario_that_fails() -> None:
    """It has a key, and the other points are not refused."""
    found = expand(suite(clusters=["1xa10"], sweep={"machines": [1, 2]}))
    assert len({s.key() for s in found}) == 4


def test_unknown_inputs_are_refused_at_once() -> None:
    """A typing mistake must not become two hundred failures."""
    with pytest.raises(BadInput, match="did you mean 8xh100"):
        expand(suite(clusters=["8xh10"]))


def test_every_cut_keeps_the_whole_lines(tmp_path: Path) -> None:
    """A kill may leave any part of the last record; it is dropped, and writing continues."""
    with Store(tmp_path) as store:
        store.append({"key": "a", "n": 1})
        store.append({"key": "b", "n": 2})
    whole = (tmp_path / FILE).read_bytes()
    first = whole.index(b"\n") + 1
    for size in range(len(whole) + 1):
        (tmp_path / FILE).write_bytes(whole[:size])
        kept = {"a"} if first <= size < len(whole) else {"a", "b"} if size == len(whole) else set()
        assert set(latest(tmp_path)) == kept
        with Store(tmp_path) as store:
            store.append({"key": "c"})
        assert set(latest(tmp_path)) == kept | {"c"}


def test_the_newest_record_wins(tmp_path: Path) -> None:
    """A scenario that failed and was solved later counts as solved."""
    with Store(tmp_path) as store:
        store.append({"key": "a", "n": 1})
        store.append({"key": "a", "n": 2})
        assert store.latest()["a"]["n"] == 2
    assert [record["n"] for record in read_records(tmp_path)] == [1, 2]


def test_a_long_torn_line(tmp_path: Path) -> None:
    """The end of the last whole line is found however far back it is."""
    whole = b'{"key":"a"}\n'
    (tmp_path / FILE).write_bytes(whole + b"x" * 200_000)
    with Store(tmp_path):
        pass
    assert (tmp_path / FILE).read_bytes() == whole


def test_a_full_disk_is_a_sentence(tmp_path: Path) -> None:
    """A limit on file size stands for a full disk: records stay, and a later call continues."""
    code = (
        "import resource, sys; from scenarios.batch.store import Store\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "with Store(sys.argv[1]) as store:\n"
        "    for n in range(9): store.append({'key': str(n), 'x': 'y' * 20})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert "BadInput: cannot write" in done.stderr and "earlier results are kept" in done.stderr
    kept = set(latest(tmp_path))
    assert kept == {"0", "1"}
    with Store(tmp_path) as store:
        store.append({"key": "more"})
    assert set(latest(tmp_path)) == kept | {"more"}


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    """A broken line in the middle is not from a crash of ours, so nothing is guessed."""
    (tmp_path / FILE).write_bytes(b'{"key":"a"}\nnonsense\n{"key":"b"}\n')
    with pytest.raises(BadInput, match=r"results\.jsonl:2"):
        latest(tmp_path)


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    """Two batches in one folder would solve everything twice."""
    with Store(tmp_path), pytest.raises(BadInput, match="another batch"):
        Store(tmp_path)
    with Store(tmp_path):
        pass


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    """If a file has the folder's name, a sentence says so."""
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot write"):
        Store(tmp_path / "file")


BINS = {"formulations": ["dp"], "settings": {"dp.hbm_bins_per_device": [10, 20]}}


def test_it_is_what_the_run_left(tmp_path: Path) -> None:
    """Results, order and judgements are the run's; a swept setting is a scenario of its own."""
    half = {"name": "half", "hbm_headroom": 50}
    ran = run_batch(suite(**BINS, assertions=[half]), tmp_path, workers=1)
    read = read_batch(tmp_path)
    assert len(ran.results) == 4
    assert (read.suite, read.results) == (ran.suite, ran.results)
    assert [key for key, _ in read.tasks] == [key for key, _ in ran.tasks]
    assert read.judgements == ran.judgements


def test_results_of_other_versions_count_and_the_newest_wins(tmp_path: Path) -> None:
    """They are found by their scenario's name; scenarios that the suite lacks are left out."""
    small = suite(formulations=["cpsat"], sweep={"hbm": [5000, 6000]})
    write_json(tmp_path / SUITE_FILE, small.to_dict())
    with Store(tmp_path) as store:
        store.append(record("old", axes={"hbm": 5000}, objective=3))
        store.append(record("new", axes={"hbm": 5000}, objective=2, options={}))
        store.append(record("other", axes={"hbm": 7000}, objective=1))
    read = read_batch(tmp_path)
    assert len(read.tasks) == 2
    assert [r["objective"] for r in read.results] == [2]


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    """One sentence each: no suite, or a suite that is not valid."""
    with pytest.raises(BadInput, match="milp-planner batch"):
        read_batch(tmp_path)
    (tmp_path / FILE).write_text("")
    (tmp_path / SUITE_FILE).write_text(json.dumps({"name": "x"}))
    with pytest.raises(BadInput, match="is missing"):
        read_batch(tmp_path)
