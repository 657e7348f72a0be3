"""Dictionaries both ways, fingerprints, and the strictness every class shares."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster, Model
from tests.milp_planner.inputs import builders


def test_frozen() -> None:
    """A model that was read cannot be changed."""
    model = Model.from_dict(builders.model(builders.table()))
    with pytest.raises(ValidationError):
        model.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize("cls", [Model, Cluster])
def test_round_trip_through_json(cls: type[Model] | type[Cluster]) -> None:
    """to_dict, JSON and from_dict give an equal value, with exact ratios."""
    data = (
        builders.model(
            builders.table(
                kind="dynamicemb",
                access={"kind": "top_ids", "ids": [{"share": 0.5, "id": 3}]},
                constraints={"cache_ratios": ["1/3", "35%"], "ranks": [0, 1]},
            ),
            cache_ratios="twentieths",
        )
        if cls is Model
        else builders.cluster(reservations={"hbm_percent": 12.5, "hbm_bytes": "1kB"})
    )
    value = cls.from_dict(data)
    again = cls.from_dict(json.loads(json.dumps(value.to_dict())))
    assert again == value
    assert again.fingerprint() == value.fingerprint()


def test_fingerprint_follows_content() -> None:
    """Equal content in another notation has the same fingerprint; other content has another."""
    written = Model.from_dict(builders.model(builders.table(rows="2k")))
    same = Model.from_dict(builders.model(builders.table(rows=2000, dtype="fp32")))
    other = Model.from_dict(builders.model(builders.table(rows=2001)))
    assert written.fingerprint() == same.fingerprint()
    assert written.fingerprint() != other.fingerprint()
    assert len(written.fingerprint()) == 64


def test_from_dict_names_its_source() -> None:
    """The sentence starts with the caller's name for the source."""
    with pytest.raises(BadInput, match=r"^plan\.json: tables\[0\]\.rows: is missing$"):
        Model.from_dict(builders.model({"name": "t", "dim": 8}), "plan.json")


def test_alias_and_name_together_are_refused() -> None:
    """hbm and hbm_bytes are the same field; with both, one is an unknown field."""
    data = builders.cluster(
        machines=[{"ddr": "1MB", "ranks": [{"hbm": "1MB", "hbm_bytes": "2MB"}]}]
    )
    for name in ("ranks_per_machine", "hbm", "ddr"):
        del data[name]
    with pytest.raises(BadInput, match=r"machines\[0\]\.ranks\[0\]\.hbm_bytes: unknown field"):
        Cluster.from_dict(data)


@pytest.mark.parametrize("value", [True, "8", 8.0, None, [8]])
def test_numbers_are_not_coerced(value: object) -> None:
    """Strict: text, booleans and floats are not whole numbers."""
    with pytest.raises(BadInput, match=r"tables\[0\]\.dim: found .*; allowed: a whole number"):
        Model.from_dict(builders.model(builders.table(dim=value)))
