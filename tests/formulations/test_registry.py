"""The table of formulations says truly what each of them proves and which options it has."""

from __future__ import annotations

import pytest

from formulations import InstanceError, Settings, Status, solve
from formulations.registry import FORMULATIONS, get
from tests.formulations.examples import two_modes


@pytest.mark.parametrize("name", FORMULATIONS)
def test_proves_what_it_says(name: str) -> None:
    """Each proves what its entry says of small instances: the optimum, or nothing."""
    settings = Settings(time_limit=20, workers=1, certificate=False, polish=False)
    outcome = solve(two_modes(90, 280), name, settings)
    if FORMULATIONS[name].proves == "nothing":
        assert outcome.status != Status.OPTIMAL
        assert outcome.bound is None
    else:
        assert FORMULATIONS[name].proves in ("optimum", "optimum or gap", "gap")
        assert outcome.status == Status.OPTIMAL


@pytest.mark.parametrize("name", FORMULATIONS)
def test_an_option_it_does_not_know_is_refused(name: str) -> None:
    """An option that a formulation does not have is refused, not ignored."""
    settings = Settings(time_limit=20, options={"nonsense": 1})
    with pytest.raises(InstanceError, match=f"{name} has no option 'nonsense'"):
        solve(two_modes(90, 280), name, settings)


def test_the_nearest_name_is_offered() -> None:
    """A misspelt formulation is refused with the one probably meant, one of before with its
    replacement."""
    with pytest.raises(InstanceError, match="did you mean 'cpsat'"):
        get("cpsta")
    with pytest.raises(InstanceError, match=r"'uniform' is gone: ask for greedy with --set"):
        get("uniform")
    with pytest.raises(InstanceError, match="'distemb' is gone: benchmarks/distemb"):
        get("distemb")
