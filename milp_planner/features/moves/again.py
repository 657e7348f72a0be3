"""Re-plan from an earlier plan: what is carried over, and what may move."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from formulations import Instance, Settings
from formulations.instance.facts import bytes_to_move
from formulations.proof.carry import carried as carried_prices
from milp_planner.drawing.units import listed
from milp_planner.errors import BadInput
from milp_planner.inputs.model import Model
from milp_planner.inputs.problems import one_of
from milp_planner.plans.compile import ClusterSource, Compiled, ModelSource, compile_for
from milp_planner.plans.live import RUNTIMES, restricted
from milp_planner.plans.placement import Plan
from milp_planner.plans.plan_file import read_plan
from milp_planner.request import Moves
from milp_planner.today.carried import Carried, carried

#: A plan, or the path of a plan.json.
BeforeSource = Plan | str | Path


def compile_from(
    before: BeforeSource,
    model: ModelSource,
    cluster: ClusterSource,
    objective: str,
    lost: Collection[int] = (),
    moves: Moves | None = None,
    executable: str | None = None,
) -> tuple[Carried, Settings]:
    """Compile a model for a cluster, with an earlier plan carried over to it.

    With ``executable`` (one of :data:`milp_planner.plans.live.RUNTIMES`), only plans that the
    running trainer can be brought to without a restart are allowed.

    Returns
    -------
    Carried
        Its Instance counts moves from the plan and limits them.
    Settings
        The earlier plan as hint and its multipliers as prices; everything else at its default.
    """
    plan = before if isinstance(before, Plan) else read_plan(before)
    found = carried(plan, compile_for(model, cluster, objective), lost)
    compiled = limited(found, moves or Moves())
    if executable is not None:
        one_of(executable, RUNTIMES, "executable")
        _refuse_other(plan, found)
        compiled = restricted(compiled).compiled
    known = plan.outcome.certificate
    prices = None
    if known is not None and plan.instance.objective == compiled.instance.objective:
        old, new = without_moves(plan.instance), without_moves(compiled.instance)
        same = not plan.instance.limits_moves and old.fingerprint == new.fingerprint
        # a whole certificate is of its own instance; else its multipliers may prove something
        prices = known if same else carried_prices(known, plan.instance, compiled.instance)
    return replace(found, compiled=compiled), Settings(hint=found.wish, prices=prices)


def without_moves(instance: Instance) -> Instance:
    """An instance without limits on what moves, which only take plans away."""
    return replace(instance, current=(), max_moved_tables=None, max_moved_bytes=None)


def _refuse_other(before: Plan, found: Carried) -> None:
    """A reshard needs the ranks and the tensors of the running plan."""
    model, cluster = found.compiled.model, found.compiled.cluster
    restart = "restart from a checkpoint"
    if model.workload.mode == "inference":
        raise BadInput("executable: found mode inference; quantised modules have no reshard")
    if cluster.num_ranks != before.cluster.num_ranks:
        raise BadInput(
            f"executable: found {cluster.num_ranks} ranks, the running plan has "
            f"{before.cluster.num_ranks}; a reshard keeps their number: {restart}"
        )
    if found.gone:
        verb = "is" if len(found.gone) == 1 else "are"
        raise BadInput(
            f"executable: {listed(found.gone, 3)} {verb} in the running plan and not in the model; "
            f"a reshard needs the same tables: {restart}"
        )
    old = _tensors(before.model)
    other = [name for name, tensor in _tensors(model).items() if old.get(name, tensor) != tensor]
    if other:
        raise BadInput(
            f"executable: {listed(other, 3)} {'has' if len(other) == 1 else 'have'} other rows, "
            "columns, dtype or optimizer than in the running plan; a reshard copies tensors as "
            f"they are: {restart}"
        )


def _tensors(model: Model) -> dict[str, tuple[object, ...]]:
    """What the trainer holds of every table, wherever it lies."""
    return {t.name: (t.rows, t.dim, t.dtype, model.optimizer_of(t)) for t in model.tables}


def limited(found: Carried, moves: Moves) -> Compiled:
    """The compiled model with limits on what moves."""
    compiled, most = found.compiled, moves.bytes
    if moves.share is not None:
        most = int(moves.share * held_bytes(found))
    instance = compiled.instance
    if not instance.current:
        return compiled
    limits = replace(instance, max_moved_tables=moves.tables, max_moved_bytes=most)
    return replace(compiled, instance=limits)


def held_bytes(found: Carried) -> int:
    """Bytes of the earlier plan's tables in their places, at today's sizes."""
    instance = found.compiled.instance
    size = bytes_to_move(instance)
    return int(size[found.wish.options[found.wish.options >= 0]].sum())
