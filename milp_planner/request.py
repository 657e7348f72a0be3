"""What may be asked of a plan, declared once: fields, units, help, and what goes with what.

:func:`milp_planner.plan`, the command line, the service, suites and the cache's key are made from
:class:`PlanRequest`. A field's text is its help; :class:`Option` says how a command line spells it.
"""

from __future__ import annotations

import json
import math
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from numbers import Integral, Real
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from milp_planner.errors import BadInput
from milp_planner.inputs.problems import problem_at, problems_of, show
from milp_planner.inputs.quantities import parse_bytes

if TYPE_CHECKING:
    from formulations.settings import News, Settings
    from milp_planner.inputs import Cluster, Model

SECONDS = 60.0
"""Default time limit."""
GIVEN_UP = 0.005
"""Share of the objective that a re-plan may give up for bytes that stay, unless told otherwise."""
CACHE_VARIABLE = "MILP_PLANNER_CACHE"
"""The environment variable that names the cache's folder if the request does not."""


@dataclass(frozen=True)
class Option:
    """How a command line spells a field: names and value, such as ``--output -o FILE``."""

    spelling: str

    @property
    def name(self) -> str:
        """The first name."""
        return self.spelling.split()[0]


@dataclass(frozen=True)
class Moves:
    """Limits on what may move from the earlier plan, and what fewer moves are worth."""

    tables: int | None = None
    bytes: int | None = None
    share: float | None = None
    """Of the bytes that the earlier plan holds; None, for all three: no limit."""
    within: float = GIVEN_UP
    """Share of the objective that may be given up for bytes that stay."""

    def __post_init__(self) -> None:
        counts = [value for value in (self.tables, self.bytes) if value is not None]
        if min(counts, default=0) < 0 or not 0 <= (self.share or 0.0) <= 1:
            raise BadInput(
                f"max_moved: found {self}; allowed: a number of tables or bytes from 0, or a share "
                "of the bytes from 0 to 1"
            )
        if not 0 <= self.within < 1:
            raise BadInput(
                f"moves within: found {self.within}; allowed: a share of the objective from 0, "
                "below 1"
            )


_NUMBER = re.compile(r"[-+]?[0-9]{1,40}(\.[0-9]*)?([eE][-+]?[0-9]{1,3})?")


def _number(value: Any, info: ValidationInfo) -> Any:
    """NumPy's numbers are plain ones, and so is text that people write."""
    found = _NUMBER.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is not None and info.context is True:
        return float(value) if found[1] or found[2] else int(value)
    if isinstance(value, bool) or not isinstance(value, Real):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


def _positive(value: Any, info: ValidationInfo) -> Any:
    found = _number(value, info)
    if type(found) not in (int, float) or not 0 < found < math.inf:
        raise ValueError(f"found {show(value)}; allowed: a positive number")
    return float(found)


def _whole(least: int, most: int) -> BeforeValidator:
    """A whole number within limits."""

    def parse(value: Any, info: ValidationInfo) -> Any:
        found = _number(value, info)
        if type(found) is not int or not least <= found <= most:
            raise ValueError(f"found {show(value)}; allowed: a whole number, {least} to {most}")
        return found

    return BeforeValidator(parse)


SURELY_A_SHARE = 0.01
"""Files and command lines write a share from here on with its sign, as 0.5 could mean 0.5%."""


def _share(value: Any, info: ValidationInfo) -> Any:
    """``0.5%`` or 0.005, from a program or as a person has written it."""
    return _filed_share(value) if info.context is True else _as_share(value, _number(value, info))


def _filed_share(value: Any) -> Any:
    """The same in a file, where 0.5 may be meant as a percentage, and is asked about."""
    plain = isinstance(value, Real) and not isinstance(value, bool)
    plain = plain or (isinstance(value, str) and _NUMBER.fullmatch(value) is not None)
    number = float(value) if plain else value
    if type(number) in (int, float) and 100 > number >= SURELY_A_SHARE:
        also = f", or {100 * number:g}%" if number < 1 else ""
        raise ValueError(
            f"found {show(value)}; allowed: a share such as 0.5% or 0.005; did you mean "
            f"{number:g}%{also}?"
        )
    return _as_share(value, number)


def _as_share(value: Any, number: Any) -> float:
    if isinstance(value, str) and re.fullmatch(r"\s*\d+(\.\d*)?\s*%\s*", value):
        number = float(value.strip().rstrip("%")) / 100
    if type(number) not in (int, float) or not 0 <= number < 1:
        raise ValueError(f"found {show(value)}; allowed: a share below 1, such as 0.5% or 0.005")
    return float(number)


def _moves(value: Any, info: ValidationInfo) -> Any:
    """20 tables, ``10GB``, or ``5%`` of the bytes."""
    value = _number(value, info)
    if value is None or isinstance(value, Moves):
        return value
    try:
        if isinstance(value, str):
            if value.strip().endswith("%"):
                return Moves(share=float(value.strip()[:-1]) / 100)
            return Moves(bytes=parse_bytes(value.strip()))
        if isinstance(value, int) and not isinstance(value, bool):
            return Moves(tables=value)
    except (ValueError, BadInput):
        pass
    raise ValueError(
        f"found {show(value)}; allowed: a number of tables such as 20, a size such as 10GB, or a "
        "percentage such as 5%"
    )


def _pairs(value: Any) -> Any:
    """``["hbm_percent=10", "solver=cbc", "bins=[1,2]"]`` as a mapping."""
    if not isinstance(value, list | tuple):
        return value
    found: dict[str, Any] = {}
    for pair in value:
        name, equals, text = (part.strip() for part in str(pair).partition("="))
        if not (name and equals and text):
            raise ValueError(f"found {pair!r}; needs FIELD=VALUE, such as hbm_percent=10")
        if name in found:
            raise ValueError(f"found {pair!r}; {name} is given twice")
        found[name] = _plain(text)
    return found


def _changes(value: Any) -> Any:
    """``["cluster.hbm=96GB"]`` as a mapping of paths to text."""
    if not isinstance(value, list | tuple):
        return value
    from milp_planner.inputs.changes import parse_change

    found = [parse_change(str(each)) for each in value]
    if len(dict(found)) < len(found):
        raise ValueError(f"found {show(value)}; a path is given twice")
    return dict(found)


def _plain(text: str) -> Any:
    """Text as YAML reads it, or a list in JSON."""
    from milp_planner.inputs.strict_yaml import plain_scalar

    return json.loads(text) if text[:1] in ("[", "{", '"') else plain_scalar(text, in_yaml=False)


def _ranks(value: Any) -> Any:
    """``13,40-47``, or a collection of ranks."""
    if not isinstance(value, str):
        return tuple(int(rank) for rank in value)
    from milp_planner.start.rows import parse_ranks

    try:
        found = parse_ranks(value, "ranks")
    except BadInput:
        found = None
    if found is None:
        raise ValueError(f"found {value!r}; needs ranks such as 13,40-47")
    return found


def _price(value: Any) -> Any:
    """``1ms/GB``, or picoseconds a byte."""
    if not isinstance(value, str):
        return Fraction(value)
    from milp_planner.plans.moving import parse_price

    try:
        return parse_price(value)
    except BadInput as error:
        raise ValueError(str(error).partition(": ")[2]) from None


_IS_SHARE = WithJsonSchema(
    {
        "anyOf": [
            {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
            {"type": "string", "pattern": r"^\d+(\.\d*)?%$"},
        ]
    }
)
Share = Annotated[float, BeforeValidator(_share), Field(ge=0, lt=1), _IS_SHARE]
"""A share: 0.5% or 0.005."""
FiledShare = Annotated[
    float, BeforeValidator(_filed_share), Field(ge=0, lt=1), _IS_SHARE,
    PlainSerializer(lambda share: f"{100 * share:.12g}%", return_type=str),
]  # fmt: skip
"""The same in a file, with its sign from 1% on, as 0.5 could mean 0.5%."""
Seconds = Annotated[float, BeforeValidator(_positive), Field(gt=0)]
Work = Annotated[float, BeforeValidator(_positive), Field(gt=0)]
Seed = Annotated[int, _whole(0, 2**31 - 1), Field(ge=0, le=2**31 - 1)]
Workers = Annotated[int, _whole(1, 1024), Field(ge=1, le=1024)]
Objective = Literal["step_time", "pipelined_step", "busiest_rank", "total"]
Pairs = Annotated[dict[str, Any], BeforeValidator(_pairs)]


class Request(BaseModel):
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
    options: Annotated[Pairs, Option("--set KEY=VALUE")] = Field(default_factory=dict)
    """Setting of the formulation, such as solver=cbc; may be repeated."""

    @model_validator(mode="after")
    def _known(self) -> Self:
        if "formulation" in self.model_fields_set:
            from formulations import registry

            registry.get(self.formulation)
        return self

    def settings(self, base: Settings | None = None, **runtime: Any) -> Settings:
        """For the solvers: ``base`` where nothing else is asked, and runtime objects."""
        from formulations.settings import Settings, available_cores

        if base is None:
            seconds = SECONDS if self.work_limit is None else None
            base = Settings(time_limit=seconds, workers=available_cores())
        named = ("time_limit", "work_limit", "gap", "seed", "workers", "options")
        asked = {n: v for n, v in self.given.items() if n in named and v is not None}
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
    reserve: Annotated[Pairs, Option("--reserve FIELD=VALUE")] = Field(default_factory=dict)
    """Override a field of the cluster's reservations, such as hbm_percent=10 or ddr_bytes=64GB; may
    be repeated."""
    two_d: Annotated[Pairs, Option("--two-d FIELD=VALUE")] = Field(default_factory=dict)
    """Field of the cluster's division into sharding groups, such as sharding_group_size=16 or
    sync_interval=8; may be repeated. Fields that are auto, the default of all, are chosen with the
    plan."""

    change: Annotated[
        dict[str, Any], BeforeValidator(_changes), Option("--change PATH=VALUE")
    ] = Field(default_factory=dict)  # fmt: skip
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
    today: Annotated[Any, Option("--today PLAN")] = None
    """The plan you run today, in any form that audit accepts. The search starts from it, and of
    otherwise equal plans the one that moves less is chosen."""
    before: Annotated[Any, Option("--from PLAN")] = None
    """A plan.json to start the search from and to count moves from. Its tables, rows, ranks and
    options may differ from those of the inputs; the part that still applies is used."""
    lost: Annotated[
        tuple[int, ...], BeforeValidator(_ranks), Option("--lost RANKS")
    ] = ()  # fmt: skip
    """Ranks of the plan to start from that are gone, such as 13,40-47."""
    max_moved: Annotated[
        Moves | None, BeforeValidator(_moves), Option("--max-moved LIMIT"),
        WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}]}),
    ] = None  # fmt: skip
    """How much may move from the plan to start from: a number of tables, a size such as 10GB, or a
    share of the bytes such as 5%."""
    moves_within: Annotated[Share | None, Option("--moves-within SHARE")] = None
    """Share of the objective that may be given up for bytes that stay where they are in the plan to
    start from; default: 0.5%, or nothing with goals or a price on moves."""
    move_cost: Annotated[
        Fraction | None, BeforeValidator(_price), Option("--move-cost PRICE")
    ] = None  # fmt: skip
    """Price of moving from the plan to start from, such as 1ms/GB; the plan minimises the sum of
    objective and price."""
    executable: Annotated[Literal["torchrec"] | None, Option("--executable RUNTIME")] = None
    """Only moves that this runtime executes while training runs; export --to torchrec-reshard then
    has its calls."""
    cache: Annotated[Any, Option("--cache DIR")] = None
    """Folder in which plans are cached. A solve of the same inputs takes its plan from there if it
    is verified and certified to the gap asked for (without one: certified optimal); default: on a
    command line, the variable MILP_PLANNER_CACHE, or no cache."""

    diagnose: bool = True
    """Whether a proof that nothing fits is followed by what is short and what would help."""

    @model_validator(mode="after")
    def _go_together(self, info: ValidationInfo) -> Self:
        def name(field: str) -> str:
            return self.spelled(field) if info.context else field

        asked = {n for n, v in self.given.items() if v is not None and v != ()}
        for each in ("lost", "max_moved", "moves_within", "move_cost", "executable"):
            if each in asked and self.before is None:
                raise problem_at(f"goes with {name('before')}, the plan to start from", each)
        for one, other in (("today", "before"), ("trainer", "move_cost")):
            if {one, other} <= asked:
                raise problem_at(f"does not go with {name(one)}; give only one of them", other)
        return self

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
    """``on_plan(plan, bound)``: a better plan, or a better bound."""
    progress: bool | None = None
    """Whether to write a line of progress; None: in notebooks."""
    on_improvement: Callable[[News], None] | None = None
    """Every better objective or bound, from any thread."""
    on_start: Callable[..., None] | None = None
    """Pricing is done and solving begins."""
    stop: threading.Event | None = None
    """Set by the caller to end the search."""
