"""Which of several bounds on the same Instance decides a gap."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Claim(NamedTuple):
    """A bound that one formulation proved: no plan costs less than ``bound``.

    Attributes
    ----------
    bound : int
    by : str
        The method, such as ``cpsat``.
    exact : bool
        Whether it was derived in integers (else in floating point).
    """

    bound: int
    by: str
    exact: bool


def best_bound(claims: Iterable[Claim], objective: int | None) -> Claim | None:
    """The largest bound; among equals one derived in integers.

    Parameters
    ----------
    claims
        Bounds on one Instance.
    objective
        Of the best plan known, which refutes a larger bound in floating point; None without one.
        (A larger one in integers is an error of ours and is not hidden.)
    """
    valid = (c for c in claims if c.exact or objective is None or c.bound <= objective)
    return max(valid, key=lambda claim: (claim.bound, claim.exact), default=None)
