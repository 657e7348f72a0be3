"""The fingerprint: derived from the arrays and, independently, by the checker from the file."""

from __future__ import annotations

import copy
import hashlib
import json
import re
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from formulations import checker
from formulations.errors import InstanceError
from formulations.instance import Instance, Where
from formulations.instance.build import Block as Built
from formulations.instance.build import InstanceBuilder, Shard
from formulations.instance.file import instance_from_dict, instance_to_dict
from tests.formulations.strategies import instances

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

    def built(*shards: Shard) -> Instance:
        builder = InstanceBuilder([[0, 1, 2]], ["p"], [("hbm", "rank", 9)])
        builder.add_table("t")
        builder.add_option("o", [Built(Where.EVERY_RANK, shards)])
        return builder.build()

    one, other = Shard({"hbm": 1}, [2]), Shard({"hbm": 2}, [2])
    long = built(one, Shard({"hbm": 1}, (2,)), other)
    assert long.shard_repeat.tolist() == [2, 1]
    assert long.fingerprint == built(Shard({"hbm": 1}, [2], repeat=2), other).fingerprint
    assert long.fingerprint != built(one, other, other).fingerprint
    assert built(one, one, one).fingerprint == built(one).fingerprint
