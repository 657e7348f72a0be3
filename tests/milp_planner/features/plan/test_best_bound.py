"""The bound that decides a gap, against bounds known by hand."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scenarios.batch.curves import LowerBound, best_bound

bounds = st.lists(st.builds(LowerBound, st.integers(0, 9), st.sampled_from("ab"), st.booleans()))


def test_the_largest_counts_whoever_proved_it() -> None:
    """A larger floating-point bound counts; of equal bounds, the one in integers; without bounds,
    none."""
    exact, floating = LowerBound(8, "a", True), LowerBound(9, "b", False)
    assert best_bound([exact, floating], None) == floating
    assert best_bound([exact, floating], 9) == floating
    assert best_bound([LowerBound(8, "b", False), exact], 9) == exact
    assert best_bound([], 9) is None


def test_a_plan_refutes_floating_point_alone() -> None:
    """A checked plan below a bound refutes it: a floating-point bound is dropped, one in integers
    is kept."""
    assert best_bound([LowerBound(9, "b", False)], 8) is None
    assert best_bound([LowerBound(7, "a", True), LowerBound(9, "b", False)], 8) == LowerBound(
        7, "a", True
    )
    assert best_bound([LowerBound(9, "a", True)], 8) == LowerBound(9, "a", True)


@given(bounds, st.integers(0, 9))
def test_no_valid_bound_is_larger(known: list[LowerBound], objective: int) -> None:
    """No bound that is at most the objective exceeds the chosen one."""
    valid = [c for c in known if c.bound <= objective]
    found = best_bound(known, objective)
    assert all(found is not None and c.bound <= found.bound for c in valid)
