"""What to buy: the cheapest cluster of a list that reaches a target, with what proves it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from rich.console import RenderableType

from formulations.capacity.budget import Budget
from milp_planner.drawing.charts import Drawing, Line, Mark, Scale, chart, padded
from milp_planner.drawing.grid import Cell, Cells, Grid, headed
from milp_planner.drawing.page import Part, Section, sentence
from milp_planner.drawing.units import UNKNOWN, listed, show_cost, show_rate
from milp_planner.errors import BadInput
from milp_planner.features.explain.axes import Field
from milp_planner.features.explain.frontier import Point, all_tried
from milp_planner.files import Facts
from milp_planner.inputs.changes import changed_model
from milp_planner.inputs.cluster import Cluster
from milp_planner.plans.compile import Compiled, compile_for, to_cluster
from milp_planner.plans.placement import Plan
from milp_planner.request.questions import ENOUGH_GAP
from milp_planner.request.values import Rate

BAR = 20
"""Characters of the longest bar on the terminal."""


@dataclass(frozen=True, eq=False)
class Offers(Field):
    """Clusters to choose from, as an axis: points are their numbers."""

    clusters: tuple[Cluster, ...] = ()

    @cached_property
    def here(self) -> int | str:
        """The name of the plan's own cluster, if it is among them."""
        own = _bare(self.plan.cluster)
        return next((c.name for c in self.clusters if _bare(c) == own), "")

    @lru_cache(maxsize=64)  # noqa: B019 - it lives as long as one question
    def compiled(self, point: int) -> Compiled:
        """The plan's model there, with its global batch, each rank's rounded up."""
        plan, there = self.plan, self.clusters[point]
        whole = plan.model.workload.batch_per_rank * plan.cluster.num_ranks
        model = changed_model(plan.model, {"workload.batch_per_rank": -(-whole // there.num_ranks)})
        return compile_for(model, there, plan.instance.objective.value)


def _bare(cluster: Cluster) -> Cluster:
    return cluster.model_copy(update={"price_per_hour": None})


@dataclass(frozen=True)
class CheapestInfo(Facts):
    """What every cluster of a list costs and reaches."""

    target: str
    """In words; empty: any plan at all."""
    rate: float | None
    """Samples a second to reach; None if the target is no rate."""
    objective_kind: str
    time_unit: str
    prices: tuple[float, ...]
    """Of an hour, rising."""
    points: tuple[Point, ...]
    """The plan on each, whose budget is the cluster's name."""
    limits: tuple[int | None, ...]
    """The largest objective that reaches the target there; None: any."""

    def reaches(self, at: int) -> bool | None:
        """Whether a cluster is known to reach the target, or proved not to; None: neither."""
        point, limit = self.points[at], self.limits[at]
        if point.objective is not None and (limit is None or point.objective <= limit):
            return True
        refuted = point.status in ("optimal", "infeasible") or self.certified(at)
        return False if refuted else None

    def certified(self, at: int) -> bool:
        """Whether a certificate, checked without a solver, shows that it does not reach it."""
        point, limit = self.points[at], self.limits[at]
        above = limit is not None and point.certified is not None and point.certified > limit
        return point.verified and (above or point.standing == "certified infeasible")

    @property
    def cheapest(self) -> int | None:
        """The number of the cheapest cluster that is known to reach the target."""
        return next((at for at in range(len(self.points)) if self.reaches(at)), None)

    @property
    def open(self) -> list[str]:
        """Clusters cheaper than that one (or all) of which it is not known."""
        end = len(self.points) if self.cheapest is None else self.cheapest
        return [str(self.points[at].budget) for at in range(end) if self.reaches(at) is None]


def cheapest_of(
    plan: Plan, given: Sequence[tuple[Any, float | None]], target: int | Rate | None, budget: Budget
) -> CheapestInfo:
    """Plan the model on every cluster of a list, with the plan's global batch.

    Parameters
    ----------
    plan : Plan
        Whose model, objective and global batch count; it answers for its own cluster.
    given : sequence of (cluster or path, price)
        A price (of an hour, in any currency) may be None where the cluster states its own.
    target : int or Rate, optional
        Objective in picoseconds, or samples a second, of the objective alone; None: any plan.
    budget : Budget
        Shared equally; a plan within half a percent of its bound ends its solve.

    Raises
    ------
    BadInput
        For a cluster without a price, the same one twice, or one that cannot hold the model's pins.
    """
    offers = sorted((_priced(*each) for each in given), key=lambda offer: offer[1])
    names = [cluster.name for cluster, _ in offers]
    if twice := [name for name in names if names.count(name) > 1]:
        raise BadInput(f"clusters: found {twice[0]!r} twice; allowed: every cluster once")
    clusters = tuple(cluster for cluster, _ in offers)
    axis = Offers("cluster", plan, tuple(names), clusters)
    points = all_tried(axis, budget.certifying(ENOUGH_GAP), ENOUGH_GAP)
    return CheapestInfo(
        target=_shown(target), rate=float(target.samples) if isinstance(target, Rate) else None,
        objective_kind=plan.instance.objective.value, time_unit=plan.instance.time_unit,
        prices=tuple(price for _, price in offers), points=tuple(points),
        limits=tuple(most_for(target, p.ranks * p.batch) for p in points),
    )  # fmt: skip


def _priced(source: Any, price: float | None) -> tuple[Cluster, float]:
    cluster = to_cluster(source)
    found = cluster.price_per_hour if price is None else price
    if found is None:
        raise BadInput(
            f"cluster {cluster.name!r} has no price_per_hour; needed: the field in its file, or "
            f"--clusters {cluster.name}=98.32"
        )
    return cluster, found


def most_for(target: int | Rate | None, samples: int) -> int | None:
    """The largest objective, in picoseconds, with which a step of ``samples`` reaches a target."""
    if isinstance(target, Rate):
        return samples * 10**12 * target.samples.denominator // target.samples.numerator
    return target


def _shown(target: int | Rate | None) -> str:
    if isinstance(target, Rate):
        return f"{show_rate(float(target.samples))} samples/s"
    return "" if target is None else show_cost(target, "ps")


def cheapest_sentence(info: CheapestInfo) -> str:
    """The answer: which one, at what price, and what is certified or open about cheaper ones."""
    aim = f"reaches {info.target}" if info.target else "holds the model"
    at, still = info.cheapest, info.open
    cheaper = range(len(info.points) if at is None else at)
    how = "certified" if all(map(info.certified, cheaper)) else "proved"
    if at is None:
        told = f"open: {listed(still, 3)}" if still else f"{how}: none of the list {aim}"
        return f"no cluster is known that {aim}; {told}"
    told = f"{how}: no cheaper one of the list does" if at else "no other of the list is cheaper"
    if still:
        told = f"open whether a cheaper one does: {listed(still, 3)}"
    name, price = info.points[at].budget, info.prices[at]
    return f"the cheapest that {aim}: {name} at {price:g} an hour; {told}"


def notes(info: CheapestInfo) -> list[str]:
    """What rates count."""
    batches = sorted({p.ranks * p.batch for p in info.points})
    each = f"{batches[0]:,}" + (f" to {batches[-1]:,}" if len(batches) > 1 else "")
    return [
        f"a step has {each} samples on all ranks together; samples/s counts {info.objective_kind} "
        "alone; at most: what is certified of any plan there; prices are those given"
    ]


def cheapest_grid(info: CheapestInfo, bars: bool = False) -> Grid:
    """One row per cluster, by price; ``bars`` draws samples a second."""
    unit, rows = info.time_unit, list[Cells]()
    most = max((p.samples_a_second(unit) or 0.0 for p in info.points), default=0.0)
    for at, (price, p) in enumerate(zip(info.prices, info.points, strict=True)):
        rate = p.samples_a_second(unit)
        limit = None if not p.certified else p.ranks * p.batch / (p.certified * 1e-12)
        share = None if not rate else price / 3600 / rate * 1e9
        chosen = at == info.cheapest
        rows.append([
            Cell(f"{p.budget}{'*' * chosen}", strong=chosen),
            Cell(f"{price:g}", price),
            *(Cell(UNKNOWN if v is None else show_rate(v), v) for v in (rate, limit)),
            Cell(UNKNOWN if share is None else f"{share:.4g}", share),
            Cell.gap(p.gap), p.standing.partition(",")[0],
            *(["█" * round(BAR * (rate or 0.0) / most) if most else ""] if bars else []),
        ])  # fmt: skip
    head = ["cluster", "#price/h", "#samples/s", "#at most", "#per 10⁹|price of 10⁹ samples",
            "#gap", "answer", *([""] if bars else [])]  # fmt: skip
    return Grid.of("cheapest", "clusters", "Price and throughput of every cluster", head, rows)


def draw_cheapest(info: CheapestInfo) -> RenderableType:
    """The answer, then every cluster with a bar."""
    return headed(cheapest_sentence(info), cheapest_grid(info, bars=True), *notes(info))


def cheapest_svg(info: CheapestInfo) -> Drawing | None:
    """Samples a second over price: a mark for each cluster, and the target as a line."""
    unit = info.time_unit
    known = [
        (at, price, rate)
        for at, (price, p) in enumerate(zip(info.prices, info.points, strict=True))
        if (rate := p.samples_a_second(unit)) is not None
    ]
    if not known:
        return None
    rates = [rate for _, _, rate in known] + ([info.rate] if info.rate else [])
    across = padded(min(info.prices), max(info.prices))
    marks = [
        Mark(price, rate, "mark objective" if at == info.cheapest else "mark open",
             f"{info.points[at].budget}: {price:g} an hour, {show_rate(rate)} samples/s, "
             f"{info.points[at].standing}")
        for at, price, rate in known
    ]  # fmt: skip
    aim = [(across[0], info.rate), (across[1], info.rate)] if info.rate else []
    lines = [Line("", aim, style="line bound", straight=True)] if aim else []
    return chart(
        "samples a second over price", f"{len(known)} clusters with a plan", lines,
        (Scale(*across), Scale(*padded(min(rates), max(rates)))), ("price of an hour", "samples/s"),
        (lambda v: f"{v:g}", show_rate), marks,
    )  # fmt: skip


def cheapest_section(info: CheapestInfo) -> Section:
    """The page's section: the answer, the picture, the table."""
    drawing, table = cheapest_svg(info), Part(table=cheapest_grid(info))
    picture = [] if drawing is None else [Part(drawing.title, drawing.render(), drawing.about)]
    text = " ".join(map(sentence, (cheapest_sentence(info), *notes(info))))
    return Section("cheapest", "What to buy", text, parts=(*picture, table))
