"""The objective pipelined_step: by hand, with certificates and forged ones."""

import copy
import json
from dataclasses import replace
from typing import Any

import pytest

from formulations import Instance, InstanceError, Objective, Settings, checker, solve
from formulations.evidence.verify import certifies
from formulations.instance.file import instance_from_dict, instance_to_dict
from formulations.proof.judge import closes
from formulations.result.certificate import certificate_from_dict, certificate_to_dict
from formulations.search.anneal import Sampler, Within
from tests.formulations.brute_force import brute_force
from tests.formulations.by_hand import peaks
from tests.formulations.examples import ANY, at, built
from tests.formulations.forging import checked
from tests.formulations.test_checker_peaks import uneven


def streams(*costs: tuple[int, ...], hidden: tuple[int, ...]) -> Instance:
    """Two ranks, and on any of them shards with costs of compute, ids where given, exchange."""
    phases = ["compute", "ids", "exchange"] if len(hidden) == 3 else ["compute", "exchange"]
    tables = {name: {"whole": at(ANY, *cost)} for name, cost in zip("abcd", costs, strict=False)}
    return built(tables, "pipelined_step", hidden=hidden, phases=phases)


def two_streams(*hidden: int) -> Instance:
    """Two ranks, phases compute and exchange, and shards a (4, 0), b and c (2, 2) anywhere."""
    return streams((4, 0), (2, 2), (2, 2), hidden=hidden or (0, 0))


@pytest.mark.parametrize(
    ("hidden", "best"),
    [
        # b and c together: compute 4, exchange 4; b apart from c: compute 6, exchange 2
        ((0, 0), 8),
        ((0, 2), 6),  # (4 - 0) + (4 - 2), or 6 + 0
        ((0, 3), 5),
        ((0, 4), 4),
        ((0, 100), 4),  # nothing of the exchange shows, and compute is even at 4
        ((3, 3), 2),
        ((5, 2), 1),  # 6 and 2: a compute of 6 shows 1, an exchange of 2 nothing
        ((6, 2), 0),
        ((9, 9), 0),
    ],
)
def test_optima_by_hand(hidden: tuple[int, ...], best: int) -> None:
    """A solve proves the optimum on paper; no certificate exceeds it."""
    instance = two_streams(*hidden)
    assert brute_force(instance).objective == best
    outcome = solve(instance, "auto", Settings(time_limit=20))
    assert (outcome.status, outcome.objectives) == ("optimal", {"pipelined_step": best})
    assert outcome.certified_bound is not None and outcome.certified_bound <= best


def test_without_hidden_time_it_is_step_time() -> None:
    """With nothing hidden, both objectives have the same optimum, and other fingerprints."""
    pipelined = two_streams(0, 0)
    plain = replace(pipelined, objective=Objective.STEP_TIME, hidden=())
    assert brute_force(pipelined).objective == brute_force(plain).objective == 8
    assert pipelined.fingerprint != plain.fingerprint


def test_hidden_time_is_part_of_the_fingerprint_and_the_file() -> None:
    """The file carries the times; both derivations of the fingerprint see them."""
    seen = set()
    for hidden in ((0, 2), (0, 3), (2, 0)):
        instance = two_streams(*hidden)
        document = json.loads(json.dumps(instance_to_dict(instance)))
        assert document["hidden"] == list(hidden)
        again = instance_from_dict(document)
        assert again.hidden == hidden
        assert again.fingerprint == instance.fingerprint
        assert checker.Instance(document).fingerprint == instance.fingerprint
        seen.add(instance.fingerprint)
    assert len(seen) == 3


def test_other_instances_have_no_such_key() -> None:
    """Files of other objectives do not mention hidden times, and refuse them."""
    plain = replace(two_streams(), objective=Objective.STEP_TIME, hidden=())
    document = instance_to_dict(plain)
    assert "hidden" not in document
    wrong = {**document, "hidden": [0, 0]}
    with pytest.raises(InstanceError, match="pipelined_step alone"):
        instance_from_dict(wrong)
    with pytest.raises(checker.Unreadable, match="hidden"):
        checker.Instance(wrong)


@pytest.mark.parametrize(
    ("hidden", "sentence"),
    [
        (None, "hidden"),
        ([1], "1 times for 2 phases"),
        ([1, 2, 3], "3 times for 2 phases"),
        ([1, -2], "in \\[0, 2\\^53\\)"),
        ([1, 2**53], "2\\^53"),
        ([1, 2.0], "hidden"),
    ],
)
def test_malformed_hidden_times(hidden: Any, sentence: str) -> None:
    """One sentence each, from the reader; the checker refuses them as well."""
    document = instance_to_dict(two_streams(0, 1))
    del document["hidden"]
    if hidden is not None:
        document["hidden"] = hidden
    with pytest.raises(InstanceError, match=sentence):
        instance_from_dict(document)
    with pytest.raises(checker.Unreadable):
        checker.Instance(document)


def test_huge_hidden_times_are_refused() -> None:
    """What is hidden must stay within the integers of the sums."""
    with pytest.raises(InstanceError, match="beyond 2\\^62"):
        built([], "pipelined_step", [range(1024)], hidden=[2**53 - 1])


def test_the_samplers_value_is_the_objective() -> None:
    """The sums that the search steers by are those of the check, and its targets leave room for
    what is hidden."""
    instance = two_streams(3, 3)
    plan = brute_force(instance).placement
    assert plan is not None
    sampler = Sampler(instance)
    sampler.begin(plan, Within([1, 1]))
    assert sampler.tops == [1, 1]
    assert sampler.penalty == 0.0
    sampler.begin(plan, Within([1, 0]))
    assert sampler.penalty > 0.0


#: Of the page docs/proof.md, where 3 of the exchange are hidden.
BY_HAND: dict[str, Any] = {
    "version": 3,
    "kind": "bound",
    "target": 4,
    "vectors": [[{"row": "cost", "of": "compute", "times": 1}]],
    "nodes": [{"use": [0]}],
}


def proves(instance: Instance, **changes: Any) -> bool:
    """Whether the certificate by hand, changed, proves its target."""
    return certifies(instance, certificate_from_dict({**copy.deepcopy(BY_HAND), **changes}))


def four(*hidden: int) -> Instance:
    """Two ranks, and on any of them two shards of (2, 0) and two of (2, 2)."""
    return streams((2, 0), (2, 0), (2, 2), (2, 2), hidden=hidden)


def test_a_vector_by_hand() -> None:
    """Compute on both ranks: 8 on the left, 2 L on the right, and what is hidden besides."""
    assert brute_force(four(0, 3)).objective == 4
    assert proves(four(0, 3))  # 8 > 2 * 3
    assert not proves(four(0, 3), target=5)  # 8 = 2 * 4
    assert proves(four(3, 3), target=1)  # 8 > 2 * 0 + 2 * 3
    assert not proves(four(3, 3), target=2)  # 8 = 2 * 1 + 2 * 3
    both = [[{"row": "cost", "of": name, "times": 1} for name in ("compute", "exchange")]]
    # 12 on the left; on the right 2 L + 2 * 3
    assert proves(four(0, 3), vectors=both, target=3)  # 12 > 2 * 2 + 6
    assert not proves(four(0, 3), vectors=both, target=4)  # 12 = 2 * 3 + 6
    largest = [[{"row": "largest_cost", "of": "compute", "table": 0, "times": 1}]]
    assert proves(four(1, 9), vectors=largest, target=1)  # 2 > 0 + 1
    assert not proves(four(1, 9), vectors=largest, target=2)  # 2 = 1 + 1
    one = [[{"row": "cost", "of": "compute", "at": 1, "times": 1}]]
    assert not proves(four(0, 3), vectors=one, target=3)  # the other rank may hold everything


def test_phases_that_hide_something_have_no_packing_patterns_or_peaks() -> None:
    """Packing and patterns add up the other phases alone, and peaks may not name them."""
    packed = [{"pack": "pipelined_step"}]
    # b and c with a: compute cannot be packed below 4, alone; with the exchange, 8
    assert proves(two_streams(0, 0), target=6, nodes=packed, vectors=[])  # sums of 4, 4 and 4
    assert proves(two_streams(0, 1), target=4, nodes=packed, vectors=[])
    assert not proves(two_streams(0, 1), target=5, nodes=packed, vectors=[])
    with pytest.raises(InstanceError, match="nothing is hidden"):
        proves(two_streams(0, 1), nodes=[{"peak": ["exchange"], "cuts": [1]}, {}, {}])
    with pytest.raises(InstanceError, match="nothing is hidden"):
        proves(two_streams(0, 1), vectors=[[peaks([[0, 0, 0, 1]], most=1)]])


def test_peaks_of_phases_that_hide_nothing() -> None:
    """A third phase that hides something takes no part: 8 stays certified by the page's tree."""
    instance = streams((4, 3, 0), (2, 3, 2), (2, 3, 2), hidden=(0, 7, 0))
    certificate = certificate_from_dict(uneven()[1])
    assert brute_force(instance).objective == 8
    assert certifies(instance, certificate)
    assert closes(instance, certificate) is True
    assert not certifies(instance, replace(certificate, target=9))


def test_less_hidden_time_makes_a_certificate_claim_too_much() -> None:
    """A bound of an instance that hides less is refused where more is hidden, if it is above the
    optimum there."""
    certificate = solve(two_streams(0, 0), "auto", Settings(time_limit=20)).certificate
    assert certificate is not None and certificate.target is not None
    for hidden in ((0, 2), (0, 3), (3, 3), (2, 0)):
        best = brute_force(two_streams(*hidden)).objective
        assert best is not None and certificate.target > best
        assert not checked(two_streams(*hidden), certificate_to_dict(certificate))


def test_nothing_to_place_costs_nothing() -> None:
    """Without tables the plan costs 0, certified also where every phase hides something."""
    instance = built([], "pipelined_step", [[0]], hidden=[3])
    outcome = solve(instance, "auto", Settings(time_limit=5))
    assert (outcome.status, outcome.objective, outcome.certified_bound) == ("optimal", 0, 0)
