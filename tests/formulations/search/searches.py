"""Searches that know nothing yet, the instance that several of their tests use, and calls noted."""

from typing import Any

import numpy as np
import pytest

from formulations.clock import Clock
from formulations.instance import Instance
from formulations.presolve import usable
from formulations.result.placement import Placement
from formulations.search.context import Context
from formulations.settings import Settings
from tests.formulations.examples import ANY, at, built


def opened(instance: Instance, **settings: object) -> Context:
    """A search with these settings."""
    asked = Settings(**settings)  # type: ignore[arg-type]
    return Context(instance, asked, Clock(asked), usable(instance))


def three_on_two() -> Instance:
    """Tables of cost 4, 3 and 3 on two ranks: 6 is the best, 5 the mean."""
    return built([at(ANY, cost) for cost in (4, 3, 3)])


def on(*ranks: int) -> Placement:
    """Each table on its rank."""
    return Placement(np.arange(3), [[np.asarray([rank])] for rank in ranks])


def noted(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[tuple[Any, ...]]:
    """What each call of a function is given, from now on; it does what it did."""
    calls, of = list[tuple[Any, ...]](), getattr(owner, name)

    def call(*given: Any) -> Any:
        calls.append(given)
        return of(*given)

    monkeypatch.setattr(owner, name, call)
    return calls
