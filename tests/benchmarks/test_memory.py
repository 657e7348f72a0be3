"""The memory benchmark (ledger against live tensors): its cases, its counting, its pages."""

import pytest

from benchmarks.memory.cases import Case, cases, half_precision, held_out, predicted
from benchmarks.memory.table import HERE, PAGE, blocks, error, fullest, signed, spread
from benchmarks.pages import stored, update


def test_the_page_shows_the_newest_result() -> None:
    """The page shows the newest result of every case that the benchmark has now."""
    result = stored(HERE / "results")
    assert [Case(**each["case"]) for each in result["cases"]] == cases()
    assert [Case(**each["case"]) for each in result["held_out"]] == held_out()
    assert [Case(**each["case"]) for each in result["half_precision"]] == half_precision()
    assert update(PAGE, blocks(result), check=True) == 0, "run: python benchmarks/memory/table.py"


def test_the_ledger_says_what_it_said() -> None:
    """Every stored prediction is still the ledger's, to the byte."""
    result = stored(HERE / "results")
    kept = [each for part in ("cases", "held_out", "half_precision") for each in result[part]]
    changed = [
        each["case"] for each in kept if predicted(Case(**each["case"])) != each["predicted"]
    ]
    assert changed == [], "changed on purpose? python benchmarks/memory/run.py"


@pytest.mark.parametrize("case", cases() + held_out(), ids=lambda case: case.name)
def test_ids_are_as_even_as_the_model_says(case: Case) -> None:
    """Every row-wise shard gets the same number of ids; if they do not divide, some one more."""
    ids, block = case.ids(), case.rows // case.ranks
    assert len(ids) == case.samples * case.length
    loads = [sum(i // block == rank for i in ids) for rank in range(case.ranks)]
    assert sum(loads) == len(ids)
    assert max(loads) - min(loads) <= (len(ids) % case.ranks > 0)


def test_held_out_cases_are_others() -> None:
    """No held-out case equals one that corrected the ledger, apart from ranks and rows."""
    known = {case._replace(ranks=0, rows=0) for case in cases()}
    assert not known & {case._replace(ranks=0, rows=0) for case in held_out()}


def test_the_entries_of_a_case_by_hand() -> None:
    """Two pooled tables of 8192 × 32 floats, one on each rank; 512 samples of 8 ids per rank."""
    found = predicted(Case("pooled", "table_wise"))
    rows, ids, bags = 8192 * 32 * 4, 2 * 512 * 8 * 8, 2 * 512 * 32 * 4
    assert found["constructed"] == {"weights": rows}
    held = {"weights": rows, "inputs": ids, "lengths": 2 * 512 * 16}
    assert found["inputs"] == held
    assert found["dense_part"] == {**held, "activations": bags, "activation_gradients": bags}
    assert found["forward_exchange"] == {
        **held, "output": bags, "send_buffer": bags, "receive_buffer": bags,
    }  # fmt: skip


def test_errors_by_hand() -> None:
    """Predicted over measured, at one moment and at the two fullest moments, which may differ."""
    moments = ("forward_exchange", "dense_part", "backward_exchange", "update")
    case = {
        "measured": {
            m: {"tables": n - 10, "ids": 10}
            for m, n in zip(moments, (100, 200, 50, 50), strict=True)
        },
        "predicted": {m: {"weights": n} for m, n in zip(moments, (110, 40, 190, 0), strict=True)},
    }
    assert error(case, "forward_exchange") == pytest.approx(10)
    assert fullest(case) == pytest.approx(-5)
    assert (signed(-0.04), signed(0.06)) == ("0.0%", "+0.1%")
    assert spread([10.0, -5.0, 1.0]) == "5.0% | 10.0% | -5.0% to +10.0% | 1 of 3"


def test_a_tensor_counts_until_it_is_freed() -> None:
    """Views add nothing; a tensor only autograd holds still counts; a moment keeps its maximum."""
    torch = pytest.importorskip("torch")
    from benchmarks.memory.live import Live

    live = Live()
    with live:
        live.enter("all")
        first = torch.zeros(1000, requires_grad=True)
        view = first[:10]
        held = first * 2.0
        squared = held * held  # autograd keeps held
        del held, view
        assert live.now() == {"all": 3 * 4000}
        del squared
        live.enter("rest")
        late = torch.zeros(10)
        assert live.now() == {"all": 4000, "rest": 40}
        del late
    assert sum(live.most["all"].values()) >= 3 * 4000
    assert live.most["rest"] == {"all": 4000, "rest": 40}
