"""What to buy, against trying every cluster on its own, and refusals of bad prices and targets."""

from dataclasses import replace
from typing import Any

import pytest

from milp_planner import Cluster, explain, plan
from milp_planner.errors import BadInput
from milp_planner.features.explain.answers import draw_answers
from milp_planner.features.explain.call import answers_to_dict
from milp_planner.features.explain.cheapest import (
    CheapestInfo,
    cheapest_section,
    cheapest_sentence,
    cheapest_svg,
    most_for,
)
from milp_planner.inputs.changes import changed_model
from milp_planner.plans.placement import Plan
from milp_planner.request.questions import Asked
from milp_planner.request.values import Rate
from scenarios import catalog
from tests.milp_planner.features.plan.test_ranks import drawn
from tests.milp_planner.pricing.build import cluster, model

TABLES = tuple({"rows": 40_000_000 * (i + 1), "dim": 128} for i in range(3))


def site(name: str, machines: int, ranks: int, price: float, **more: Any) -> Cluster:
    """A cluster with a price of its own."""
    found = cluster(machines, ranks, **more)
    return found.model_copy(update={"name": name, "price_per_hour": price})


SITES = (
    site("tiny", 1, 2, 1.0, hbm="1GiB", ddr="1GiB"),
    site("host", 1, 2, 2.0, hbm="8GiB", ddr="200GiB"),
    site("two", 1, 4, 8.0, hbm="48GiB"),
    site("four", 1, 8, 20.0, hbm="80GiB"),
)


@pytest.fixture(scope="module")
def planned() -> Plan:
    """Three tables on the third of four clusters."""
    return plan(model(*TABLES), SITES[2], time_limit=20)


def bought(planned: Plan, target: object, sites: object = SITES, **more: Any) -> CheapestInfo:
    """The answer, which must exist."""
    found = explain(planned, "smallest", target=target, clusters=sites, time_limit=60, **more)
    assert found.smallest is None and found.cheapest is not None
    return found.cheapest


def alone(planned: Plan, there: Cluster) -> float:
    """Samples a second of the best plan on one cluster, planned on its own at the global batch."""
    whole = planned.model.workload.batch_per_rank * planned.cluster.num_ranks
    each = -(-whole // there.num_ranks)
    found = plan(
        changed_model(planned.model, {"workload.batch_per_rank": each}), there, time_limit=20
    )
    if found.outcome.objective is None:
        return 0.0
    return each * there.num_ranks / (found.outcome.objective * 1e-12)


def aimed(info: CheapestInfo, rate: float) -> CheapestInfo:
    """The same plans against another rate."""
    target = Rate(round(rate))  # type: ignore[arg-type]
    limits = tuple(most_for(target, p.ranks * p.batch) for p in info.points)
    return replace(info, target="a rate", rate=rate, limits=limits)


@pytest.mark.slow
def test_it_is_the_cheapest_of_those_that_reach_it(planned: Plan) -> None:
    """For targets between the clusters' rates the answer is the first by price that reaches it,
    each cheaper one is proved not to, and every rate is that of a plan of its own."""
    rates = [alone(planned, each) for each in SITES]
    assert rates[0] == 0.0 < rates[1] < rates[2]
    info = bought(planned, f"{round(rates[1] * 0.9)}/s", sites=SITES[::-1])
    assert info == replace(aimed(info, rates[1] * 0.9), target=info.target, rate=info.rate)
    assert [p.budget for p in info.points] == ["tiny", "host", "two", "four"]
    for point, rate in zip(info.points, rates, strict=True):
        assert (point.samples_a_second("ps") or 0.0) == pytest.approx(rate, rel=0.006)
    for target in (rates[1] * 0.9, rates[1] * 1.1, rates[2] * 0.98, max(rates) * 1.1):
        found = aimed(info, target)
        first = next((at for at, rate in enumerate(rates) if rate >= target), None)
        assert found.cheapest == first and found.open == []
        said = cheapest_sentence(found)
        sure = all(map(found.certified, range(len(SITES) if first is None else first)))
        assert ("certified: no" in said) == sure != ("proved: no" in said)
        assert ("no cluster is known" in said) == (first is None)
    where = bought(planned, None)
    assert where.cheapest == 1 and "host at 2 an hour" in cheapest_sentence(where)
    assert where.reaches(0) is False and where.points[0].status == "infeasible"


def test_terminal_page_and_json_show_it(planned: Plan) -> None:
    """The sentence, a row per cluster with its price, a mark per plan, and plain values; without a
    certified bound nothing is claimed of a cheaper cluster, which is named."""
    answers = explain(planned, "smallest", target="1k/s", clusters=SITES, time_limit=60)
    info = answers.cheapest
    text = " ".join(drawn(draw_answers(answers)).split())
    assert cheapest_sentence(info) in text and "host*" in text
    picture, section = cheapest_svg(info), cheapest_section(info)
    assert picture.render().count("<circle") == 3
    assert section.id == "cheapest" and cheapest_sentence(info)[1:] in section.text
    found = answers_to_dict(planned, answers)["cheapest"]
    assert [*found["prices"]] == [1.0, 2.0, 8.0, 20.0] and found["rate"] == 1000.0
    unknown = replace(info.points[0], status="unknown", standing="unknown")
    open_ = replace(info, points=(unknown, *info.points[1:]))
    assert open_.cheapest == 1 and open_.open == ["tiny"]
    assert cheapest_sentence(open_).endswith("open whether a cheaper one does: tiny")
    word = replace(info.points[0], standing="infeasible by cpsat", verified=False)
    told = replace(info, points=(word, *info.points[1:]))
    assert told.open == []
    assert cheapest_sentence(told).endswith("proved: no cheaper one of the list does")


def test_a_rate_is_a_time_for_memory(planned: Plan) -> None:
    """The least memory for a rate is that for the time that a step of the global batch has."""
    batch = planned.model.workload.batch_per_rank * planned.cluster.num_ranks
    asked = Asked.of({"target": "2k samples/s"}).target
    assert asked == Rate(2000)  # type: ignore[arg-type]
    found = explain(planned, "smallest", target=asked, time_limit=20).smallest
    assert found[0].least.target == batch * 10**12 // 2000


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"target": "5 mph"}, "found '5 mph'; allowed: a time such as 2.5ms, or a rate"),
        ({"target": "0/s"}, "a rate such as 200k samples/s"),
        ({"clusters": "8xa100=abc"}, "found 'abc' for 8xa100; allowed: a price above 0"),
        ({"clusters": "8xa100=-1"}, "found '-1' for 8xa100; allowed: a price above 0"),
        ({"clusters": "8xa100=inf"}, "found 'inf' for 8xa100"),
        ({"clusters": "=3"}, "found an empty name; needs clusters such as"),
        ({"clusters": (SITES[1], SITES[1])}, "found 'host' twice; allowed: every cluster once"),
        ({"clusters": (cluster(1),)}, "has no price_per_hour; needed: the field in its file, or"),
    ],
)
def test_bad_prices_targets_and_units(planned: Plan, given: dict[str, Any], said: str) -> None:
    """Each gets one sentence."""
    with pytest.raises(BadInput, match=said.replace("?", r"\?")) as caught:
        explain(planned, "smallest", time_limit=5, **given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("price", [0, -2.5, "cheap", float("nan"), True])
def test_a_price_that_a_cluster_cannot_have(price: object) -> None:
    """A number above 0 stands in its file; anything else is refused, by field."""
    data = SITES[1].to_dict()
    assert Cluster.from_dict({**data, "price_per_hour": 98}).price_per_hour == 98
    with pytest.raises(BadInput, match="price_per_hour"):
        Cluster.from_dict({**data, "price_per_hour": price})


def test_every_shipped_cluster_can_be_priced(planned: Plan) -> None:
    """Each answers, with a plan or with what it lacks."""
    every = [(catalog.find_cluster(entry.name), 1.0) for entry in catalog.clusters()]
    one = plan(model({"rows": 100_000}), SITES[2], formulation="greedy", time_limit=5)
    info = bought(one, None, tuple(every), formulation="greedy")
    assert len(info.points) == len(every) and info.cheapest is not None
    assert all(p.status in ("optimal", "feasible") for p in info.points)
