"""A smallest reason: tables and constraints that already have no plan among themselves.

Deletion filtering (Chinneck & Dravnieks, "Locating minimal infeasible constraint sets in linear
programs", ORSA Journal on Computing 3, 1991): drop what is not needed for the conflict, halving
chunks first so that large instances need few solves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from formulations.diagnose.ask import Asker
from formulations.diagnose.questions import constraints_of, lift, only
from formulations.instance import Instance
from formulations.instance_file import instance_to_dict


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
        the set is then a conflict all the same, but maybe not a smallest one.
    """

    tables: tuple[str, ...]
    constraints: tuple[str, ...]
    irreducible: bool


def conflict(instance: Instance, asker: Asker) -> Conflict | None:
    """Shrink an infeasible instance to a conflict; None when infeasibility is not proved in time.

    Parameters
    ----------
    instance : Instance
    asker : Asker
        Every step takes at most a fifth of the time it has left.
    """
    document = instance_to_dict(instance)
    if asker.fits(document, 0.5) is not False:
        return None
    constraints, document, sure_constraints = _needed_constraints(document, asker)
    tables, sure_tables = _needed_tables(document, asker)
    # A smaller set of tables may need fewer constraints than all of them did.
    constraints, document, sure_constraints = _needed_constraints(only(document, tables), asker)
    return Conflict(tuple(tables), tuple(constraints), sure_tables and sure_constraints)


def _needed_constraints(
    document: dict[str, Any], asker: Asker
) -> tuple[list[str], dict[str, Any], bool]:
    sure = True
    needed: list[str] = []
    for name in constraints_of(document):
        without = lift(document, name)
        verdict = None if asker.over() else asker.fits(without, 0.2)
        if verdict is False:
            document = without
        else:
            needed.append(name)
            sure &= verdict is True
    return needed, document, sure


def _needed_tables(document: dict[str, Any], asker: Asker) -> tuple[list[str], bool]:
    names = [t["name"] for t in document["tables"]]
    sure: set[str] = set()
    chunk = max(1, len(names) // 2)
    while True:
        start = 0
        while start < len(names) and not asker.over():
            tried = names[start : start + chunk]
            rest = names[:start] + names[start + chunk :]
            verdict = asker.fits(only(document, rest), 0.2)
            if verdict is False:
                names = rest
                continue
            if verdict is True and chunk == 1:
                sure.update(tried)
            start += chunk
        if chunk == 1 or asker.over():
            return names, sure.issuperset(names)
        chunk = max(1, chunk // 2)
