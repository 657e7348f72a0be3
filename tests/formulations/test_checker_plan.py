"""The stand-alone checker on plans and outcomes: like the product's own check, and strict."""

import base64
import copy
import gzip
import hashlib
import json
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from formulations import checker
from formulations.instance import Instance
from formulations.instance.file import instance_to_dict
from formulations.result.check import check
from formulations.result.placement import Placement
from tests.corpus import mistakes
from tests.formulations.brute_force import brute_force
from tests.formulations.by_hand import Document, worked_example
from tests.formulations.strategies import instances


def example() -> tuple[Document, Document]:
    """The instance of docs/proof.md and an outcome that is certified optimal."""
    document, certificate = worked_example()
    where = {"t0": ("fast", 0), "t1": ("fast", 1), "t2": ("slow", 0), "t3": ("slow", 1)}
    outcome = {
        "status": "optimal", "stopped_by": "proof", "objective": 22, "bound": 22,
        "objective_kind": "busiest_rank", "bound_source": {"method": "cpsat", "exact": True},
        "certified_bound": 22, "gap": 0.0, "certificate": certificate, "seconds": 1.5,
        "formulation": "auto", "trace": [[1.0, 22, 22, "cpsat"]],
        "instance": checker.Instance(document).fingerprint,
        "objectives": {"total": 44, "busiest_rank": 22, "step_time": 22},
        "tables": {t: {"option": o, "ranks": [[r]]} for t, (o, r) in where.items()},
    }  # fmt: skip
    return document, outcome


def lines(document: Document, outcome: Document) -> list[str]:
    """The checker's lines for an outcome whose instance, gap, trace and stop are made to agree."""
    best, bound = outcome["objective"], outcome["bound"]
    known = best is not None and bound is not None
    outcome = outcome | {"gap": (best - bound) / max(1, abs(best)) if known else None}
    outcome |= {"trace": [[1.0, best, bound, "cpsat"]]}
    proved = outcome["status"] in ("optimal", "infeasible")
    outcome |= {"stopped_by": "proof" if proved else "time_limit"}
    outcome |= {"instance": checker.Instance(document).fingerprint}
    return list(checker.check(document, outcome))


def placement_of(tables: Document, drawn: Instance) -> Placement:
    """A plan of an outcome as the product holds it."""
    options, ranks = [], []
    for t, name in enumerate(drawn.table_names):
        options.append(drawn.option_index(t, tables[name]["option"]))
        ranks.append([np.asarray(b, dtype=np.int64) for b in tables[name]["ranks"]])
    return Placement(np.asarray(options, dtype=np.int64), ranks)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(instances(), st.integers(0, 2**32))
def test_agrees_with_the_product(drawn: Instance, seed: int) -> None:
    """The checker judges best and mutated plans as the separate formulations.result.check does."""
    best, rng = brute_force(drawn).placement, Random(seed)
    read = checker.Instance(instance_to_dict(drawn))
    assume(best is not None and drawn.num_tables > 0)
    assert best is not None
    tables = {
        name: {"option": drawn.option_names[int(best.options[t])], "ranks": best.to_lists(t)}
        for t, name in enumerate(drawn.table_names)
    }
    for _ in range(8):
        verdict = check(drawn, placement_of(tables, drawn))
        if verdict.feasible:
            assert checker.check_plan(read, tables) == verdict.objectives
        else:
            with pytest.raises(checker.Refuted):
                checker.check_plan(read, tables)
        entry = tables[rng.choice(sorted(tables))]
        if rng.random() < 0.2:
            t = drawn.table_index(next(n for n, e in tables.items() if e is entry))
            entry["option"] = drawn.option_names[rng.choice(list(drawn.options_of(t)))]
        elif block := rng.choice(entry["ranks"]):
            block[rng.randrange(len(block))] = rng.randrange(drawn.num_ranks)


def test_verdicts() -> None:
    """Certified optimal, optimal by a solver's word, feasible: by what the certificate proves."""
    document, outcome = example()
    assert lines(document, outcome)[-1] == "verdict: certified optimal"
    nobody = outcome | {"bound_source": None}
    assert lines(document, nobody)[-1] == "verdict: certified optimal"
    outcome["certificate"]["target"] = outcome["certified_bound"] = 21
    assert lines(document, outcome)[-1] == ("verdict: optimal by 'cpsat', certified to 4.55%")
    outcome |= {"status": "feasible", "bound": 21}
    assert lines(document, outcome)[-1] == "verdict: feasible, certified to 4.55%"
    outcome |= {"certificate": None, "certified_bound": None}
    assert lines(document, outcome)[-1] == "verdict: feasible, nothing certified"


def test_infeasible() -> None:
    """Certified infeasible with a certificate of that kind, else a solver's word."""
    document, outcome = example()
    document["resources"][0]["capacity"] = 0
    outcome |= {"status": "infeasible", "tables": None, "objective": None, "objectives": {}}
    outcome |= {"bound": None, "certified_bound": None, "certificate": None}
    assert lines(document, outcome)[-1] == "verdict: infeasible by 'cpsat', nothing certified"
    outcome["certificate"] = {"version": 3, "kind": "infeasible", "vectors": [], "nodes": [{}]}
    assert lines(document, outcome)[-1] == "verdict: certified infeasible"
    with pytest.raises(checker.Refuted, match="status is unknown"):
        lines(document, outcome | {"status": "unknown"})
    outcome |= {"certificate": infeasible_bound(), "certified_bound": 22, "bound": 22}
    assert lines(document, outcome)[-1] == "verdict: infeasible by 'cpsat', certified from 22 on"


def infeasible_bound() -> Document:
    """A bound, which says nothing of whether there is a plan."""
    certificate: Document = example()[1]["certificate"]
    return certificate


@pytest.mark.parametrize(("change", "sentence"), mistakes(__file__, "lies"))
def test_lies(change: Document, sentence: str) -> None:
    """Each false claim is refuted in a sentence."""
    document, outcome = example()
    with pytest.raises(checker.Refuted, match=sentence):
        lines(document, outcome | change)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"objective_kind": "total"}, "another objective"),
        ({"instance": "0" * 64}, "the fingerprint of its instance is '0{64}'"),
        ({"tables": {}}, "only in one of"),
        ({"more": 1}, "not as its page says"),
        ({"objectives": {"cost": 1}}, "not as its page says"),
        ({"formulation": "a\x1b[2K"}, "not as its page says"),
        ({"detail": {"deep": [[2**63]]}}, "2\\^63 or more"),
        ({"trace": [[0, 1, 1]]}, "a point of the trace"),
        ({"seconds": -0.5}, "a time is"),
        ({"gap": 0.5}, "gap is 0.5"),
        ({"gap": None}, "gap is None"),
        ({"certificate": {"version": 3.0}}, "certificate is not as its page says"),
    ],
)
def test_unreadable_outcomes(change: Document, sentence: str) -> None:
    """An outcome that the page does not allow, or of another instance, is unreadable."""
    document, outcome = example()
    with pytest.raises(checker.Unreadable, match=sentence):
        list(checker.check(document, outcome | change))


@pytest.mark.parametrize(("change", "sentence"), mistakes(__file__, "what is told of the search"))
def test_what_is_told_of_the_search(change: Document, sentence: str) -> None:
    """The trace and the reason for stopping must not contradict what was found."""
    document, outcome = example()
    with pytest.raises(checker.Refuted, match=sentence):
        list(checker.check(document, outcome | change))


def test_restrictions_come_first() -> None:
    """What the instance asks for besides a good plan is named before anything else is said."""
    document, outcome = example()
    now = {"t0": {"option": "fast", "ranks": [[0]]}}
    document |= {"current": now, "max_moved_tables": 0}
    document |= {"pins": [{"table": "t1", "option": "fast"}]}
    document |= {"forbidden": [{"table": "t3", "option": "fast"}]}
    assert lines(document, outcome)[:3] == [
        "restricted: max_moved_tables is 0", "restricted: 1 pinned ('t1': 'fast')",
        "restricted: 1 forbidden ('t3': 'fast')",
    ]  # fmt: skip


def test_raised_target() -> None:
    """A certificate that does not close refutes the outcome."""
    document, outcome = example()
    outcome["certificate"]["target"] = outcome["certified_bound"] = 23
    outcome |= {
        "objective": None,
        "objectives": {},
        "tables": None,
        "status": "unknown",
        "bound": 23,
    }
    with pytest.raises(checker.Refuted, match="node 1 is open"):
        lines(document, outcome)


def run(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run a copy of the file on its own, without this project or any package."""
    alone = folder / "checker.py"
    shutil.copy(checker.__file__, alone)
    command = [sys.executable, "-I", "-S", str(alone), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    return done.returncode, done.stdout + done.stderr


def test_stands_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It runs without anything installed, on an outcome and on a plan with packed parts."""
    document, outcome = example()
    (tmp_path / "i.json.gz").write_bytes(gzip.compress(json.dumps(document).encode()))
    (tmp_path / "o.json").write_text(json.dumps(outcome))
    code, text = run(tmp_path, "o.json", "i.json.gz")
    assert (code, text.splitlines()[-1]) == (0, "verdict: certified optimal")
    data = base64.b64encode(gzip.compress(json.dumps(document).encode())).decode()
    packed = {"encoding": "json+gzip+base64", "data": data}
    empty = hashlib.sha256(b"{}").hexdigest()
    plan = {
        "format": "milp-planner-plan/1", "model": {}, "cluster": {}, "profile": {}, "tables": [],
        "fingerprints": dict.fromkeys(("model", "cluster", "profile"), empty)
        | {"instance": outcome["instance"]},
        "instance": packed, "outcome": outcome,
    }  # fmt: skip

    def said(plan: Document) -> tuple[int, str]:
        (tmp_path / "plan.json").write_text(json.dumps(plan))
        return checker.main([str(tmp_path / "plan.json")]), "".join(capsys.readouterr())

    first, *rest = said(plan)[1].splitlines()
    assert first.startswith("prices: those of the file") and rest == text.splitlines()
    for part in ("model", "instance"):
        other = plan | {"fingerprints": plan["fingerprints"] | {part: "0" * 64}}
        code, text = said(other)
        assert code == 2 and f"{part} does not match its fingerprint" in text
    outcome |= {"objective": 20, "gap": -0.1}
    code, text = said(plan)
    assert code == 1
    assert "refuted: 'busiest_rank' is 22, not 20" in text


@pytest.mark.parametrize(
    "data",
    [
        b"", b"[]", b"{", b'{"status": NaN}', b'{"a": 1, "a": 2}', b"\xff", b"[" * 100_000,
        b"1" * 5_000, b"\x1f\x8bnonsense", b'{"status": "optimal"}', b'"\\ud800"', b"null",
        b'{"format": "milp-planner-plan/1", "instance": {"encoding": "x", "data": ""}}',
    ],
)  # fmt: skip
def test_unreadable_files(tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes) -> None:
    """Exit code 2 and one line, for files that are no outcome."""
    document, _ = example()
    (tmp_path / "i.json").write_text(json.dumps(document))
    (tmp_path / "o.json").write_bytes(data)
    arguments = [str(tmp_path / "o.json"), str(tmp_path / "i.json")]
    assert checker.main(arguments) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_bomb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that unpacks to more than the limit is refused before it is unpacked whole."""
    monkeypatch.setattr(checker, "MAX_BYTES", 1000)
    (tmp_path / "o.json").write_bytes(gzip.compress(b"{}" + b" " * 10_000))
    assert checker.main([str(tmp_path / "o.json")]) == 2
    assert "more than 1000 bytes" in capsys.readouterr().err


def test_pinned_ranks() -> None:
    """A plan puts a pinned option on the ranks of its pin, each as often as the pin says."""
    document, outcome = example()
    document["pins"] = [{"table": "t0", "option": "fast", "ranks": [[0]]}]
    assert lines(document, outcome)[-1] == "verdict: certified optimal"
    document["tables"][0]["options"][0]["blocks"][0] |= {"count": 2, "distinct": False}
    document["resources"][0]["capacity"] = 99
    document["pins"] = [{"table": "t0", "option": "fast", "ranks": [[0, 1]]}]
    outcome["tables"]["t0"]["ranks"] = [[0, 0]]
    with pytest.raises(checker.Refuted, match="not on the ranks of its pin"):
        lines(document, outcome)


def test_optimal_by_nobodys_word() -> None:
    """A bound in floating point makes no plan optimal, nor need a plan have a bound."""
    document, outcome = example()
    outcome |= {"certificate": None, "certified_bound": None}
    outcome["bound_source"] = {"method": "highs", "exact": False}
    with pytest.raises(checker.Refuted, match="status is optimal"):
        lines(document, outcome)
    outcome |= {"status": "feasible", "bound": None, "bound_source": None}
    assert lines(document, outcome)[-1] == "verdict: feasible, nothing certified"


NONSENSE = [
    None, True, False, -1, 0, 1, 2, 3, 2**53, -(2**60), 1.0, 0.5, "", "x", "total", "rank", [], [0],
    [[0]], [[[0]]], {}, {"x": 1}, {"*": 1}, [None], "every_rank", [1, 1], 10**40, "\ud800",
]  # fmt: skip


def mutate(rng: Random, node: Any) -> None:
    """Put nonsense somewhere into a document: lose, rename or replace an entry."""
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = rng.choice(keys)
        if not isinstance(node[key], (dict, list)) or rng.random() < 0.2:
            break
        node = node[key]
    action = rng.random()
    if action < 0.15:
        del node[key]
    elif action < 0.25 and isinstance(node, dict):
        node[rng.choice(["", "x", "*", "use?", "\n"])] = node.pop(key)
    else:
        node[key] = copy.deepcopy(rng.choice(NONSENSE))


def test_nonsense_is_refused_in_a_sentence() -> None:
    """Documents with nonsense anywhere end in a verdict, Refuted or Unreadable, never otherwise."""
    rng = Random(5)
    ends = {"fine": 0, "refuted": 0, "unreadable": 0}
    for _ in range(1200):
        document, outcome = copy.deepcopy(example())
        certificate = outcome["certificate"]
        certificate["nodes"][-1]["pack"] = "hbm"
        for _ in range(rng.choice([1, 1, 2, 4])):
            mutate(rng, rng.choice([document, outcome, certificate]))
        if rng.random() < 0.7 and "instance" in outcome:
            with suppress(checker.Unreadable):
                outcome["instance"] = checker.Instance(document).fingerprint
        try:
            list(checker.check(document, outcome))
            ends["fine"] += 1
        except checker.Refuted as error:
            assert str(error).isprintable()
            ends["refuted"] += 1
        except checker.Unreadable as error:
            assert str(error).isascii()
            ends["unreadable"] += 1
    assert min(ends.values()) > 10
