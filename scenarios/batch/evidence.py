"""What one scenario found, in a form that others, and later runs, can use: its Outcome as text.

Nothing in it is trusted, as anybody may have written to the folder: a plan is judged by the check,
a certificate by the judge, each on the instance of the scenario that takes it.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from formulations import Instance, Outcome, Status, StoppedBy
from formulations.capacity.proofs import relaxed, usable_certificate
from formulations.errors import InstanceError
from formulations.evidence import verify
from formulations.evidence.certify import with_certificate
from formulations.instance import strict_json
from formulations.reduce import suits
from formulations.result.certificate import Certificate, certificate_from_dict
from formulations.result.check import check
from formulations.result.outcome import BoundSource, with_plan
from formulations.result.outcome_file import (
    outcome_from_dict,
    outcome_to_dict,
    placement_from_dict,
)
from formulations.result.placement import Placement
from formulations.settings import Data
from milp_planner.features.plan.one_ratio import asked
from milp_planner.plans.compile import Compiled
from scenarios.batch.neighbours import shape_of

accepted = partial(verify.accepted, seconds=30.0)
"""Whether a certificate holds; one that takes the checker longer is left out."""
_OF = ("capacity", "largest_use")
"""Rows of resources."""


@dataclass(frozen=True)
class Shared:
    """What other scenarios found that helps one, each as :func:`written`; empty: nothing does.

    Attributes
    ----------
    own : bytes
        What it found itself before: it is combined with the rest.
    again : bool
        Whether it may then be solved again, from a plan that is better than its own.
    plan : bytes
        Has a plan that is one here, too.
    proved, certified : bytes
        From as much memory or more: their bounds hold here, or they have no plan, as here.
    below : bytes
        From less memory: its certificate's multipliers prove a bound here.
    """

    own: bytes = b""
    again: bool = False
    plan: bytes = b""
    proved: bytes = b""
    certified: bytes = b""
    below: bytes = b""


def written(instance: Instance, outcome: Outcome) -> bytes:
    """An outcome for :func:`read`, the same bytes for the same outcome."""
    found = {"shape": shape_of(instance), "outcome": outcome_to_dict(instance, outcome)}
    return gzip.compress(json.dumps(found).encode(), mtime=0)


def before(compiled: Compiled, shared: Shared) -> Outcome | None:
    """What a scenario found before; None if that is not known."""
    document, _ = _read(shared.own)
    if not document:
        return None
    try:
        return outcome_from_dict(asked(compiled, document.get("detail", {})), document)
    except InstanceError:
        return None  # prices have changed since


def start(shared: Shared, instance: Instance) -> Data:
    """The plan and the multipliers that a search may start from."""
    prices = _here(instance, shared.certified) or _here(instance, shared.below)
    usable = prices is not None and suits(instance, prices)
    return Data(hint=_plan(instance, shared), prices=prices if usable else None)


def combined(instance: Instance, outcome: Outcome, shared: Shared) -> Outcome:
    """The outcome with the cheaper plan and the higher bounds of others, where they hold here."""
    plan = _plan(instance, shared)
    if plan is not None:
        value = check(instance, plan).objectives[instance.objective.value]
        if outcome.objective is None or value < outcome.to_beat:
            outcome = with_plan(instance, outcome, plan, value)
            outcome = _noted(outcome.with_(goals=(), before_goals=None), "plan")
    return _bounded(instance, _impossible(instance, outcome, shared), shared)


def _bounded(instance: Instance, outcome: Outcome, shared: Shared) -> Outcome:
    """The outcome with the highest bound that the others' certificates, or solvers, prove here."""
    if outcome.status == Status.INFEASIBLE:
        return outcome
    first, objective = outcome, outcome.objective
    above, below = _here(instance, shared.certified), _here(instance, shared.below)
    roots = [relaxed(instance, known) for known in (above, below) if known is not None]
    for proof in (above, *roots):
        if proof is not None and proof.target is not None:
            least = proof.target if objective is None else min(proof.target, objective)
            outcome = with_certificate(instance, outcome, replace(proof, target=least), accepted)
    outcome = _without_certificate(instance, outcome, shared)
    return outcome if outcome is first else _noted(outcome, "bound")


def _without_certificate(instance: Instance, outcome: Outcome, shared: Shared) -> Outcome:
    """The outcome with the bound that a solver proved in integers for as much memory."""
    document, shape = _read(shared.proved)
    source, bound = document.get("bound_source") or {}, document.get("bound")
    if shape != shape_of(instance) or not source.get("exact") or not isinstance(bound, int):
        return outcome
    if bound <= (outcome.bound or 0) or bound > (outcome.objective or bound):
        return outcome
    higher = outcome.with_(bound=bound, bound_source=BoundSource(str(source["method"]), True))
    if higher.closed:
        return higher.with_(status=Status.OPTIMAL, stopped_by=StoppedBy.PROOF)
    return higher


def _impossible(instance: Instance, outcome: Outcome, shared: Shared) -> Outcome:
    """The outcome, infeasible if there is no plan with as much memory either."""
    document, shape = _read(shared.proved)
    if outcome.status != Status.UNKNOWN or document.get("status") != Status.INFEASIBLE.value:
        return outcome
    source, proof = document.get("bound_source") or {}, _proof(document)
    if proof is not None and not accepted(instance, proof):
        return outcome
    if proof is None and (shape != shape_of(instance) or not source.get("exact")):
        return outcome
    by = BoundSource(str(source.get("method")), True)
    known: dict[str, Any] = {"bound": None, "certified_bound": None, "bound_source": by}
    status = {"status": Status.INFEASIBLE, "stopped_by": StoppedBy.PROOF, "certificate": proof}
    return _noted(outcome.with_(**status, **known), "proof")


def _noted(outcome: Outcome, what: str) -> Outcome:
    told = f"{what} of another solve"
    return outcome if told in outcome.note else outcome.with_(
        note="; ".join(filter(None, (outcome.note, told)))
    )  # fmt: skip


def _plan(instance: Instance, shared: Shared) -> Placement | None:
    """The plan of another scenario, if it is one here: its options may not exist here."""
    document, _ = _read(shared.plan)
    if not document:
        return None
    try:
        plan = placement_from_dict(instance, document)
    except InstanceError:
        return None
    return plan if check(instance, plan).feasible else None


def _here(instance: Instance, packed: bytes) -> Certificate | None:
    """The certificate of a bound in an outcome, without rows of resources that are not here: at
    some capacities, no plan can exceed them."""
    proof = usable_certificate(_proof(_read(packed)[0]))
    if proof is None:
        return None
    there = {resource.name for resource in instance.resources}
    vectors = ([r for r in v if r["row"] not in _OF or r["of"] in there] for v in proof.vectors)
    return replace(proof, vectors=tuple(vectors))


def _proof(document: dict[str, Any]) -> Certificate | None:
    try:
        known = document.get("certificate")
        return None if known is None else certificate_from_dict(known)
    except InstanceError:
        return None


def _read(packed: bytes) -> tuple[dict[str, Any], str]:
    """An outcome's document and the shape of its instance; both empty where it is not one."""
    try:
        found = strict_json.parse(strict_json.unpack(packed, "outcome"), "outcome")
        return found["outcome"], found["shape"]
    except (InstanceError, LookupError, TypeError):
        return {}, ""
