"""Readers of foreign files: any content gives pins or one sentence, never a traceback."""

from __future__ import annotations

import contextlib
import json
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from milp_planner.errors import BadInput
from milp_planner.inputs.constraints import PinSpec
from milp_planner.integrations import exports

from . import plans

TABLES = (plans.static("a"), plans.dynamic("d"))
MODEL = plans.model(*TABLES)
TEXTS = {
    "torchrec": exports.write(plans.random_plan(3, *TABLES), "torchrec"),
    "torchrec-callback": exports.write(plans.random_plan(3, *TABLES), "torchrec-callback"),
    "dynamicemb": exports.write(plans.random_plan(3, *TABLES), "dynamicemb"),
    "tzrec": exports.write(
        plans.chosen_plan({"d": "row_wise/HYBRID/0.5/roundrobin"}, *TABLES), "tzrec"
    ),
    "dlrmv4": exports.write(plans.chosen_plan({}, TABLES[0]), "dlrmv4"),
}
_VALUES = st.sampled_from(
    [None, True, 0, 1, -1, 2**70, 0.5, 1e300, "", "x", "row_wise", [], [1], {}, {"a": 1}]
)
_QUICK = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


def _judge(text: str, to: str) -> None:
    with contextlib.suppress(BadInput):
        for name, pin in exports.read(text, to, MODEL).items():
            assert isinstance(pin, PinSpec)
            assert name in ("a", "d")


@pytest.mark.parametrize("to", TEXTS)
def test_the_originals_are_read(to: str) -> None:
    """Unchanged texts are read without an error."""
    assert exports.read(TEXTS[to], to, MODEL)


@pytest.mark.parametrize("to", TEXTS)
@_QUICK
@given(data=st.data())
def test_damaged_text(to: str, data: st.DataObject) -> None:
    """Characters are cut, doubled and overwritten."""
    text = TEXTS[to]
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        size = data.draw(st.integers(0, 30))
        text = (
            text[:at]
            + data.draw(st.sampled_from(["", "{", '"', "x", "\n", "=,", "}}"]))
            + (text[at + size :] if data.draw(st.booleans()) else text[max(0, at - size) :])
        )
    _judge(text, to)


@pytest.mark.parametrize("to", ["torchrec", "dynamicemb"])
@_QUICK
@given(seed=st.integers(0, 10**6), value=_VALUES)
def test_other_values(to: str, seed: int, value: Any) -> None:
    """A JSON document with any value at any place, or with a place left out."""
    document = json.loads(TEXTS[to])
    draw = random.Random(seed)
    place: Any = document
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = draw.choice(keys)
        if not isinstance(place[key], (dict, list)) or draw.random() < 0.25:
            break
        place = place[key]
    if draw.random() < 0.2:
        del place[key]
    else:
        place[key] = value
    _judge(json.dumps(document), to)


@pytest.mark.parametrize("to", TEXTS)
@given(text=st.text(max_size=40))
def test_any_text(to: str, text: str) -> None:
    """Files of another kind."""
    _judge(text, to)
