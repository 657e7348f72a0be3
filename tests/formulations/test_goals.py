"""What users write for the finishing pass: names in order, a tolerance for the objective alone."""

from __future__ import annotations

import pytest

from formulations.errors import InstanceError
from formulations.goals import NAMES, Goals, parse_goals


def test_goals_that_are_not_named_follow_those_that_are() -> None:
    """Order and tolerance as written; the rest in its usual order."""
    goals = parse_goals("step_time:0.1%, moves, shards", "step_time")
    assert goals.order == ("moves", "shards", "host_memory", "total", "even_memory")
    assert goals.tolerance == pytest.approx(0.001)
    assert goals.most(1_000_000) == 1_001_000
    assert parse_goals("shards", "step_time") == Goals(
        ("shards", "host_memory", "total", "even_memory", "moves")
    )
    assert parse_goals("total:1%", "total").order == NAMES


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("step_time:0.1", "a tolerance is a percentage such as 0.1%"),
        ("moves:3%", "only the objective, step_time, has a tolerance"),
        ("moves,step_time:1%", "the objective, step_time, comes first"),
        ("shard", "did you mean 'shards'"),
        ("moves,moves", "names one twice"),
        ("even_memory,shards", "even_memory before shards is not supported"),
        ("busiest_rank:1%", "unknown goal 'busiest_rank'"),
        ("", "unknown goal ''"),
    ],
)
def test_what_is_not_supported_is_refused_in_a_sentence(text: str, told: str) -> None:
    """No tolerance but the objective's, no unknown name, no impossible order."""
    with pytest.raises(InstanceError, match="goals: ") as error:
        parse_goals(text, "step_time")
    assert told in str(error.value)
