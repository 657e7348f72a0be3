"""``verify``: re-derive everything that a plan claims, without a solver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from formulations import Instance, Outcome, checker, read_instance
from formulations.errors import InstanceError
from formulations.evidence.verify import Claim, Verification, refuted_by_the_checker
from formulations.evidence.verify import verify as verify_outcome
from formulations.instance.file import instance_to_dict
from formulations.result.outcome_file import outcome_from_dict
from formulations.runtime.collector import uncollected
from milp_planner.drawing.units import MOST_OF_A_RESTRICTION, shorten, show_cost
from milp_planner.errors import BadInput, PlannerError
from milp_planner.features.plan.one_ratio import asked
from milp_planner.inputs.sharding_group import is_group_of_its_whole
from milp_planner.plans.compile import Compiled, compile_instance
from milp_planner.plans.divisions import (
    Division,
    Divisions,
    best_cost,
    groups_of,
    least_elsewhere,
    words_of,
)
from milp_planner.plans.live import restricted
from milp_planner.plans.moving import moving_judged
from milp_planner.plans.placement import Plan
from milp_planner.plans.plan_file import is_plan, plan_from_dict, read_document
from milp_planner.pricing import price
from milp_planner.version import __version__

#: For these claims, ``ok`` None means not judged, rather than a solver's word.
_OPEN = ("pricing", "certificate")


@uncollected()
def verify(
    source: Plan | Outcome | str | Path, instance: Instance | str | Path | None = None
) -> Verification:
    """Re-derive feasibility, objective and certified bound, without importing a solver.

    Parameters
    ----------
    source
        A Plan or the path of a plan.json; or an Outcome or the path of its JSON, which needs
        ``instance``.
    instance
        The Instance of an Outcome, or the path of its file. With a plan it must be the same
        Instance that the plan embeds.

    Returns
    -------
    Verification
        For a plan, it also says whether pricing the embedded model and cluster gives the same
        Instance. If it does not and another version wrote the plan, this is not judged.

    Raises
    ------
    BadInput, InstanceError
        When a file is malformed, or an Outcome comes without its Instance.
    """
    if isinstance(source, (str, Path)):
        return _file(str(source), instance)
    given = read_instance(instance) if isinstance(instance, (str, Path)) else instance
    if isinstance(source, Plan):
        return _plan(source, given)
    return verify_outcome(_needed(given, "an Outcome"), source)


def _file(name: str, instance: Instance | str | Path | None) -> Verification:
    """Judge a file by the stand-alone checker, whose verdict stands, and by our own readers."""
    document = read_document(name)
    given = instance if isinstance(instance, (Instance, type(None))) else None
    if not is_plan(document) and instance is None:
        _needed(None, name)
    try:
        document = checker.opened(document, name)
        if is_plan(document):
            question, outcome = document["instance"], document["outcome"]
        elif given is None:
            question, outcome = read_document(str(instance)), document
        else:
            question, outcome = instance_to_dict(given), document
        case = checker.Case(checker.Instance(question), outcome)
    except checker.Unreadable as error:
        _ours(name, document, instance, None)  # our readers may raise a better message
        raise BadInput(f"{name}: {error}") from error
    except checker.NotChecked as error:
        return Verification((Claim("file", None, f"not checked: {error}"),), (str(error),))
    try:
        return _ours(name, document, instance, case)
    except (BadInput, InstanceError) as error:
        claims = refuted_by_the_checker(case, closes=True)
        if not claims:
            raise
        return Verification((*claims, Claim("file", False, str(error))))


def _ours(
    name: str, document: Any, instance: Instance | str | Path | None, case: checker.Case | None
) -> Verification:
    """The verdict of our own readers on a file, combined with the checker's case."""
    given = read_instance(instance) if isinstance(instance, (str, Path)) else instance
    if is_plan(document):
        return _plan(plan_from_dict(document, name), given, case)
    found = _needed(given, name)
    return verify_outcome(found, outcome_from_dict(found, document, name), case)


def _plan(plan: Plan, given: Instance | None, case: checker.Case | None = None) -> Verification:
    judged, prices = verify_outcome(plan.instance, plan.outcome, case), _repriced(plan)
    unchecked = (prices.text,) if prices.ok is None else ()
    more = (*_same_instance(plan, given), prices)
    others, moving = _others(plan, prices.ok is not None), moving_judged(plan)
    return replace(
        judged,
        claims=(*more, *judged.claims, *others.claims, *moving.claims),
        unchecked=(*unchecked, *judged.unchecked, *others.unchecked, *moving.unchecked),
    )


def _others(plan: Plan, prices: bool) -> Verification:
    """Judge a plan's claims about other divisions into sharding groups: that they are complete,
    that this version prices them the same (if ``prices``), and that none has a better plan."""
    claimed, unchecked = plan.divisions, list[str]()
    if claimed is None:
        return Verification(())
    claims = [] if _complete(plan, claimed) else [_refuted("some divisions asked for are missing")]
    for other in claimed.others:
        words = words_of(other.group)
        if prices and not _is_priced(plan, other):
            claims.append(_refuted(f"{words}: it is not the one that model and cluster give"))
        if other.instance is not None and other.outcome is not None:
            judged = verify_outcome(other.instance, other.outcome)
            claims += [_refuted(f"{words}: {c.text}") for c in judged.claims if c.ok is False]
            unchecked += [f"{words}: {text}" for text in judged.unchecked]
    return Verification((*claims, _compared(plan, claimed)), tuple(unchecked))


def _refuted(text: str) -> Claim:
    return Claim("divisions", False, text)


def _complete(plan: Plan, claimed: Divisions) -> bool:
    """Whether a plan's division and the others are all divisions asked for, each exactly once."""
    whole = None if plan.cluster.two_d is None else plan.cluster.two_d.whole
    if whole is None:
        return False
    wanted = [*groups_of(whole.model_copy(update={"two_d": claimed.asked}))]
    found = [plan.cluster, *(other.group for other in claimed.others)]
    return len(found) == len(wanted) and all(group in found for group in wanted)


def _is_priced(plan: Plan, other: Division) -> bool:
    try:
        options = price(plan.model, other.group, plan.profile)
    except PlannerError:
        return other.instance is None
    if other.instance is None:
        return False
    again = compile_instance(options, plan.instance.objective)
    return again.fingerprint == other.instance.fingerprint


def _compared(plan: Plan, claimed: Divisions) -> Claim:
    """Whether another division may have a better plan, and by how much by its certificate."""
    best, least = best_cost(plan.outcome), least_elsewhere(claimed)
    count = f"of {len(claimed.others)} other divisions"
    plans = [best_cost(o.outcome) for o in claimed.others if o.outcome is not None]
    if best is not None and any(each is not None and each < best for each in plans):
        return _refuted("another division has a better plan")
    if least is None:
        return Claim("divisions", None, f"{count}, some have no certified bound")
    if best is None or least >= best:
        return Claim("divisions", True, f"{count}, none holds a better plan")
    text = f"{count}, none holds a plan below {show_cost(int(least), plan.instance.time_unit)}"
    return Claim("divisions", True, text)


def _needed(instance: Instance | None, what: str) -> Instance:
    if instance is None:
        raise BadInput(f"{what}: is not a plan.json, so it needs its instance (--instance FILE)")
    return instance


def _same_instance(plan: Plan, given: Instance | None) -> Iterator[Claim]:
    if given is not None:
        same = given.fingerprint == plan.instance.fingerprint
        text = "the file given is the one the plan embeds" if same else "another file was given"
        yield Claim("instance", same, text)


def _repriced(plan: Plan) -> Claim:
    """Whether this version's pricing of the embedded inputs gives the same Instance.

    If it does not and another version priced the plan, this is not judged.
    """
    try:
        if not is_group_of_its_whole(plan.cluster):
            return Claim(
                "pricing", False, "its cluster is not a sharding group of the one it names"
            )
        text = (
            "the embedded model, cluster and profile give a different instance: the embedded one "
            "was changed"
        )
        same = _priced_alike(plan)
    except PlannerError as error:
        same, text = False, f"the embedded inputs cannot be priced: {error}"
    if same:
        return Claim("pricing", True, "the embedded model, cluster and profile give this instance")
    if plan.version == __version__:
        return Claim("pricing", False, text)
    by = f"milp-planner {plan.version!r}" if plan.version else "another milp-planner"
    return Claim(
        "pricing", None, f"its bytes and prices were not re-derived: the file says that {by} wrote "
        f"it, and {__version__} derives different ones from its model, cluster and profile",
    )  # fmt: skip


def _priced_alike(plan: Plan) -> bool:
    options = price(plan.model, plan.cluster, plan.profile)
    # Limits on moves come from a question (re-plan), not from the inputs, so they are copied.
    again = replace(
        compile_instance(options, plan.instance.objective),
        current=plan.instance.current,
        max_moved_tables=plan.instance.max_moved_tables,
        max_moved_bytes=plan.instance.max_moved_bytes,
    )
    compiled = Compiled(plan.model, plan.cluster, options, again)
    if plan.executable is not None:
        compiled = restricted(compiled)
    return asked(compiled, plan.outcome.detail).fingerprint == plan.instance.fingerprint


def summary(result: Verification) -> str:
    """One sentence: refuted, not checked, or verified, with claims that rest on a solver's word."""
    refuted = [claim.name for claim in result.claims if claim.ok is False]
    if refuted:
        return f"refuted: {', '.join(refuted)}"
    solver, late = (
        [c.name for c in result.claims if c.ok is None and (c.name in _OPEN) == open_]
        for open_ in (False, True)
    )
    keys = ", ".join(text.partition(":")[0] for text in result.restrictions)
    head = f"not checked: {', '.join(late)}" if late else "verified"
    said = [f"{head}, of a restricted question ({keys})" if keys else head]
    said += [f"a solver's word alone stands behind: {', '.join(solver)}"] if solver else []
    return "; ".join(said) if late or solver else f"{said[0]}: every claim was re-derived"


def verification_to_dict(result: Verification) -> dict[str, Any]:
    """Plain values: the verdict, the summary, and every claim with ``ok`` (null: not proved)."""
    return {
        "ok": result.ok,
        "checked": not result.unchecked,
        "unchecked": list(result.unchecked),
        "restrictions": list(result.restrictions),
        "summary": summary(result),
        "claims": [{"name": c.name, "ok": c.ok, "text": c.text} for c in result.claims],
    }


_MARK = {True: ("✓", "green"), False: ("✗", "bold red"), None: ("·", "yellow")}


def draw_claims(result: Verification, title: str) -> RenderableType:
    """One row per claim (✓ re-derived, ✗ refuted, · a solver's word, ! restricted or not checked),
    then the summary."""
    table = Table(box=None, pad_edge=False, show_header=False, title=title, title_justify="left")
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for text in result.restrictions:
        shown = shorten(text, MOST_OF_A_RESTRICTION)
        table.add_row(Text("!", style="bold yellow"), "restricted", Text(shown))
    for text in result.unchecked:
        table.add_row(Text("!", style="bold yellow"), "not checked", Text(text))
    for claim in [c for c in result.claims if c.ok is not None or c.name not in _OPEN]:
        mark, style = _MARK[claim.ok]
        table.add_row(Text(mark, style=style), claim.name, claim.text)
    return Group(table, Text(summary(result), style="green" if result.ok else "bold red"))
