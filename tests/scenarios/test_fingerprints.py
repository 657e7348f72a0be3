"""Options, bytes and prices of every shipped suite, and of random models of every runtime, as they
were."""

from __future__ import annotations

import json

import pytest

from milp_planner.errors import BadInput
from milp_planner.pricing import price
from tests.scenarios.fingerprints import STORED, drawn_inputs, fingerprint, fingerprints

AGAIN = "changed on purpose? python -m tests.scenarios.fingerprints"


def test_nothing_changed_its_bytes_or_price() -> None:
    """Every input has the options, bytes and prices that are stored."""
    stored, found = json.loads(STORED.read_text(encoding="utf-8")), fingerprints()
    changed = [name for name in {**stored, **found} if stored.get(name) != found.get(name)]
    assert changed == [], AGAIN


def test_one_byte_more_is_another_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte more per slot of a cache changes the bytes' hash alone."""
    inputs = {name: (model, cluster) for name, model, cluster in drawn_inputs(40)}
    before = {name: fingerprint(*each) for name, each in inputs.items()}
    monkeypatch.setattr("milp_planner.pricing.storage.CACHE_SLOT_BYTES", 17)
    after = {name: fingerprint(*each) for name, each in inputs.items()}
    changed = [name for name in inputs if before[name] != after[name]]
    assert changed
    for name in changed:
        options, sizes, prices = before[name].split()
        assert after[name].split()[::2] == [options, prices]
        assert after[name].split()[1] != sizes


def test_the_random_inputs_are_of_every_runtime() -> None:
    """Most are priced, and every mode, library, storage model and cost model is among them."""
    modes, kinds, storages, costs, priced = set(), set(), set(), set(), 0
    for _, model, cluster in drawn_inputs():
        try:
            options = price(model, cluster)
        except BadInput:
            continue  # the sentence has a fingerprint, too
        priced += 1
        modes |= {choice.mode for choice in options.choices}
        kinds |= {table.kind for table in model.tables}
        storages.add(model.workload.storage_model)
        costs.add(model.workload.cost_model)
    assert modes == {"HBM_ONLY", "HYBRID", "CACHING", "HOST_ONLY", "SSD"}
    assert (len(kinds), len(storages), len(costs)) == (2, 2, 3)
    assert priced > 150
