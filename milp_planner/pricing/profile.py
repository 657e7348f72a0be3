"""A hardware profile: every measured or published number a price needs, each with its origin."""

from __future__ import annotations

from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from milp_planner.errors import CHECK, BadInput
from milp_planner.inputs.access import Share
from milp_planner.inputs.files import build, read_document
from milp_planner.inputs.problems import nearest
from milp_planner.inputs.spec import Bandwidth, Many, Pair, Some, Spec
from milp_planner.inputs.strict_yaml import neighbour, read_yaml
from milp_planner.pricing.collectives import Collectives
from milp_planner.pricing.sources import ASSUMED, COLLECTIVES, DATA_SHEET, Operator, Source
from milp_planner.pricing.step_model import StepModel

Positive = Annotated[float, Field(gt=0)]
Spreadable = Literal[
    "hbm", "ddr", "host_link", "launch_seconds", "caching", "hybrid", "uvm_caching", "host_only"
]
Point = Pair[Annotated[float, Field(ge=0)], Share]


class EfficiencyCurve(Spec):
    """Share of HBM's bandwidth that a tiered table reaches, x_eff, over a variable.

    Over the hit ratio this is the law of the tiers: the time of a lookup at hit ratio 1 (its path,
    which every lookup pays) plus the time that misses add, up to the last tier's time at hit ratio
    0.
    """

    over: Literal["cache_ratio", "hit_ratio", "batch_cover"] = "cache_ratio"
    """What the first number of a point is: the cache ratio x, the share of lookups served from
    HBM, or the rows of the HBM tier divided by the distinct rows one step touches."""
    points: Some[Point]
    """Pairs (argument, x_eff) by rising argument; constant outside. Between points, a curve over
    the hit ratio is linear in time (hits and misses add up), other curves in x_eff."""
    given_statistics: Literal["same_curve", "hit_ratio"] = "same_curve"
    """For tables with access statistics: the same curve, or x_eff = the hit ratio itself (as in
    TorchRec)."""
    origin: str
    """Where the points come from."""

    @model_validator(mode="after")
    def _rising(self) -> EfficiencyCurve:
        arguments = [point[0] for point in self.points]
        if any(b <= a for a, b in pairwise(arguments)):
            raise ValueError(
                "points must be sorted by rising argument; allowed: every argument once"
            )
        return self

    @property
    def follows_hits(self) -> bool:
        """Whether access statistics enter x_eff through the hit ratio."""
        return "hit_ratio" in (self.over, self.given_statistics)


class Kernel(Spec):
    """Factors of the lookup kernels; the defaults are TorchRec's."""

    dense_share: Positive = 0.5
    """Share of the memory bandwidth that the dense (data-parallel) kernel reaches."""
    host_divisor: Positive = 10.0
    """Divides the bandwidth of TorchRec's kernels that read host memory (UVM, UVM caching)."""
    dynamicemb_divisor: Positive = 10.0
    """Divides the bandwidth of every dynamicemb lookup."""
    dynamicemb_state_multiple: Annotated[float, Field(ge=0)] = 0.0
    """Further backward time of a dynamicemb table for each copy of a row that its optimizer keeps
    as state (Adam: 2), over that of a table without state."""
    backward_multiple: Positive = 2.0
    """Backward compute time over forward compute time."""
    weighted_multiple: Positive = 1.1
    """Further backward time of a weighted table, over forward compute time."""
    batched_copy_multiple: Positive = 2.455
    """Passes over device memory that the copy after an all-gather costs."""
    dense_update_multiple: Positive = 9.22
    """Passes over the table that a data-parallel gradient and optimizer step cost."""
    least_columns: Annotated[int, Field(ge=1)] = 32
    """A narrower row costs as much to read as this many columns."""
    narrow_penalties: Many[Pair[int, Positive]] = ((64, 1.75), (128, 1.15))
    """Pairs (columns, penalty) by rising columns: rows with fewer columns take penalty times as
    long."""
    launch_seconds: Annotated[float, Field(ge=0)] = 0.0
    """Fixed time of one shard's lookup, added to forward and to backward compute."""


class Profile(Spec):
    """What one kind of rank can do."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    """Name by which a cluster refers to it."""
    description: str = ""
    """What the profile describes."""
    hbm: Bandwidth
    """Device memory bandwidth."""
    ddr: Bandwidth
    """Host memory bandwidth of one rank."""
    host_link: Bandwidth
    """One rank's bandwidth between host and device memory."""
    kernel: Kernel = Kernel()
    """Factors of the kernels."""
    caching: EfficiencyCurve
    """x_eff of dynamicemb tables in mode CACHING."""
    hybrid: EfficiencyCurve
    """x_eff of dynamicemb tables in mode HYBRID."""
    host_only: Share
    """x_eff of dynamicemb tables in mode HOST_ONLY."""
    uvm_caching: EfficiencyCurve
    """x_eff of TorchRec tables in mode CACHING."""
    step: StepModel | None = None
    """Terms of a measured step, which price the tables of their tier in place of bandwidths."""
    collectives: Collectives | None = None
    """Measured times of collectives by size; without them a cluster's bandwidths price them."""
    spread: dict[Spreadable, Annotated[float, Field(ge=0, lt=1)]] = Field(default_factory=dict)
    """Measured relative spread, 0.1 for ±10%, by field; fields without one: not measured."""
    origin: dict[str, str]
    """Where each number comes from, by field."""
    sources: dict[Operator, Source] = Field(default_factory=dict)
    """How each operator's price was obtained; one without a source: assumed, but a collective
    without a table of its own has the bandwidth that the cluster states."""

    def source(self, operator: Operator) -> Source:
        """The declared source of an operator's price."""
        declared = self.sources.get(operator)
        if declared is None and operator in COLLECTIVES:
            tables = self.collectives
            if tables is None or getattr(tables, operator) is None:
                return DATA_SHEET
        return declared or ASSUMED

    @property
    def error(self) -> float | None:
        """The largest relative error that it states of a price (of the fit of its step, or a
        measured spread); None: it states none."""
        stated = [*self.spread.values(), *(self.step.error.values() if self.step else ())]
        return max(stated, default=None)


_ENDINGS = (".yaml", ".yml", ".json")
_LARGEST = 2**20
"""Bytes of the largest file that may be opened to see whether it is a profile."""

_FOLDER = resources.files("milp_planner.pricing") / "profiles"


def profile_names() -> tuple[str, ...]:
    """Names of the shipped profiles, sorted."""
    names = [entry.name for entry in _FOLDER.iterdir()]
    return tuple(sorted(name[:-5] for name in names if name.endswith(".yaml")))


def load_profile(name: str | Path) -> Profile:
    """A shipped profile by name, or one from a YAML file by path; BadInput names the nearest."""
    text = str(name)
    if text.endswith(_ENDINGS):
        return build(Profile, read_document(Path(name), _alike), listed_by=CHECK)
    names = profile_names()
    if text not in names:
        close = nearest(text, names)
        hint = f"; did you mean {close!r}?" if close else ""
        raise BadInput(
            f"unknown hardware profile {text!r}{hint} "
            f"(there are: {', '.join(names)}; or the path of a .yaml file)"
        )
    source = _FOLDER / f"{text}.yaml"
    return build(Profile, read_yaml(source.read_text(encoding="utf-8"), f"profile {text}"))


def _alike(path: Path) -> str | None:
    """The profile that a missing file's name may mean: one in its folder, or a shipped one."""
    return neighbour(path, _is_profile) or nearest(path.stem, profile_names())


def _is_profile(path: Path) -> bool:
    try:
        if path.suffix not in _ENDINGS or path.stat().st_size > _LARGEST:
            return False
        build(Profile, read_document(path))
    except (BadInput, OSError):
        return False
    return True
