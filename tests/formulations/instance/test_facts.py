"""Sums and largest shards of options.

The fingerprint: derived from the arrays and, independently, by the checker from the file.

Demands of an instance beyond tables and capacities, in words.
"""

import copy
import hashlib
import json
import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations import Block, Shard, Where, checker
from formulations.errors import InstanceError
from formulations.instance import Current, Instance, Pin
from formulations.instance.facts import option_facts
from formulations.instance.file import instance_from_dict, instance_to_dict
from formulations.instance.restrictions import restrictions
from tests.formulations.brute_force import table_placements
from tests.formulations.examples import ANY, EVERY, MACHINE, at, built, every_kind
from tests.formulations.strategies import instances


def _by_hand(instance: Instance, option: int, ranks: tuple[tuple[int, ...], ...]) -> dict:
    """The same numbers, shard by shard in Python."""
    shards, on_rank = [], []
    for index, placed in zip(instance.blocks_of(option), ranks, strict=True):
        block = instance.block(index)
        off = block.where == Where.CLUSTER
        for position in range(block.count if off else len(placed)):
            local = position % len(block.entries)
            shards.append(int(block.entries[local]))
            on_rank.append(not off)
    cost = [int(instance.shard_cost[s].sum()) for s in shards]
    hides = instance.hidden or [0] * len(instance.phases)
    bare = [p for p, hidden in enumerate(hides) if not hidden]
    shows = [int(instance.shard_cost[s, bare].sum()) for s in shards]
    use = instance.shard_use[shards].reshape(len(shards), -1)
    placed_costs = [c for c, on in zip(shows, on_rank, strict=True) if on]
    return {
        "cost": sum(cost),
        "placed_cost": sum(placed_costs),
        "depth": max(placed_costs + [0] * (len(placed_costs) < len(cost)), default=0),
        "use": use.sum(axis=0).tolist(),
        "peak": use.max(axis=0, initial=0).tolist(),
    }


@settings(max_examples=150, deadline=None)
@given(instances())
def test_facts_equal_a_sum_over_shards(instance: Instance) -> None:
    """Every fact is the sum, or the largest, of a placed option's shards, taken one by one."""
    facts = option_facts(instance)
    for option in range(instance.num_options):
        ranks = next(table_placements(instance, option), None)
        if ranks is None or not facts.exact:
            continue
        hand = _by_hand(instance, option, ranks)
        # In an option of several blocks, those off the ranks count 0 in depth.
        assert int(facts.cost[option]) == hand["cost"]
        assert int(facts.placed_cost[option]) == hand["placed_cost"]
        assert int(facts.depth[option]) == hand["depth"]
        assert facts.use[option].tolist() == hand["use"]
        assert facts.peak[option].tolist() == hand["peak"]


def test_facts_of_every_kind_by_hand() -> None:
    """The example of every kind of place, added up on paper."""
    facts = option_facts(every_kind())
    assert facts.cost.tolist() == [11, 14, 11, 4, 15, 200]
    assert facts.placed_cost.tolist() == [11, 14, 11, 4, 15, 0]
    assert facts.depth.tolist() == [3, 7, 6, 2, 8, 0]
    assert facts.use.tolist() == [[34, 15, 0], [40, 0, 0], [3, 110, 0], [14, 0, 0], [3, 0, 0],
                                  [0, 0, 8]]  # fmt: skip
    assert np.array_equal(facts.peak[0], [10, 5, 0])
    assert facts.exact


def test_unequal_machines_make_sums_inexact() -> None:
    """Where a block may take machines of different size, the facts say that they are not exact."""
    assert not option_facts(built([at(MACHINE, 1)], "step_time", [[0], [1, 2]])).exact


PAGE = Path(__file__).parents[3] / "docs/instance-format.md"
SAID = {"name", "source", "time_unit", "reference"}


def by_checker(document: Any) -> str:
    """The checker's fingerprint of a document."""
    return checker.Instance(document).fingerprint


def test_the_vector_of_its_page() -> None:
    """The lines and the SHA-256 that docs/instance-format.md prints for its example are right."""
    text = PAGE.read_text()
    section = text[text.index("## Fingerprint") :]
    lines = re.findall(r"```\n(.*?)\n```", section, re.S)[0]
    told = re.findall(r"the fingerprint `([0-9a-f]{64})`", section)
    document = json.loads(re.findall(r"```json\n(.*?)```", text, re.S)[0])
    assert [hashlib.sha256(lines.encode()).hexdigest()] == told
    assert by_checker(document) == instance_from_dict(document).fingerprint == told[0]


@settings(max_examples=80, deadline=None)
@given(instances(), st.integers(0, 2**32))
def test_both_agree_however_it_is_written(drawn: Instance, seed: int) -> None:
    """Defaults spelled out, runs cut up and keys reordered change neither fingerprint."""
    document = instance_to_dict(drawn)
    assert by_checker(document) == drawn.fingerprint
    other = rewritten(Random(seed), document)
    assert by_checker(other) == instance_from_dict(other).fingerprint == drawn.fingerprint


def rewritten(rng: Random, value: Any) -> Any:
    """The same document, written differently."""
    if isinstance(value, list):
        return [rewritten(rng, item) for item in value]
    if not isinstance(value, dict):
        return value
    found = {key: rewritten(rng, item) for key, item in rng.sample([*value.items()], len(value))}
    if "cost" in found:
        found["use"] = {k: n for k, n in found.get("use", {}).items() if n or rng.random() < 0.5}
        found |= {"move_bytes": found.get("move_bytes", 0), "repeat": found.get("repeat", 1)}
    if "shards" in found:
        found["shards"] = in_pieces(rng, found["shards"])
        found.setdefault("distinct", found["where"] == "one_machine")
        if found.get("count") == 1 and rng.random() < 0.5:
            del found["count"]
    if "scope" in found and found["scope"] == "cluster":
        found["capacity"] = [found["capacity"]]
    if "tables" in found:
        found |= {"name": "another", "source": "elsewhere", "reference": [{"seconds": 1.5}]}
    return found


def in_pieces(rng: Random, shards: list[Any]) -> list[Any]:
    """Runs of shards, some in several pieces."""
    found = []
    for shard in shards:
        cut = rng.randrange(shard["repeat"])
        found += [shard | {"repeat": n} for n in (cut, shard["repeat"] - cut) if n]
    return found


@settings(max_examples=80, deadline=None)
@given(instances(), st.integers(0, 2**32))
def test_what_decides_the_answer_is_in_it(drawn: Instance, seed: int) -> None:
    """A change to what decides the answer changes both fingerprints; remarks change neither."""
    document, rng = instance_to_dict(drawn), Random(seed)
    changed = copy.deepcopy(document)
    change(rng, changed)
    with suppress(InstanceError):
        again = instance_from_dict(changed)
        assert by_checker(changed) == again.fingerprint
        same = plain(instance_to_dict(again)) == plain(document)
        assert (again.fingerprint == drawn.fingerprint) == same


def plain(document: Any) -> Any:
    """The fields that decide the answer, as the product writes them."""
    return {key: value for key, value in document.items() if key not in SAID}


def change(rng: Random, value: Any) -> None:
    """Change one place of a document."""
    while True:
        keys = [*value] if isinstance(value, dict) else [*range(len(value))]
        if not keys:
            return
        key = rng.choice(keys)
        if not isinstance(value[key], (dict, list)) or not value[key]:
            break
        value = value[key]
    if isinstance(value[key], bool) or rng.random() < 0.2:
        del value[key]
    elif isinstance(value[key], int):
        value[key] += 1
    elif isinstance(value[key], str):
        value[key] += "é𝄞"


def test_equal_neighbours_that_are_built_one_by_one() -> None:
    """The builder joins equal neighbours into one entry, as the reader does, so that certificates
    count entries alike."""

    def of(*shards: Shard) -> Instance:
        return built([Block(EVERY, shards)], machines=[[0, 1, 2]], hbm=9)

    one, other = Shard({"hbm": 1}, [2]), Shard({"hbm": 2}, [2])
    long = of(one, Shard({"hbm": 1}, (2,)), other)
    assert long.shard_repeat.tolist() == [2, 1]
    assert long.fingerprint == of(Shard({"hbm": 1}, [2], repeat=2), other).fingerprint
    assert long.fingerprint != of(one, other, other).fingerprint
    assert of(one, one, one).fingerprint == of(one).fingerprint


TWO = built(dict.fromkeys("ab", dict.fromkeys(("fast", "slow"), at(ANY, 1, hbm=1))), hbm=9)


def test_an_instance_without_restrictions() -> None:
    """No restriction is named; a plan in production alone restricts nothing."""
    assert restrictions(TWO) == ()
    assert restrictions(replace(TWO, current=(Current(0, 1, ((1,),)),))) == ()


def test_every_restriction_is_named() -> None:
    """Limits with the tables they count, every pin with its ranks, every forbidden option."""
    asked = replace(
        TWO, pins=(Pin(0, 1, ((1,),)), Pin(1, 3)), forbidden=((0, 0), (1, 2)),
        current=(Current(0, 1, ((1,),)),), max_moved_tables=0, max_moved_bytes=1500,
    )  # fmt: skip
    assert restrictions(asked) == (
        "max_moved_tables: at most 0 tables may move, of 1 table in current",
        "max_moved_bytes: at most 1,500 bytes may move, of 1 table in current",
        "pins: 2: a slow on ranks [[1]], b slow",
        "forbidden: 2: a fast, b fast",
    )
