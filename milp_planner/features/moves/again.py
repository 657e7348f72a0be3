"""Re-plan from an earlier plan: what is carried over, and what may move."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from formulations import Instance, Settings
from formulations.instance.facts import bytes_to_move
from formulations.proof.carry import carried as carried_prices
from milp_planner.drawing.units import listed
from milp_planner.errors import BadInput
from milp_planner.inputs.model import Model
from milp_planner.inputs.problems import one_of
from milp_planner.plans.compile import ClusterSource, Compiled, ModelSource, without_rules
from milp_planner.plans.live import RUNTIMES, restricted
from milp_planner.plans.placement import Plan
from milp_planner.request.values import Moves
from milp_planner.start.mapping import Start, start_on
from milp_planner.start.rows import StartSource, plan_of


def compile_from(
    source: StartSource,
    model: ModelSource,
    cluster: ClusterSource,
    objective: str,
    lost: Collection[int] = (),
    moves: Moves | None = None,
    executable: str | None = None,
) -> tuple[Start, Settings]:
    """Compile a model for a cluster, with a plan to start from on it.

    With ``executable`` (one of :data:`milp_planner.plans.live.RUNTIMES`), only plans that the
    running trainer can be brought to without a restart are allowed.

    Returns
    -------
    Start
        Its Instance counts moves from the plan and limits them.
    Settings
        The plan as hint and its multipliers as prices; everything else at its default.
    """
    plan = plan_of(source)
    found = start_on(plan or source, model, cluster, objective, lost=lost)
    compiled = limited(found, moves or Moves())
    if executable is not None:
        one_of(executable, RUNTIMES, "executable")
        if plan is None:
            raise BadInput("executable: needs a plan.json to start from, the running plan")
        _refuse_other(plan, found)
        compiled = restricted(compiled)
    known, prices = None if plan is None else plan.outcome.certificate, None
    if plan and known is not None and plan.instance.objective == compiled.instance.objective:
        old = without_moves(without_rules(plan.instance))
        new = without_moves(compiled.instance)
        same = not plan.instance.limits_moves and old.fingerprint == new.fingerprint
        # a whole certificate is of its own instance; else its multipliers may prove something
        prices = known if same else carried_prices(known, plan.instance, compiled.instance)
    return replace(found, compiled=compiled), Settings(hint=found.placement, prices=prices)


def without_moves(instance: Instance) -> Instance:
    """An instance without limits on what moves, which only take plans away."""
    return replace(instance, current=(), max_moved_tables=None, max_moved_bytes=None)


def _refuse_other(before: Plan, found: Start) -> None:
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


def limited(found: Start, moves: Moves) -> Compiled:
    """The compiled model with limits on what moves."""
    compiled, most = found.compiled, moves.bytes
    if moves.share is not None:
        most = int(moves.share * held_bytes(found))
    instance = compiled.instance
    if not instance.current:
        return compiled
    limits = replace(instance, max_moved_tables=moves.tables, max_moved_bytes=most)
    return replace(compiled, instance=limits)


def held_bytes(found: Start) -> int:
    """Bytes of the earlier plan's tables in their places, at today's sizes."""
    instance = found.compiled.instance
    size = bytes_to_move(instance)
    return int(size[found.placement.options[found.placement.options >= 0]].sum())
