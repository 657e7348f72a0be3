"""``MilpShardingPlanner``: TorchRec's sharding planner with option and rank chosen together."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Protocol, get_args

import torch.distributed as dist
from torch import nn
from torchrec.distributed.planner import planners
from torchrec.distributed.planner.perf_models import NoopPerfModel
from torchrec.distributed.planner.types import (
    Enumerator,
    ParameterConstraints,
    PerfModel,
    PlanDebugStats,
    PlanLoader,
    PlannerError,
    PlannerErrorType,
    ShardingOption,
    Stats,
    StorageReservation,
    Topology,
)
from torchrec.distributed.sharding_plan import get_default_sharders
from torchrec.distributed.types import ModuleSharder, ShardingPlan

from formulations import Instance, Outcome, Placement, Settings
from formulations.result.check import check
from formulations.runtime.timing import CallTime
from milp_planner.drawing.units import NAMED, listed
from milp_planner.errors import BadInput
from milp_planner.features.plan.cache import PlanCache, Question, answered, to_cache
from milp_planner.features.plan.one_ratio import as_it_runs, asked, clashing
from milp_planner.inputs.model import Fusion
from milp_planner.inputs.problems import one_of
from milp_planner.integrations.torchrec.blocks import DdrScope, Together
from milp_planner.integrations.torchrec.failure import no_plan
from milp_planner.integrations.torchrec.key_value import StoreBytes, as_the_runtime
from milp_planner.integrations.torchrec.lift import Lift, lift
from milp_planner.integrations.torchrec.moments import above_estimate
from milp_planner.integrations.torchrec.problem import Problem, compile_problem
from milp_planner.integrations.torchrec.rating import (
    RatingName,
    guilty,
    speed_up,
    summary,
    torchrec_rating,
)
from milp_planner.integrations.torchrec.received import planned_by_rank_0
from milp_planner.integrations.torchrec.replicas import Replicas
from milp_planner.integrations.torchrec.stash import AS_IS, Stash, solve_balanced
from milp_planner.request import Limits

logger = logging.getLogger(__name__)

Callback = Callable[[list[ShardingOption]], list[ShardingOption]]


class RequestCache(Protocol):
    """Plans under keys of another system, each with the outcome that proves it."""

    def get(self, question: Question) -> Outcome | None:
        """The stored outcome, if it answers the question."""

    def put(self, question: Question, outcome: Outcome, plan: ShardingPlan) -> None:
        """Store a plan with its outcome."""


class MilpShardingPlanner(planners.EmbeddingPlannerBase):
    """Drop-in for TorchRec's ``EmbeddingShardingPlanner`` that returns a plan with a bound.

    TorchRec's own enumerator, estimators, storage reservation and constraints make the options; one
    exact model then chooses all options and all ranks under TorchRec's own rating, the busiest
    rank, or under the critical path that its statistics report. :attr:`problem` and :attr:`outcome`
    hold the solve, :attr:`rating` holds TorchRec's figure for the plan (ms), :attr:`best_plan` its
    options with ranks.

    Parameters
    ----------
    topology, batch_size, enumerator, storage_reservation, stats, constraints, debug, callbacks
        As in TorchRec.
    performance_model : PerfModel, optional
        Only TorchRec's ``NoopPerfModel`` (the default); what is minimised is ``objective``.
    timeout_seconds : int, optional
        Wall clock of a whole call of :meth:`plan`, TorchRec's enumeration included; overrides the
        time limit in ``settings``. Only compiling the search, once on a machine, is not counted,
        and logged as a warning first. ``outcome.detail["stages"]`` has the seconds of each stage.
    plan_loader : PlanLoader, optional
        As in TorchRec: a stored plan that matches the context is returned as it is, unless it
        breaks a current constraint: TorchRec's context rounds memory to 100 GiB.
    formulation : str
        Name in :data:`formulations.registry.FORMULATIONS`.
    settings : formulations.Settings, optional
        Limits, workers, seed; default 60 s on all cores.
    ddr : {"rank", "machine"}
        Whether DDR limits every rank, as in TorchRec, or the host as a whole.
    lift : Lift, optional
        Further column widths and cache load factors for every table.
    objective : {"busiest_rank", "critical_path", "critical_path_with_ids"}
        The objective to minimise, see :mod:`milp_planner.integrations.torchrec.rating`.
    fusion : {"honoured", "free"}
        Whether dynamicemb tables that the runtime fuses must share one cache ratio, and cached
        tables that meet in a kernel of TorchRec one load factor, as they do there.
    together : sequence of sequences of str
        Names of tables that must share a rank, any rank; each is then placed whole.
    key_value : {"runtime", "torchrec"}
        Bytes of key-value and virtual tables as their kernel allocates them, or as TorchRec counts
        them, see :mod:`milp_planner.integrations.torchrec.key_value`.
    cache : PlanCache or path of a folder, optional
        Where answers are stored, as in :func:`milp_planner.plan`. The key is TorchRec's search
        space with the current capacities.
    by_request : RequestCache, optional
        A plan stored under TorchRec's request, which :class:`MilpPlannerProvider` looks up; tried
        first.
    stash : Stash, optional
        How tables with ``stash_weights`` count (TorchRec 1.9), and whether to balance them after
        the objective, see :mod:`milp_planner.integrations.torchrec.stash`.
    replicas : Replicas, optional
        Other sharding groups that use the same plan, see
        :mod:`milp_planner.integrations.torchrec.two_d`; ``topology`` is that of one group.

    Raises
    ------
    BadInput
        If given a proposer, a partitioner or another performance model, which would be ignored.
    """

    def __init__(  # noqa: PLR0913 (TorchRec's signature)
        self,
        topology: Topology | None = None,
        batch_size: int | None = None,
        enumerator: Enumerator | None = None,
        storage_reservation: StorageReservation | None = None,
        proposer: object | None = None,
        partitioner: object | None = None,
        performance_model: PerfModel | None = None,
        stats: Stats | list[Stats] | None = None,
        constraints: dict[str, ParameterConstraints] | None = None,
        debug: bool = True,
        callbacks: list[Callback] | None = None,
        timeout_seconds: int | None = None,
        plan_loader: PlanLoader | None = None,
        *,
        formulation: str = "auto",
        settings: Settings | None = None,
        ddr: DdrScope = "rank",
        lift: Lift | None = None,
        objective: RatingName = "busiest_rank",
        fusion: Fusion = "honoured",
        together: Together = (),
        key_value: StoreBytes = "runtime",
        cache: PlanCache | str | Path | None = None,
        by_request: RequestCache | None = None,
        replicas: Replicas | None = None,
        stash: Stash = AS_IS,
    ) -> None:
        _refuse_parts(proposer, partitioner, performance_model)
        super().__init__(
            topology=topology,
            batch_size=batch_size,
            enumerator=enumerator,
            storage_reservation=storage_reservation,
            stats=stats,
            constraints=constraints,
            debug=debug,
            callbacks=callbacks,
            timeout_seconds=timeout_seconds,
        )
        if enumerator is None:
            speed_up(self._enumerator)
        self._plan_loader = plan_loader
        self._formulation = formulation
        seconds = float(timeout_seconds) if timeout_seconds else None
        self._settings = Limits.of({"time_limit": seconds}).settings(settings)
        self._ddr: DdrScope = one_of(ddr, get_args(DdrScope), "ddr")
        self._lift = lift
        self._objective: RatingName = one_of(objective, get_args(RatingName), "objective")
        self._fusion: Fusion = one_of(fusion, get_args(Fusion), "fusion")
        self._together = together
        self._key_value: StoreBytes = one_of(key_value, get_args(StoreBytes), "key_value")
        self._cache, self._by_request = to_cache(cache), by_request
        self._replicas, self._stash = replicas, stash
        self.problem: Problem | None = None
        self.outcome: Outcome | None = None
        self.rating: float | None = None
        self.best_plan: list[ShardingOption] = []

    def plan(self, module: nn.Module, sharders: list[ModuleSharder[nn.Module]]) -> ShardingPlan:
        """Plan a module's embedding tables.

        Parameters
        ----------
        module : nn.Module
            May be on the meta device.
        sharders : list of ModuleSharder

        Returns
        -------
        ShardingPlan
            One that TorchRec's own validators accept; empty if nothing can be sharded.

        Raises
        ------
        NoPlan
            TorchRec's ``PlannerError`` with the proof or the limit that was hit, and how much
            memory each tier lacks.
        """
        call = CallTime(self._settings.time_limit)
        with call.stage("enumeration"):
            problem = self.prepare(module, sharders)
        if problem is None:
            return ShardingPlan({})
        best = self._loaded(problem) or self._solved(problem, call)
        for callback in self._callbacks:
            best = callback(best)
        self.best_plan = best
        # called through its module, where TorchEasyRec puts a function of its own
        plan = planners.to_sharding_plan(best, self._topology)
        self.rating = torchrec_rating(self._objective, best, self._topology)
        self._log(plan, best, sharders, call.seconds())
        planners.validate_modules_inclusion_in_sharding_plan(plan, module, sharders)
        planners.validate_rank_assignment(plan, self._topology)
        planners.validate_compute_kernels(best)
        if self._by_request is not None and self.outcome is not None:
            self._by_request.put(self._question(problem), self.outcome, plan)
        return plan

    def prepare(
        self, module: nn.Module, sharders: list[ModuleSharder[nn.Module]]
    ) -> Problem | None:
        """Reserve, enumerate, lift and compile, without solving.

        Returns
        -------
        Problem or None
            Also stored as :attr:`problem`; None if there is nothing to shard.
        """
        self.problem, self.outcome, self.rating, self.best_plan = None, None, None, []
        reserved = self._storage_reservation.reserve(
            topology=self._topology,
            batch_size=self._batch_size,
            module=module,
            sharders=sharders,
            constraints=self._constraints,
        )
        space = self._enumerator.enumerate(module=module, sharders=sharders)
        if not space:
            return None
        if self._lift is not None:
            space = lift(space, self._lift, self._topology, self._enumerator, self._constraints)
        if self._key_value == "runtime":
            space = as_the_runtime(space, sharders)
        space = self._stash.counted(space)
        sync = None
        if self._replicas is not None:
            space, sync = self._replicas.averaged(space), self._replicas.sync
        self.problem = compile_problem(
            space, reserved, self._ddr, self._objective, self._fusion, self._together, sync
        )
        return self.problem

    def get_selected_options(self) -> list[ShardingOption]:
        """Options with ranks of the last plan, as TorchRec's executor reads them (from 1.9)."""
        return self.best_plan

    def get_search_space(self) -> list[ShardingOption] | None:
        """All options of the last plan, including those of ``lift``; None before the first."""
        return None if self.problem is None else self.problem.search_space

    def collective_plan(
        self,
        module: nn.Module,
        sharders: list[ModuleSharder[nn.Module]] | None = None,
        pg: dist.ProcessGroup | None = None,
    ) -> ShardingPlan:
        """Plan on rank 0 of a process group and send the plan to all its ranks.

        Unlike TorchRec's, a failure reaches every rank too, instead of leaving them waiting.

        Raises
        ------
        NoPlan
            On every rank, if rank 0 finds no plan.
        PlannerError
            On the other ranks, naming any other error of rank 0 (which rank 0 raises itself).
        """
        group = pg if pg is not None else dist.group.WORLD
        if group is None:
            raise BadInput(
                "collective_plan needs a process group; call init_process_group first or plan()"
            )
        chosen = sharders or get_default_sharders()
        plan: ShardingPlan = planned_by_rank_0(group, lambda: self.plan(module, chosen))
        return plan

    def _solved(self, problem: Problem, call: CallTime) -> list[ShardingOption]:
        question, settings = self._question(problem), replace(self._settings, call=call)
        known = None if self._by_request is None else self._by_request.get(question)
        solve_it = partial(self._run, problem.instance, settings)
        if self._fusion == "honoured":
            parts = problem.instance, problem.caches, settings, self._formulation, self._run
            solve_it = partial(as_it_runs, *parts)
        self.outcome = known or answered(self._cache, question, solve_it)
        if self.outcome.placement is None:
            limit = min(20.0, call.left())
            brief = replace(settings, time_limit=limit, hint=None, certificate=False)
            raise no_plan(problem, self.outcome, brief)
        self.problem = replace(problem, instance=question.asked(self.outcome))
        placement: Placement = self.outcome.placement
        mixed = clashing(problem.instance, problem.caches, placement)
        if mixed and self._fusion == "honoured":
            logger.warning(
                "cached tables of one kernel share a cache, at the mean of their load factors, and "
                "these have several: %s", listed(mixed, NAMED),
            )  # fmt: skip
        return problem.apply(placement)

    def _run(self, instance: Instance, settings: Settings) -> Outcome:
        return solve_balanced(instance, self._formulation, settings, self._stash)

    def _question(self, problem: Problem) -> Question:
        inputs = {"torchrec": metadata.version("torchrec")}
        if self._stash.balance:
            inputs["stash"] = repr(self._stash)
        ruled = partial(asked, problem)
        return Question(problem.instance, self._formulation, self._settings, inputs, ruled)

    def _loaded(self, problem: Problem) -> list[ShardingOption] | None:
        """A stored plan, if a loader has one for exactly this context that keeps all limits."""
        if self._plan_loader is None:
            return None
        stored = self._plan_loader.plan_context_hash()
        if stored is not None and stored != self.hash_planner_context_inputs_str():
            raise PlannerError(
                f"the stored plan was made for another context ({stored}); plan anew",
                PlannerErrorType.PLANNER_INPUT_CONTEXT_MISMATCH,
            )
        options = self._plan_loader.load()
        if options is None:
            return None
        plan: list[ShardingOption] = planners.extract_plan(
            search_space=problem.search_space, loaded_sharding_options=options
        )
        wrong = check(problem.instance, problem.placement_of(plan)).violations
        if wrong:
            raise PlannerError(
                f"the stored plan does not fit this cluster: {wrong[0]}; plan anew",
                PlannerErrorType.PLANNER_INPUT_CONTEXT_MISMATCH,
            )
        return plan

    def _log(
        self,
        plan: ShardingPlan,
        best: list[ShardingOption],
        sharders: list[ModuleSharder[nn.Module]],
        seconds: float,
    ) -> None:
        for stats in self._stats:
            stats.log(
                sharding_plan=plan,
                topology=self._topology,
                batch_size=self._batch_size,
                storage_reservation=self._storage_reservation,
                num_proposals=1,
                num_plans=1,
                run_time=seconds,
                best_plan=best,
                constraints=self._constraints,
                sharders=sharders,
                enumerator=self._enumerator,
                debug=self._debug,
                debug_stats=PlanDebugStats(
                    planner_type=type(self).__name__, timeout_seconds=self._timeout_seconds
                ),
            )
        if not self._stats or self.outcome is None:
            return
        blame = guilty(self._objective, best)
        logger.info("%s", summary(self.outcome, self.rating, self._objective, blame))
        above = above_estimate(best, self._topology, self._constraints, sharders)
        if above is not None:
            logger.warning("%s", above)
        for stats in self._stats:
            if hasattr(stats, "log_outcome"):
                stats.log_outcome(self.outcome, self._objective, blame)


def _refuse_parts(proposer: object, partitioner: object, performance_model: object) -> None:
    for name, part in (("proposer", proposer), ("partitioner", partitioner)):
        if part is not None:
            raise BadInput(
                f"MilpShardingPlanner chooses options and ranks itself and takes no {name} (found "
                f"{type(part).__name__})"
            )
    if performance_model is not None and type(performance_model) is not NoopPerfModel:
        raise BadInput(
            "MilpShardingPlanner minimises its objective and accepts no performance model but "
            f"NoopPerfModel, found {type(performance_model).__name__}"
        )
