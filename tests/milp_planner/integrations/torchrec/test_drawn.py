"""Drawn files of DLRMv4's variables: the replay is what TorchRec's planner makes of them."""

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[4]))
from benchmarks.replay.drawn import DENSE, Drawn, again, bare, drawn, ours, theirs
from milp_planner.integrations.exports import dlrmv4

SEEDS = range(34)


@pytest.mark.parametrize("seed", SEEDS)
def test_replayed_and_exported_again(seed: int) -> None:
    """TorchRec's types, placements and ranks, or both stop; the export of what runs, runs the same
    and is judged under the same workload."""
    file = drawn(random.Random(seed))
    found = ours(file)
    assert bare(found) == bare(theirs(file))
    assert found is None or again(file, found)


def test_what_is_drawn() -> None:
    """Among the files that run: partial ones, every exchange, both codecs, dedup, dense bytes."""
    files = [file for file in (drawn(random.Random(seed)) for seed in SEEDS) if ours(file)]
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
