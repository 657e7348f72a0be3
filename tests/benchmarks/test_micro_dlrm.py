"""The micro-DLRM pair: its hash, shapes, steps, roofline, claims and page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.pages import stored, update

torch = pytest.importorskip("torch")
from benchmarks.micro_dlrm import figures  # noqa: E402
from benchmarks.micro_dlrm.contract import at_ceilings, claims, line_error, mlp_growth  # noqa: E402
from benchmarks.micro_dlrm.model import SEEDS, Dram, MicroDlrm, Resident, hashed  # noqa: E402
from benchmarks.micro_dlrm.roofline import Ceilings, ceiling_probes, ceilings  # noqa: E402
from benchmarks.micro_dlrm.steps import batch, forward_probe, training_probe  # noqa: E402
from milp_planner.features.calibrate.machine import Sample, measure  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
SMALL = 5_000
"""Rows of a table that tests can afford."""


def test_the_published_vectors() -> None:
    """Ids 0 to 3 with the first seed, of 2,000,000 rows."""
    rows = hashed(torch.arange(4), SEEDS[0], 2_000_000)
    assert rows.tolist() == [453_945, 1_352_557, 156_608, 165_189]
    assert SEEDS == (0xA5A5A5A5, 0x5A5A5A5A, 0xC3C3C3C3)


def plain_hash(key: int, seed: int, rows: int) -> int:
    """The same hash in Python's integers, wrapped to signed 64 bits after every product."""

    def wrap(value: int) -> int:
        return (value + (1 << 63)) % (1 << 64) - (1 << 63)

    x = key ^ seed
    x = wrap((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9)
    x = wrap((x ^ (x >> 27)) * 0x94D049BB133111EB)
    return abs(x ^ (x >> 31)) % rows


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=20), st.sampled_from(SEEDS))
def test_the_hash_is_signed(keys: list[int], seed: int) -> None:
    """It equals the hash in big integers; int32 ids get the same rows as int64 ids."""
    found = hashed(torch.tensor(keys), seed, 2_000_000).tolist()
    assert found == [plain_hash(key, seed, 2_000_000) for key in keys]
    narrow = torch.tensor([key % 2**31 for key in keys], dtype=torch.int32)
    assert torch.equal(hashed(narrow, seed, 97), hashed(narrow.long(), seed, 97))


def test_seeds_send_an_id_to_different_rows() -> None:
    """Hardly any of a thousand ids gets the same row under another seed; rows are hit evenly."""
    ids = torch.arange(1000)
    rows = [hashed(ids, seed, 2_000_000) for seed in SEEDS]
    assert (rows[0] == rows[1]).sum() + (rows[1] == rows[2]).sum() < 3
    buckets = torch.bincount(hashed(torch.arange(100_000), SEEDS[2], 100), minlength=100)
    assert buckets.min() > 800 and buckets.max() < 1200


def test_shapes_as_published() -> None:
    """336 KB against 2.048 GB; 16-8-8 below, 32-16-1 above the joined embeddings, a sigmoid."""
    shared = torch.empty(1).expand(2_000_000 * 256)  # takes no memory
    dram, resident = Dram(storage=shared), Resident()
    assert dram.working_set_bytes() == 2_048_000_000
    assert resident.working_set_bytes() == (943 + 1_682) * 32 * 4 == 336_000

    def shapes(part: Any) -> list[tuple[int, int]]:
        return [(p.shape[1], p.shape[0]) for p in part.parameters() if p.ndim == 2]

    assert shapes(dram.bottom) == shapes(resident.bottom) == [(16, 8), (8, 8)]
    assert shapes(dram.top) == [(8 + 3 * 256, 32), (32, 16), (16, 1)]
    assert shapes(resident.top) == [(8 + 2 * 32, 32), (32, 16), (16, 1)]
    assert type(dram.top[-1]) is torch.nn.Sigmoid
    assert dram.table.mode == "sum" and dram.table.sparse
    assert shapes(Dram(10, 8, 2).top) == [(16 + 24, 64), (64, 32), (32, 1)]


def test_flops_and_bytes_by_hand() -> None:
    """10 samples of three rows of 8 floats."""
    model = Dram(10, 8)
    weights = 16 * 8 + 8 * 8 + (8 + 24) * 32 + 32 * 16 + 16
    biases = 8 + 8 + 32 + 16 + 1
    assert model.flops(10) == 2 * 10 * weights
    assert model.moved_bytes(10) == 4 * (10 * 3 * 8 + weights + biases)


@pytest.mark.parametrize("model", [Dram(SMALL, 8), Resident()], ids=["dram", "resident"])
def test_forward_is_the_formula(model: MicroDlrm) -> None:
    """It equals plain indexing and matrix products; the parts come in their order."""
    (dense, ids), marks = batch(model, 3, 20), []
    found = model(dense, ids, [torch.arange(20)] * model.features, marks.append)
    rows = [t.weight[r] for t, r in zip(model.tables(), model.rows(ids), strict=True)]
    layers = [p.detach() for part in (model.bottom, model.top) for p in part.parameters()]
    hidden = dense
    for index in range(0, 4, 2):
        hidden = torch.relu(hidden @ layers[index].T + layers[index + 1])
    hidden = torch.cat([hidden, *rows], 1)
    for index in range(4, 10, 2):
        hidden = hidden @ layers[index].T + layers[index + 1]
        hidden = torch.sigmoid(hidden) if index == 8 else torch.relu(hidden)
    torch.testing.assert_close(found, hidden)
    assert marks == ["hash", "lookup", "mlp", "join", "mlp"]


@pytest.mark.parametrize("model", [Dram(SMALL, 8), Resident()], ids=["dram", "resident"])
def test_training_moves_the_rows_that_were_looked_up(model: MicroDlrm) -> None:
    """One step moves the looked-up rows and no others, by about the learning rate, and the MLPs."""
    probe = training_probe("t", model, 20)
    drawn = probe.prepare(5)
    before = [p.detach().clone() for p in model.parameters()]
    parts: list[str] = []
    probe.run(drawn, parts.append)
    (_, ids), _ = drawn
    for table in dict.fromkeys(model.tables()):
        asked = torch.cat([
            r for t, r in zip(model.tables(), model.rows(ids), strict=True) if t is table
        ])  # fmt: skip
        index = next(i for i, p in enumerate(model.parameters()) if p is table.weight)
        moved = (table.weight.detach() - before[index]).abs().amax(1)
        assert set(torch.nonzero(moved).flatten().tolist()) <= set(asked.tolist())
        assert 1e-4 < moved.max() < 2e-3
    assert not torch.equal(before[-1], list(model.parameters())[-1])
    assert set(parts) == {"hash", "lookup", "mlp", "join", "update"}


def test_a_seed_a_round() -> None:
    """Different rounds draw different ids, equal rounds equal ones, all from the published
    range."""
    model = Dram(SMALL, 8)
    first, again, other = (batch(model, number) for number in (1, 1, 2))
    assert torch.equal(first[1][0], again[1][0]) and not torch.equal(first[1][0], other[1][0])
    assert 49_000_000 < int(first[1][0].max()) < 50_000_000
    resident = batch(Resident(), 0)[1]
    assert [int(ids.max()) < limit for ids, limit in zip(resident, (943, 1682), strict=True)]


def test_regimes() -> None:
    """10 GB/s and 100 Gflop/s: the ridge lies at ten operations per byte."""
    top = Ceilings(10e9, 100e9)
    assert (top.roof(1), top.roof(100)) == (10e9, 100e9)
    assert top.regime(1e9, 1e9, 0.125) == ("memory", 0.8)
    assert top.regime(1e9, 1e7, 0.0125) == ("compute", 0.8)
    assert top.regime(1e9, 1e9, 1.0) == ("overhead", 0.1)


def test_ceilings_are_bytes_and_operations_over_time() -> None:
    """Three arrays of 2^25 floats; 2 · 1024^3 operations."""
    assert {probe.name for probe in ceiling_probes()} == {"triad", "product"}
    found = ceilings({"triad": Sample("t", (0.5,), {}), "product": Sample("p", (0.25,), {})})
    assert found == Ceilings(3 * 2**25 * 4 / 0.5, 8 * 1024**3)


def row(seconds: float, **parts: float) -> dict[str, Any]:
    """A measured step."""
    return {
        "seconds": seconds, "parts": parts, "working_set_bytes": 2**20, "flops": 1e6,
        "moved_bytes": 1e6, "bytes_per_second": 1e6 / seconds, "regime": "memory",
        "lookup_bytes_per_second": 1e6 / parts["lookup"], "of_ceiling": 0.5,
    }  # fmt: skip


def a_machine_like_the_m1() -> dict[str, Any]:
    """Made-up times under which every claim holds."""
    large = row(1.0, hash=0.02, lookup=0.8, join=0.03, mlp=0.15)
    small = row(1.0, hash=0.0, lookup=0.1, join=0.05, mlp=0.85)
    return {
        "rows": 9, "ceilings": {"bandwidth": 1.5e6, "flops": 1e9},
        "forward": {"micro-dlrm-dram": large, "micro-dlrm": small},
        "sweep": [{"rows": 9, "width": w, **row(0.1 + w, lookup=1.0)} for w in (1, 2, 4)],
        "mlp": [{"times": t, **row(1 + 0.05 * t, lookup=1.0)} for t in (1, 2)],
    }  # fmt: skip


def test_every_claim_can_hold_and_fail() -> None:
    """The M1's figures fulfil all six claims; each changed measurement breaks the claim it belongs
    to."""
    good = a_machine_like_the_m1()
    assert [claim["holds"] for claim in claims(good)] == [True] * 6
    for index, change in enumerate((
        lambda r: r["forward"]["micro-dlrm"].update(bytes_per_second=6e9),
        lambda r: r["forward"]["micro-dlrm"]["parts"].update(mlp=0.7),
        lambda r: r["forward"]["micro-dlrm-dram"]["parts"].update(lookup=0.6),
        lambda r: r["ceilings"].update(bandwidth=2e6),
        lambda r: r["sweep"][1].update(seconds=5.0),
        lambda r: r["mlp"][1].update(seconds=2.0),
    )):  # fmt: skip
        changed = a_machine_like_the_m1()
        change(changed)
        assert [claim["holds"] for claim in claims(changed)].index(False) == index


def test_what_the_reasons_are_made_of() -> None:
    """A straight line has distance 0 from itself; MLPs twice as wide; both ceilings."""
    good = a_machine_like_the_m1()
    assert line_error(good) == pytest.approx(0.0, abs=1e-12)
    assert mlp_growth(good) == pytest.approx(1.1 / 1.05 - 1)
    assert at_ceilings(good, "micro-dlrm") == pytest.approx((1 / 1.5) / (1 / 1.5 + 1e-3))


def test_forward_probes_time_their_parts() -> None:
    """The clock covers every part of a step."""
    ticks = iter(range(10**6))
    probe = forward_probe("f", Dram(SMALL, 8), 16)
    sample = measure([probe], 1, lambda: float(next(ticks)))["f"]
    assert sample.parts == {"hash": (1.0,), "lookup": (1.0,), "mlp": (2.0,), "join": (1.0,)}


def test_the_page_shows_the_newest_stored_result() -> None:
    """Tables and verdicts are generated from the stored result, not typed."""
    blocks = figures.blocks(stored(ROOT / "benchmarks" / "micro_dlrm" / "results"))
    message = "run: python benchmarks/micro_dlrm/figures.py"
    assert update(figures.PAGE, blocks, check=True) == 0, message
