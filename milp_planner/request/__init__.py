"""What may be asked of a plan, declared once: fields, units, help, and what goes with what.

:func:`milp_planner.plan`, the command line, the service, suites and the cache's key are made from
:class:`PlanRequest`. A field's text is its help; :class:`Option` says how a command line spells it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from milp_planner.errors import BadInput
from milp_planner.inputs.problems import problem_at, problems_of
from milp_planner.request.values import (
    Changes,
    MostMoved,
    Moves,
    Objective,
    Options,
    Pairs,
    Price,
    Ranks,
    Seconds,
    Seed,
    Share,
    Work,
    Workers,
)

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass

    from formulations.settings import News, Settings
    from milp_planner.inputs import Cluster, Model
else:
    ModelMetaclass = type(BaseModel)

SECONDS = 60.0
"""Default time limit."""
CACHE_VARIABLE = "MILP_PLANNER_CACHE"
"""The environment variable that names the cache's folder if the request does not."""


@dataclass(frozen=True)
class Option:
    """How a command line spells a field: names and value, such as ``--output -o FILE``."""

    spelling: str
    several: bool = False
    """Whether it may be repeated."""

    @property
    def name(self) -> str:
        """The first name."""
        return self.spelling.split()[0]


class _Sentences(ModelMetaclass):
    """Requests whose constructor raises BadInput, too."""

    def __call__(cls, **asked: Any) -> Any:
        try:
            return super().__call__(**asked)
        except ValidationError as error:
            raise BadInput.of(problems_of(cls, error)) from None  # type: ignore[arg-type]


class Request(BaseModel, metaclass=_Sentences):
    """Fields of a request: frozen, strict, none but those declared."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True,
        arbitrary_types_allowed=True, use_attribute_docstrings=True, protected_namespaces=(),
    )  # fmt: skip

    @classmethod
    def of(cls, data: Mapping[str, Any], where: str = "", written: bool = False) -> Self:
        """Check values that a program gave, or text that a person has ``written``; None stands for
        what is not asked.

        Raises
        ------
        BadInput
            One sentence: field (or option), what was found, what is allowed.
        """
        try:
            asked = {name: value for name, value in data.items() if value is not None}
            return cls.model_validate(asked, context=True if written else None)
        except ValidationError as error:
            problems = problems_of(cls, error, where)
        if written:
            problems = [replace(each, field=cls.spelled(each.field)) for each in problems]
        raise BadInput.of(problems)

    @classmethod
    def spelled(cls, path: str) -> str:
        """A field as a command line writes it."""
        name = re.split(r"[.\[]", path)[0]
        options = cls.model_fields[name].metadata if name in cls.model_fields else []
        return next((each.name for each in options if isinstance(each, Option)), path)

    def __hash__(self) -> int:
        return hash(repr(self))

    @property
    def given(self) -> dict[str, Any]:
        """The fields that were asked for, without those left at their default."""
        return {name: getattr(self, name) for name in sorted(self.model_fields_set)}


_NONE: Any = Field(default_factory=dict)


class Limits(Request):
    """How, how long and how hard to search: what every command that solves shares."""

    formulation: Annotated[str, Option("--formulation -f NAME")] = "auto"
    """How to solve (milp-planner list formulations); default: auto, which proves what it can."""
    time_limit: Annotated[Seconds | None, Option("--time-limit SECONDS")] = None
    """Wall-clock limit for pricing, search, proof and everything after them, without reading,
    writing, and compiling the search (once per machine, and announced); default: 60, or none with a
    work limit."""
    work_limit: Annotated[Work | None, Option("--work-limit UNITS")] = None
    """Limit on deterministic work units; with one worker, runs repeat exactly."""
    gap: Annotated[Share, Option("--gap SHARE")] = 0.0
    """Stop as soon as the plan is certified to be within this share of the optimum, such as 0.5% or
    0.005; default: stop only at a proof or a limit."""
    seed: Annotated[Seed, Option("--seed N")] = 0
    """Random seed; default: 0."""
    workers: Annotated[Workers | None, Option("--workers N")] = None
    """Solver threads, no more than cores; default: all cores. For auto, two are worth having: one
    makes plans, one raises the bound as well; more only make plans from other seeds."""
    options: Annotated[Options, Option("--set KEY=VALUE", several=True)] = _NONE
    """Setting of the formulation, such as solver=cbc; may be repeated."""

    @model_validator(mode="after")
    def _known(self) -> Self:
        if "formulation" in self.model_fields_set:
            from formulations import registry

            registry.get(self.formulation)
        return self

    def settings(self, base: Settings | None = None, **runtime: Any) -> Settings:
        """For the solvers: ``base`` where nothing else is asked, and runtime objects.

        BadInput for a base of another type, or with a limit, number of workers, seed or gap that a
        request could not have.
        """
        from formulations.settings import Settings

        named = ("time_limit", "work_limit", "gap", "seed", "workers")
        if base is None:
            base = Settings(time_limit=SECONDS if self.work_limit is None else None)
        elif not isinstance(base, Settings):
            raise BadInput(
                f"settings: found a {type(base).__name__}; allowed: formulations.Settings, such as "
                "Settings(time_limit=60, workers=8)"
            )
        else:
            base = replace(base, **Limits.of({n: getattr(base, n) for n in named}).given)
        asked = {n: v for n, v in self.given.items() if n in (*named, "options")}
        return replace(base, **asked, **runtime)


class Aims(Limits):
    """What to minimise, and then; how long to search."""

    objective: Annotated[Objective, Option("--objective NAME")] = "step_time"
    """What to minimise. step_time (the default): the embedding part of a step, with barriers
    between phases and no overlap; pipelined_step: the time that it adds to the dense part, with
    lookups and updates as one phase; busiest_rank: the largest sum on any one rank; total: the sum
    over all ranks."""
    goals: Annotated[str | None, Option("--goals NAMES")] = None
    """What to improve after the objective, most important first: host_memory, even_memory, shards,
    total, moves. Example: moves,even_memory:80% (fuller ranks are made more even until none is
    above 80%). To give up to 0.1% of the objective for them, begin with step_time:0.1%. Default:
    host_memory, even_memory:50%, shards, total, moves, with a small loss of the objective only
    where that frees much memory on a nearly full rank."""

    @model_validator(mode="after")
    def _goals_known(self) -> Self:
        if self.goals is not None:
            from formulations.settings import parse_goals

            parse_goals(self.goals, self.objective)
        return self

    def settings(self, base: Settings | None = None, **runtime: Any) -> Settings:
        """As :meth:`Limits.settings`, with the goals."""
        from formulations.settings import parse_goals

        if self.goals is not None:
            runtime["goals"] = parse_goals(self.goals, self.objective)
        return super().settings(base, **runtime)


class Inputs(Request):
    """A model, a cluster, and changes of it."""

    model: Annotated[Any, Option("MODEL")]
    """Model YAML file, or the name of a shipped model (milp-planner list models); - reads standard
    input, as for every file."""
    cluster: Annotated[Any, Option("CLUSTER")]
    """Cluster YAML file, or the name of a shipped cluster (milp-planner list clusters)."""
    profile: Annotated[str | None, Option("--profile NAME")] = None
    """Hardware profile to price the plan with: a shipped one (milp-planner list profiles) or a
    .yaml file such as calibrate writes; default: the cluster's profile."""
    reserve: Annotated[Pairs, Option("--reserve FIELD=VALUE", several=True)] = Field(
        default_factory=dict
    )
    """Override a field of the cluster's reservations, such as hbm_percent=10 or ddr_bytes=64GB; may
    be repeated."""
    two_d: Annotated[Pairs, Option("--two-d FIELD=VALUE", several=True)] = Field(
        default_factory=dict
    )
    """Field of the cluster's division into sharding groups, such as sharding_group_size=16 or
    sync_interval=8; may be repeated. Fields that are auto, the default of all, are chosen with the
    plan."""

    change: Annotated[Changes, Option("--change PATH=VALUE", several=True)] = Field(
        default_factory=dict
    )
    """Change a field of the model or the cluster by its path, such as tables.user_*.rows=×1.2,
    cluster.hbm=+10GB or workload.batch_per_rank=512 (docs/inputs.md); may be repeated."""

    def changed(self, model: Model, cluster: Cluster) -> tuple[Model, Cluster]:
        """Both inputs with the changes, profile, reservations and division that are asked for."""
        from milp_planner.inputs.changes import changed, changed_cluster

        stated = {
            "profile": {"cluster.profile": self.profile} if self.profile else {},
            "reserve": {f"cluster.reservations.{n}": v for n, v in self.reserve.items()},
            "two_d": {f"cluster.two_d.{n}": v for n, v in self.two_d.items()},
        }
        for name, changes in stated.items():
            where = self.spelled(name)
            try:
                cluster = changed_cluster(cluster, changes, where)
            except BadInput as error:
                said = str(error)
                raise BadInput(said if said.startswith(where) else f"{where}: {said}") from None
        return changed(model, cluster, self.change)


class PlanRequest(Aims, Inputs):
    """One plan: inputs, what to minimise, where to start, how long to search."""

    trainer: Annotated[str | None, Option("--for TRAINER")] = None
    """Plan what this trainer can be made to run: dlrmv4, tzrec or dynamicemb. Its own planner is
    replayed; bound and certificate are those of all plans."""
    start: Annotated[Any, Option("--start PLAN")] = None
    """The plan to start the search from and to count moves from, in any form that audit accepts.
    Tables, rows, ranks and options of a plan.json may differ from those of the inputs: the part
    that still applies is used. Tables that the plan lacks are new."""
    lost: Annotated[Ranks, Option("--lost RANKS")] = ()
    """Ranks of the plan to start from that are gone, such as 13,40-47."""
    max_moved: Annotated[MostMoved | None, Option("--max-moved LIMIT")] = None
    """How much may move from the plan to start from: a number of tables, a size such as 10GB, or a
    share of the bytes such as 5%."""
    moves_within: Annotated[Share | None, Option("--moves-within SHARE")] = None
    """Share of the objective that may be given up for bytes that stay where they are in the plan to
    start from; default: 0.5%, or nothing with goals or a price on moves."""
    move_cost: Annotated[Price | None, Option("--move-cost PRICE")] = None
    """Price of moving from the plan to start from, such as 1ms/GB; the plan minimises the sum of
    objective and price."""
    executable: Annotated[Literal["torchrec"] | None, Option("--executable RUNTIME")] = None
    """Only moves that this runtime executes while training runs; export --to torchrec-reshard then
    has its calls."""
    cache: Annotated[Any, Option("--cache DIR")] = None
    """Folder in which plans are cached. A solve of the same inputs takes its plan from there if it
    is verified and certified to the gap asked for (without one: certified optimal); default: on a
    command line, the variable MILP_PLANNER_CACHE, or no cache."""

    FORMER: ClassVar[dict[str, str]] = {"before": "--from PLAN", "today": "--today PLAN"}
    """Former names of ``start``, and how a command line spells them. With ``today``, nothing is
    given up for bytes that stay, unless a share is stated."""

    diagnose: bool = True
    """Whether a proof that nothing fits is followed by what is short and what would help."""

    @model_validator(mode="after")
    def _go_together(self, info: ValidationInfo) -> Self:
        def name(field: str) -> str:
            return self.spelled(field) if info.context else field

        asked = {n for n, v in self.given.items() if v is not None and v != ()}
        for each in ("lost", "max_moved", "moves_within", "move_cost", "executable"):
            if each in asked and self.start is None:
                raise problem_at(f"goes with {name('start')}, the plan to start from", each)
        if {"trainer", "move_cost"} <= asked:
            what = name("trainer")
            raise problem_at(f"does not go with {what}; give only one of them", "move_cost")
        return self

    @classmethod
    def of(cls, data: Mapping[str, Any], where: str = "", written: bool = False) -> Self:
        """As for every request; former names are read as well."""
        asked = {name: value for name, value in data.items() if value is not None}
        given = [name for name in ("start", *cls.FORMER) if name in asked]
        if len(given) > 1:
            spelled = {"start": cls.spelled("start"), **cls.FORMER} if written else {}
            one, other = (spelled.get(name, name).split()[0] for name in given[:2])
            raise BadInput(f"{other}: does not go with {one}; give only one of them")
        if given:
            asked["start"] = asked.pop(given[0])
        if given == ["today"] and not {"moves_within", "goals"} & set(asked):
            asked["moves_within"] = 0.0
        return super().of(asked, where, written)

    @property
    def moves(self) -> Moves:
        """The limits on moves."""
        most = self.max_moved or Moves()
        return most if self.moves_within is None else replace(most, within=self.moves_within)


KEYED = ("seed", "goals", "options")
"""Fields that decide a plan of given inputs, formulation and start, for the cache's key. Limits and
``gap`` say only when an answer is good enough."""


@dataclass(frozen=True)
class Callbacks:
    """How a caller and a plan talk while it is made; none of it changes what is asked."""

    on_plan: Callable[..., object] | None = None
    """``on_plan(plan, bound)`` is called for every better plan and for every better bound on the
    best one (in picoseconds; None while there is none). Updates within a tenth of a second are
    combined, and only the newest is reported. The plan has passed the solver-free check. The call
    happens in the caller's thread, so the solver does not wait for it. If it returns False, or
    raises ``KeyboardInterrupt``, the search ends and the best plan is returned, as after Ctrl-C;
    any other exception ends the search and is raised here."""
    progress: bool | None = None
    """Whether to write a line of progress to stderr: seconds, plan, bound, gap, certified gap.
    Default: in notebooks only."""
    on_improvement: Callable[[News], None] | None = None
    """Called with a :class:`formulations.settings.TracePoint` for every better plan or bound, from
    any thread."""
    on_start: Callable[..., None] | None = None
    """Called with the formulation's name when pricing is done and solving begins."""
    stop: threading.Event | None = None
    """Set by the caller to end the search."""
