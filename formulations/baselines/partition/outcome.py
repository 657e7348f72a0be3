"""From the best proposal to an Outcome, with the plan shown as the runtime would run it."""

from __future__ import annotations

from formulations.baselines.partition.search import Found
from formulations.fusion import mixed_groups, respreads, without_fusion
from formulations.instance import Instance
from formulations.result.check import check
from formulations.result.outcome import Outcome, found, nothing
from formulations.result.placement import Placement


def outcome_of(
    instance: Instance, formulation: str, result: Found, why_nothing: str, **detail: object
) -> Outcome:
    """Turn what a search found into an Outcome that the check accepts.

    A plan that mixes levels in a fusion group is replaced by what the runtime would make of it
    (:func:`formulations.fusion.respreads`); the plan itself is kept in ``detail["unfused"]``.
    When even that breaks a constraint, the outcome is *unknown* and its note says which.
    """
    detail = {**result.describe(), **detail}
    placement = result.placement
    if placement is None:
        return nothing(formulation, result.stopped_by, note=why_nothing, detail=detail)
    if not mixed_groups(instance, placement):
        return found(instance, formulation, placement, result.stopped_by, detail=detail)
    detail["unfused"] = _unfused(instance, placement)
    problem = "its tables share no level"
    for spread in respreads(instance, placement):
        verdict = check(instance, spread)
        if verdict.feasible:
            note = (
                f"planned {result.rating} without fusion groups; the runtime gives every table "
                f"of a group one level, which makes {verdict.objectives[instance.objective.value]}"
            )
            return found(instance, formulation, spread, result.stopped_by, note=note, detail=detail)
        problem = verdict.violations[0]
    note = f"its plan ignores fusion groups, and as the runtime would run it breaks: {problem}"
    return nothing(formulation, result.stopped_by, note=note, detail=detail)


def _unfused(instance: Instance, placement: Placement) -> dict[str, object]:
    """The plan as proposed: options, ranks, objectives and the groups it mixes, as JSON values."""
    mixed = mixed_groups(instance, placement)
    levels = instance.option_level[placement.options]
    return {
        "objectives": check(without_fusion(instance), placement).objectives,
        "mixed": {
            instance.fusion_groups[g]: sorted({int(levels[t]) for t in tables})
            for g, tables in mixed.items()
        },
        "tables": {
            instance.table_names[t]: {
                "option": instance.option_names[int(option)],
                "ranks": placement.to_lists(t),
            }
            for t, option in enumerate(placement.options)
        },
    }
