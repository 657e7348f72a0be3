"""The plan cache answers the same question once; any other question is a miss."""

import copy
import gzip
import multiprocessing
import os
import random
import resource
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from formulations import Settings
from formulations.instance import Objective, Resource
from formulations.settings import parse_goals
from milp_planner import Plan, compare, plan, verify
from milp_planner.errors import BadInput, PlannerError
from milp_planner.features.plan import cache as cache_module
from milp_planner.features.plan.cache import Entries, PlanCache, question_of
from milp_planner.inputs import Cluster, Model
from milp_planner.plans.compile import compile_for
from milp_planner.plans.plan_file import plan_to_dict
from scenarios import catalog

LIMITS = Settings(time_limit=60, workers=1, polish=False)
ASKED = Settings(workers=1, polish=False, gap=0.5)


@pytest.fixture(scope="module")
def inputs() -> tuple[Model, Cluster]:
    """Twelve tables on eight ranks."""
    model = catalog.find_model("generated:tables=12,seed=1,kind=torchrec")
    return model, catalog.find_cluster("8xh100")


@pytest.fixture(scope="module")
def kept(inputs: tuple[Model, Cluster], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the answer to one question."""
    folder = tmp_path_factory.mktemp("cache")
    solved(inputs, PlanCache(folder))
    return folder


def solved(inputs: tuple[Model, Cluster], cache: PlanCache, gap: float = 0.5) -> Plan:
    """The plan for the question of these tests."""
    return plan(*inputs, settings=LIMITS, gap=gap, cache=cache)


def entry(folder: Path) -> Path:
    """The folder's only entry."""
    (path,) = folder.glob("*.outcome")
    return path


def test_the_second_answer_is_the_first(inputs: tuple[Model, Cluster], tmp_path: Path) -> None:
    """Equal to the last byte, is marked as cached, and verifies; no cache keeps nothing."""
    cache = PlanCache(tmp_path)
    first = solved(inputs, cache)
    assert not cache.answered
    again = PlanCache(tmp_path)
    second = solved(inputs, again)
    assert again.answered and plan_to_dict(first) == plan_to_dict(second)
    files = [found.save(tmp_path / name) for name, found in (("a", first), ("b", second))]
    assert files[0].read_bytes() == files[1].read_bytes() and verify(second).ok


def test_what_is_not_certified_as_near_is_no_answer(
    inputs: tuple[Model, Cluster], kept: Path
) -> None:
    """An outcome certified to a gap x answers any gap from x on; x is computed from the outcome."""
    cache = PlanCache(kept)
    solved(inputs, cache)
    found = plan(*inputs, settings=LIMITS, gap=0.5, cache=kept).outcome
    assert cache.answered and found.objective is not None and found.certified_bound is not None
    exact = (found.objective - found.certified_bound) / found.objective
    tighter = Settings(time_limit=0.5, workers=1, polish=False)
    near = PlanCache(kept)
    plan(*inputs, settings=tighter, gap=exact, cache=near)
    assert near.answered
    if exact > 0:
        plan(*inputs, settings=tighter, gap=exact * 0.99, cache=near)
        assert not near.answered


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_changed_byte_anywhere_is_a_miss(
    inputs: tuple[Model, Cluster], kept: Path, data: st.DataObject
) -> None:
    """An entry with one bit turned, or its end cut off, counts as absent."""
    compiled = compile_for(*inputs, "step_time")
    path = entry(kept)
    good = path.read_bytes()
    at = data.draw(st.integers(0, len(good) - 1))
    bit = data.draw(st.integers(0, 8))
    bad = good[:at] if bit == 8 else good[:at] + bytes([good[at] ^ 1 << bit]) + good[at + 1 :]
    try:
        path.write_bytes(bad)
        assert PlanCache(kept).get(question_of(compiled, "auto", ASKED)) is None
    finally:
        path.write_bytes(good)
    assert PlanCache(kept).get(question_of(compiled, "auto", ASKED)) is not None


def test_another_question_is_a_miss(inputs: tuple[Model, Cluster], kept: Path) -> None:
    """A row more, a byte of memory less, another objective, profile, goal, seed or formulation."""
    model, cluster = inputs
    rows = model.to_dict()
    rows["tables"][0]["rows"] += 1
    less = cluster.to_dict()
    less["reservations"] = {**less["reservations"], "ddr_bytes": 1}
    same = compile_for(model, cluster, "step_time")
    cache = PlanCache(kept)
    assert cache.get(question_of(same, "auto", ASKED)) is not None
    for other in (
        compile_for(Model.from_dict(rows, "m"), cluster, "step_time"),
        compile_for(model, Cluster.from_dict(less, "c"), "step_time"),
        compile_for(model, cluster, "total"),
        compile_for(model, Cluster.from_dict({**cluster.to_dict(), "profile": "b200"}, "c"),
                    "step_time"),
    ):  # fmt: skip
        assert cache.get(question_of(other, "auto", ASKED)) is None
    goals = parse_goals("step_time:0.1%,moves", "step_time")
    for changed in (Settings(seed=1), Settings(goals=goals), Settings(options={"slack": 0.1})):
        near = Settings(
            workers=1, polish=False, gap=0.5,
            seed=changed.seed, goals=changed.goals, options=changed.options,
        )  # fmt: skip
        assert cache.get(question_of(same, "auto", near)) is None
    assert cache.get(question_of(same, "scale", ASKED)) is None
    assert cache.get(question_of(same, "auto", ASKED, within=0.005)) is None


def leaves(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every number, text and boolean of a document: its container and its key."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(items):
        if isinstance(item, (dict, list)):
            yield from leaves(item)
        elif item is not None:
            yield value, key


def other(value: Any) -> Any:
    """A nearby value of the same type."""
    if isinstance(value, bool):
        return not value
    return value + "x" if isinstance(value, str) else value + 1 if value else 1


FEW = catalog.find_model("generated:tables=2,seed=1,kind=torchrec"), catalog.find_cluster("1xa10")


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_changed_field_of_the_inputs_is_a_miss(data: st.DataObject) -> None:
    """Changing any field of model, cluster or constraints is another question, or invalid."""
    documents = [copy.deepcopy(each.to_dict()) for each in FEW]
    of = data.draw(st.integers(0, 2))
    if of == 2:  # a new constraint
        table = data.draw(st.sampled_from(documents[0]["tables"]))
        table["constraints"] = {
            "sharding_types": [data.draw(st.sampled_from(["table_wise", "row_wise"]))]
        }
    else:
        holder, key = data.draw(st.sampled_from([*leaves(documents[of])]))
        holder[key] = other(holder[key])
    try:
        changed = Model.from_dict(documents[0], "m"), Cluster.from_dict(documents[1], "c")
        compiled = compile_for(*changed, "step_time")
    except PlannerError:
        assume(False)
    known = question_of(compile_for(*FEW, "step_time"), "auto", ASKED).name
    assert question_of(compiled, "auto", ASKED).name != known


def changed_field(value: Any) -> Any:
    """The value of an Instance's field, changed as little as possible."""
    if isinstance(value, np.ndarray):
        later = value.copy()
        later.flat[-1] = not later.flat[-1] if value.dtype == np.bool_ else later.flat[-1] + 1
        return later
    if isinstance(value, Objective):
        return next(each for each in Objective if each != value)
    if value is None:
        return 0
    if value and isinstance(value[0], Resource):
        last = value[-1]
        return (*value[:-1], replace(last, capacity=changed_field(last.capacity)))
    if value and isinstance(value[0], str):
        return (*value[:-1], value[-1] + "x")
    return (*value, (0, 0))


def test_every_field_of_the_instance_is_part_of_the_question(
    inputs: tuple[Model, Cluster],
) -> None:
    """A change to any array, name, capacity or constraint changes the question's name."""
    compiled, asked = compile_for(*inputs, "step_time"), Settings()
    instance = compiled.instance
    name = question_of(compiled, "auto", asked).name
    assert question_of(replace(compiled, instance=replace(instance)), "auto", asked).name == name
    unread = {"name", "source", "time_unit", "reference"}
    for each in {field.name for field in fields(instance)} - unread:
        other_one = replace(instance, **{each: changed_field(getattr(instance, each))})
        changed = replace(compiled, instance=other_one)
        assert question_of(changed, "auto", asked).name != name, each


def test_another_version_is_a_miss(
    inputs: tuple[Model, Cluster], kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another version of this project or of a solver, and prices that a user changed."""
    compiled = compile_for(*inputs, "step_time")
    assert PlanCache(kept).get(question_of(compiled, "auto", ASKED)) is not None
    for name in cache_module.versions():
        later = {**cache_module.versions(), name: "999"}
        with monkeypatch.context() as patched:
            patched.setattr(cache_module, "versions", lambda later=later: later)
            assert PlanCache(kept).get(question_of(compiled, "auto", ASKED)) is None
    profile = compiled.options.profile
    dearer = profile.model_copy(update={"hbm": profile.hbm + 1})
    priced = replace(compiled, options=replace(compiled.options, profile=dearer))
    assert PlanCache(kept).get(question_of(priced, "auto", ASKED)) is None


def test_a_forged_entry_is_refused(inputs: tuple[Model, Cluster], tmp_path: Path) -> None:
    """Even if the digest is right, a claim beyond the proof fails verification."""
    compiled = compile_for(*inputs, "step_time")
    true = solved(inputs, PlanCache(tmp_path)).outcome
    entry(tmp_path).unlink()
    cache = PlanCache(tmp_path)
    cache.put(question_of(compiled, "auto", ASKED), true.with_(certified_bound=true.objective))
    assert cache.get(question_of(compiled, "auto", ASKED)) is None


def test_the_folder_stays_small(inputs: tuple[Model, Cluster], tmp_path: Path) -> None:
    """With room for two of three entries, the least recently used one is deleted."""
    compiled = compile_for(*inputs, "step_time")
    asked = [Settings(workers=1, polish=False, gap=0.5, seed=seed) for seed in range(3)]
    outcome = solved(inputs, PlanCache(tmp_path / "other")).outcome
    size = entry(tmp_path / "other").stat().st_size
    cache = PlanCache(tmp_path / "small", most=2 * size + size // 2)
    for seed, moment in ((0, 1_000), (1, 2_000)):
        cache.put(question_of(compiled, "auto", asked[seed]), outcome)
        newest = max((tmp_path / "small").iterdir(), key=lambda path: path.stat().st_mtime_ns)
        os.utime(newest, (moment, moment))
    # used now, which makes the other one older
    assert cache.get(question_of(compiled, "auto", asked[0])) is not None
    cache.put(question_of(compiled, "auto", asked[2]), outcome)
    there = [cache.get(question_of(compiled, "auto", each)) is not None for each in asked]
    assert there == [True, False, True]


def _put_and_get(folder: Path) -> bool:
    model = catalog.find_model("generated:tables=12,seed=1,kind=torchrec")
    cache = PlanCache(folder)
    for _ in range(2):
        solved((model, catalog.find_cluster("8xh100")), cache)
    return cache.answered


def test_processes_share_it(tmp_path: Path) -> None:
    """Two processes at once each get an answer from the folder, and one entry is left."""
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(_put_and_get, [tmp_path] * 2) == [True] * 2
    assert entry(tmp_path).suffix == ".outcome"


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    """One sentence, before anything is solved."""
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cache: cannot use"):
        PlanCache(tmp_path / "file")


def test_a_plan_that_cannot_be_stored_is_returned(
    inputs: tuple[Model, Cluster], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says why it is not stored."""
    folder = tmp_path / "gone"
    cache = PlanCache(folder)
    folder.rmdir()
    assert solved(inputs, cache).outcome.placement is not None
    assert "cache: the plan is not stored: cannot write" in caplog.text


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "large"])
def test_only_small_regular_files_are_read(
    inputs: tuple[Model, Cluster], kept: Path, tmp_path: Path, kind: str
) -> None:
    """A pipe, a link to an endless device, a folder or a huge file in an entry's place is a miss
    at once."""
    path, most = tmp_path / entry(kept).name, 1 << 20
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        with path.open("wb") as stream:
            stream.truncate(most + 1)
    compiled = compile_for(*inputs, "step_time")
    cache = PlanCache(tmp_path, most)
    started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert cache.get(question_of(compiled, "auto", ASKED)) is None
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - started < 2**18  # KiB


def test_an_entry_is_replaced(tmp_path: Path) -> None:
    """Whatever its bytes look like."""
    entries = Entries(tmp_path, ".entry", 2**20)
    for number in range(50):
        data = gzip.compress(random.Random(number).randbytes(999), mtime=0)
        entries.write("name", data)
        assert entries.read("name") == data


def test_a_cache_is_a_folder(inputs: tuple[Model, Cluster]) -> None:
    """Whatever else is given is refused in a sentence."""
    with pytest.raises(BadInput, match="cache: found False; a folder"):
        plan(*inputs, cache=False)


def test_a_proof_is_for_all_calls(inputs: tuple[Model, Cluster], tmp_path: Path) -> None:
    """What a comparison certifies, a plan with hardly any time certifies too, and one from another
    plan; a limit on moves leaves nothing for calls without it."""
    rows = compare(*inputs, formulations=["auto"], objectives=["step_time"], time_limit=5,
                   workers=1, cache=tmp_path).rows  # fmt: skip
    best = max(row.outcome.certified_bound or 0 for row in rows if row.outcome is not None)
    brief = {"work_limit": 0.2, "workers": 1, "cache": tmp_path}
    first = plan(*inputs, formulation="cpsat", **brief)
    again = plan(*inputs, before=first, **brief)
    for found in (first, again):
        assert (found.outcome.certified_bound or 0) >= best > 0 and verify(found).ok
    cache, instance = PlanCache(tmp_path / "new"), replace(first.instance, max_moved_tables=0)
    cache.prove(instance, first.outcome)
    assert cache.proof(first.instance) is None
    cache.prove(first.instance, first.outcome)
    assert cache.proof(instance) == first.outcome.certificate
