"""The suite file: which scenarios to solve, under which limits, and which assertions must hold."""

from __future__ import annotations

import itertools
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    create_model,
    model_validator,
)

from formulations import registry
from formulations.errors import InstanceError
from milp_planner.errors import BadInput
from milp_planner.inputs.changes import root_of, type_of
from milp_planner.inputs.constraints import DistType, Mode, ShardingType
from milp_planner.inputs.files import build, read_document
from milp_planner.inputs.problems import choice, nearest, problem_at, unknown_field
from milp_planner.inputs.spec import Count, Percent, Spec, as_tuple
from milp_planner.inputs.table import Name
from milp_planner.pricing.profile import profile_names
from milp_planner.request import SECONDS
from milp_planner.request.values import FiledShare, Objective, Seconds, Seed, Work
from scenarios.batch.vary import growths
from scenarios.catalog import is_path


def _listed(value: Any) -> Any:
    """A list; a single value becomes a list of one."""
    return as_tuple(value) if isinstance(value, list | tuple) else (value,)


def _readable(text: str) -> str:
    """Text that :func:`scenarios.batch.vary.growths` reads."""
    growths(text)
    return text


_List = BeforeValidator(_listed)
Text = Annotated[str, Field(min_length=1)]
Alpha = Annotated[float, Field(ge=0, le=10)]
Positive = Annotated[float, Field(gt=0)]
Ratio = Annotated[float, Field(ge=1)]
Growth = Annotated[str, AfterValidator(_readable)]
Setting = bool | int | float | str


class _Own(Spec):
    """Axes that are not a field's path, or more than that."""

    model_config = ConfigDict(extra="allow")

    skew: Annotated[tuple[Alpha, ...], _List] = ()
    """Zipf exponent of the accesses, in place of the model's access statistics."""
    measured_skew: Annotated[tuple[Ratio, ...], _List] = ()
    """Row-wise lookups of the busiest rank over the mean, on average, on the cluster's ranks."""
    peak_skew: Annotated[tuple[Ratio, ...], _List] = ()
    """The same in the worst batch, which determines memory."""
    sequence_length: Annotated[tuple[Positive, ...], _List] = ()
    """Ids per sample of every sequence table that has more than one."""
    growth: Annotated[tuple[Percent, ...], _List] = ()
    """Percentage by which every table's rows grow, rounded up to whole rows."""
    table_growth: Annotated[tuple[Growth, ...], _List] = ()
    """Percentages by which the rows of single tables grow, such as ``items=50%,user_*=10%``; of
    several names that match a table, the first counts."""
    profile: Annotated[tuple[Name, ...], _List] = ()
    """Hardware profile that prices the cluster."""
    sharding: Annotated[tuple[Literal["any"] | ShardingType, ...], _List] = ()
    """The only sharding type allowed; ``any`` leaves the model's own limits."""
    other_sharding: Annotated[tuple[Literal["any"] | ShardingType, ...], _List] = ()
    """The only sharding type of the tables that ``only_tables`` leaves out."""
    mode: Annotated[tuple[Literal["any"] | Mode, ...], _List] = ()
    """The only mode allowed; ``any`` leaves the model's own limits."""
    dist_type: Annotated[tuple[Literal["any"] | DistType, ...], _List] = ()
    """The only routing rule of dynamicemb tables; ``any`` leaves the model's own."""
    cache_ratios: Annotated[tuple[Literal["tenths", "twentieths", "fiftieths"], ...], _List] = ()
    """Cache-ratio grid of all tables without one of their own."""
    sharding_group_size: Annotated[tuple[Literal["all", "auto"] | Count, ...], _List] = ()
    """Ranks in a sharding group; ``all``: the cluster is not divided."""

    @model_validator(mode="after")
    def _exist(self) -> Self:
        for number, name in enumerate(self.profile):
            _known(name, profile_names(), "profile", number)
        for name, value in (self.__pydantic_extra__ or {}).items():
            if "." not in name:
                raise problem_at(unknown_field(name, [*type(self).model_fields]), name)
            try:
                root_of(name)
            except BadInput as error:
                raise problem_at(str(error), name) from None
            self.__pydantic_extra__[name] = _listed(value)  # type: ignore[index]
        return self


AXES = (
    "hbm", "ddr", "machines", "ranks_per_machine", "batch", "skew", "measured_skew", "peak_skew",
    "sequence_length", "growth", "table_growth", "profile", "sharding", "other_sharding", "mode",
    "dist_type", "cache_ratios", "storage_model", "cost_model", "fusion", "exchange_dtype",
    "exchange_dtype_backward", "codec", "dedup", "dim", "outside_embeddings", "hbm_percent",
    "percent_covers", "min_headroom", "fragmentation", "dense_parameter_bytes", "dense_multiple",
    "activations", "kjt_multiple", "hbm_bytes", "ddr_percent", "ddr_bytes",
    "sharding_group_size", "layout", "strategy", "sync_interval",
)  # fmt: skip
"""Names of the axes, in the order in which they vary (the last one fastest); paths follow."""


def ordered(axis: str) -> int:
    """The place of an axis in that order."""
    return AXES.index(axis) if axis in AXES else len(AXES)


if TYPE_CHECKING:
    Sweep = _Own
else:
    Sweep = create_model("Sweep", __base__=_Own, **{
        name: (Annotated[tuple[type_of(name), ...], _List], ())
        for name in AXES
        if name not in _Own.model_fields
    })  # fmt: skip
"""Axes that change a model or a cluster: each a value or a list; all are combined. Those that name
a field are of its type (:mod:`milp_planner.inputs.changes`); any path with dots is an axis, too."""


class Where(Sweep):
    """The scenarios that an assertion is about: those that match every given field."""

    model: Annotated[tuple[Text, ...], _List] = ()
    """Models, named as in the suite."""
    cluster: Annotated[tuple[Text, ...], _List] = ()
    """Clusters, named as in the suite."""
    objective: Annotated[tuple[Text, ...], _List] = ()
    """Objectives."""
    formulation: Annotated[tuple[Text, ...], _List] = ()
    """Formulations."""
    seed: Annotated[tuple[int, ...], _List] = ()
    """Seeds."""


class Assertion(Spec):
    """A condition on some scenarios; the batch exits with 1 if it does not hold."""

    name: Text
    """Name of the assertion, for people."""
    where: Where = Where()
    """The scenarios that it is about; default: all."""
    fits: bool | None = None
    """true: a plan was found; false: it is proved that there is none."""
    optimal: bool = False
    """Whether the plan must be proved optimal."""
    hbm_headroom: Percent | None = None
    """Least percentage of usable HBM that the plan leaves free on every rank."""
    ddr_headroom: Percent | None = None
    """Least percentage of usable DDR that the plan leaves free on every machine."""
    hbm_used: Annotated[tuple[Percent, Percent], BeforeValidator(as_tuple)] | None = None
    """Least and most percentage of the fullest rank's HBM in use, including what lies outside the
    embeddings."""
    modes: dict[Name, Mode] = Field(default_factory=dict)
    """Mode that each of the tables named must have."""
    max_gap: FiledShare | None = None
    """Largest gap between plan and bound, a share of the objective such as 0.5% or 0.005."""
    max_milliseconds: Annotated[float, Field(gt=0)] | None = None
    """Largest objective."""

    @model_validator(mode="after")
    def _says_something(self) -> Assertion:
        values = {name: getattr(self, name) for name in CHECKS}
        said = {n for n, v in values.items() if v is not None and v is not False and v != {}}
        if self.fits is False and said:
            raise problem_at(f"false contradicts {sorted(said)[0]}", "fits")
        if self.fits is None and not said:
            raise ValueError(f"asserts nothing; allowed: fits, {', '.join(CHECKS)}")
        return self


CHECKS = (
    "optimal", "hbm_headroom", "ddr_headroom", "hbm_used", "modes", "max_gap", "max_milliseconds"
)  # fmt: skip
"""Conditions on a plan, besides its existence."""


class Suite(Spec):
    """(models × clusters, and pairs) × sweep × objectives × formulations × seeds."""

    name: Name
    """Name of the suite."""
    description: str = ""
    """What the suite is for."""
    models: Annotated[tuple[Text, ...], _List] = ()
    """Shipped names, ``generated:…``, or paths of YAML files next to the suite."""
    clusters: Annotated[tuple[Text, ...], _List] = ()
    """Shipped names, or paths of YAML files next to the suite."""
    pairs: dict[Text, Annotated[tuple[Text, ...], _List, Field(min_length=1)]] = Field(
        default_factory=dict
    )
    """Further pairs of a model and clusters, besides the combinations of the two lists."""
    sweep: Sweep = Sweep()
    """Axes that change models and clusters."""
    only_tables: Annotated[tuple[Name, ...], _List] = ()
    """The tables whose skew, sharding and mode the axes change; empty: all."""
    hot_ids: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """With skew: this many of the most popular rows have the smallest ids, in order."""
    objectives: Annotated[tuple[Objective, ...], _List, Field(min_length=1)] = ("step_time",)
    """What is minimised."""
    formulations: Annotated[tuple[Text, ...], _List, Field(min_length=1)] = ("auto",)
    """The formulations that solve each scenario."""
    seeds: Annotated[tuple[Seed, ...], _List, Field(min_length=1)] = (0,)
    """Seeds of the solvers."""
    time_limit: Seconds = SECONDS
    """Seconds of wall clock for each scenario, pricing included."""
    work_limit: Work | None = None
    """Deterministic work for each solve."""
    gap: FiledShare = 0.0
    """Certified gap at which each solve stops, a share of the objective such as 0.5% or 0.005; 0:
    only at a proof or a limit."""
    polish: bool = False
    """Whether remaining time is used to lower total and use after the objective."""
    certificate: bool = True
    """Whether every solve also makes a certificate, within its limits."""
    settings: dict[str, Annotated[tuple[Setting, ...], _List, Field(min_length=1)]] = Field(
        default_factory=dict
    )
    """Settings of formulations, as in ``dp.variant: first``; lists are combined."""
    assertions: Annotated[tuple[Assertion, ...], BeforeValidator(as_tuple)] = ()
    """What must hold."""

    @model_validator(mode="after")
    def _has_scenarios(self) -> Suite:
        for name, other in (("models", self.clusters), ("clusters", self.models)):
            if not getattr(self, name) and (other or not self.pairs):
                empty = name in self.model_fields_set
                found = "found an empty list; allowed: at least one name" if empty else "is missing"
                raise problem_at(found, name)
        return self

    @property
    def places(self) -> tuple[tuple[str, str], ...]:
        """All pairs of a model and a cluster."""
        own = ((model, each) for model, clusters in self.pairs.items() for each in clusters)
        return (*itertools.product(self.models, self.clusters), *own)

    @model_validator(mode="after")
    def _names_exist(self) -> Suite:
        for number, name in enumerate(self.formulations):
            if name in registry.GONE:
                found = f"{name!r} is gone: {registry.GONE[name]}"
                raise problem_at(found, "formulations", number)
            _known(name, registry.FORMULATIONS, "formulations", number)
        for key, values in self.settings.items():
            owner, dot, option = key.partition(".")
            if not dot or owner not in registry.FORMULATIONS:
                raise problem_at("allowed: FORMULATION.SETTING, as in dp.variant", "settings", key)
            for value in values:
                try:
                    registry.get(owner).check({option: value})
                except InstanceError as error:
                    raise problem_at(str(error), "settings", key) from None
        return self


def _known(name: str, allowed: Any, *path: str | int) -> None:
    if name not in allowed:
        raise problem_at(f"found {name!r}; {choice(name, allowed)}", *path)


def load_suite(path: str | Path) -> Suite:
    """Read a suite file.

    Raises
    ------
    BadInput
        One sentence with file and line, field, what was found and what is allowed.
    """
    return build(Suite, read_document(Path(path)))


def suites() -> dict[str, Path]:
    """The shipped suites by name."""
    root = Path(str(files("scenarios"))) / "suites"
    return {path.stem: path for path in sorted(root.glob("*.yaml"))}


def find_suite(name: str) -> tuple[Suite, Path]:
    """A suite from a bare name or a path, and the folder that its relative paths start from.

    Raises
    ------
    BadInput
        When there is no such suite (the message has the nearest name), or the file is wrong.
    """
    shipped = suites()
    path = shipped.get(name, Path(name))
    if name not in shipped and not path.suffix and not is_path(name):
        close = nearest(name, shipped)
        hint = f"; did you mean {close}?" if close else ""
        raise BadInput(
            f"no suite is called {name!r} and there is no such file; "
            f"shipped suites: {', '.join(shipped)}{hint}"
        )
    return load_suite(path), path.resolve().parent
