"""Drawn files of DLRMv4's variables: the replay is what TorchRec's planner makes of them."""

import random
import sys
from functools import cache
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[4]))
from benchmarks.replay.drawn import DENSE, Drawn, again, bare, drawn, ours, theirs
from milp_planner.inputs.constraints import PinSpec
from milp_planner.integrations.exports import dlrmv4

SEEDS = sorted({*range(34)} - {13, 21, 24})
"""Without those for which TorchRec tries some thousand combinations, but for one."""


@cache
def replayed(seed: int) -> tuple[Drawn, dict[str, PinSpec] | None]:
    """A drawn file, and what runs of it."""
    file = drawn(random.Random(seed))
    return file, ours(file)


@pytest.mark.parametrize("seed", SEEDS)
def test_replayed_and_exported_again(seed: int) -> None:
    """TorchRec's types, placements and ranks, or both stop; the export of what runs, runs the same
    and is judged under the same workload."""
    file, found = replayed(seed)
    assert bare(found) == bare(theirs(file))
    assert found is None or again(file, found)


def test_what_is_drawn() -> None:
    """Among the files that run: partial ones, every exchange, both codecs, dedup, dense bytes."""
    files = [file for file, found in map(replayed, SEEDS) if found]
    assert sum(map(_open, files)) > 10
    for name, values in (
        (dlrmv4.FORWARD, {None, "fp32", "fp16", "bf16"}), (dlrmv4.CODEC, {None, "0", "1"}),
        (dlrmv4.DEDUP, {None, "0", "1"}),
    ):  # fmt: skip
        assert {file.variables.get(name) for file in files} == values
    outside = [file.model.outside_embeddings for file in files]
    assert {each.parameter_bytes for each in outside if each is not None} == {*DENSE}


def _open(file: Drawn) -> bool:
    """Whether a table's type or placement is left to the planner."""
    pins = dlrmv4.read(file.text, file.model).values()
    return any(pin.sharding_type is None or pin.mode is None for pin in pins)
