"""A smallest reason: tables and constraints that already have no plan among themselves.

Deletion filtering (Chinneck & Dravnieks, "Locating minimal infeasible constraint sets in linear
programs", ORSA Journal on Computing 3, 1991): drop what is not needed for the conflict, halving
chunks first so that large instances need few solves.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb

from formulations.diagnose.ask import Asker
from formulations.diagnose.questions import constraints_of, lift, only
from formulations.instance import Instance

#: Subsets up to which it is tried whether fewer tables conflict.
SUBSETS = 200


@dataclass(frozen=True)
class Conflict:
    """Tables and constraints without a plan among themselves.

    Attributes
    ----------
    tables : tuple of str
    constraints : tuple of str
        Resource names, ``fusion``, ``pins``, ``forbidden``, ``moves``.
    irreducible : bool
        Whether leaving out any one of them was proved to leave a plan. False when time ran out:
        the set is then a conflict all the same, but may hold more than is needed.
    smallest : bool
        Whether it was also proved that no fewer tables conflict, whatever the constraints.
    """

    tables: tuple[str, ...]
    constraints: tuple[str, ...]
    irreducible: bool
    smallest: bool = False


def conflict(instance: Instance, asker: Asker) -> Conflict | None:
    """Shrink an infeasible instance to a conflict; None when infeasibility is not proved in time.

    Parameters
    ----------
    instance : Instance
    asker : Asker
        Every step takes at most a fifth of the time it has left.
    """
    if asker.fits(instance, 0.5) is not False:
        return None
    _, part, _ = _needed_constraints(instance, asker)
    tables, sure_tables = _needed_tables(part, asker)
    # A smaller set of tables may need fewer constraints than all of them did.
    constraints, _, sure_constraints = _needed_constraints(only(part, tables), asker)
    irreducible = sure_tables and sure_constraints
    smallest = irreducible and _no_fewer(instance, len(tables), asker)
    return Conflict(tuple(tables), tuple(constraints), irreducible, smallest)


def _no_fewer(instance: Instance, size: int, asker: Asker) -> bool:
    """Whether all sets of one table less have a plan under every constraint (so all smaller)."""
    if comb(instance.num_tables, size - 1) > SUBSETS:
        return False
    return all(
        asker.fits(only(instance, fewer), 0.2) is True
        for fewer in combinations(instance.table_names, size - 1)
    )


def _needed_constraints(instance: Instance, asker: Asker) -> tuple[list[str], Instance, bool]:
    sure = True
    needed: list[str] = []
    for name in constraints_of(instance):
        without = lift(instance, name)
        verdict = None if asker.over() else asker.fits(without, 0.2)
        if verdict is False:
            instance = without
        else:
            needed.append(name)
            sure &= verdict is True
    return needed, instance, sure


def _needed_tables(instance: Instance, asker: Asker) -> tuple[list[str], bool]:
    names = list(instance.table_names)
    sure: set[str] = set()
    chunk = max(1, len(names) // 2)
    while True:
        start = 0
        while start < len(names) and not asker.over():
            tried = names[start : start + chunk]
            rest = names[:start] + names[start + chunk :]
            verdict = asker.fits(only(instance, rest), 0.2)
            if verdict is False:
                names = rest
                continue
            if verdict is True and chunk == 1:
                sure.update(tried)
            start += chunk
        if chunk == 1 or asker.over():
            return names, sure.issuperset(names)
        chunk = max(1, chunk // 2)
