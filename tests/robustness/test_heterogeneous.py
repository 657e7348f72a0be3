"""Unequal ranks and machines all the way: YAML, plan, verify, report."""

from pathlib import Path

import pytest

from formulations import Settings, solve
from milp_planner.features.plan.ranks import ranks_of
from milp_planner.inputs.files import load_cluster, load_model
from milp_planner.plans.compile import compile_for
from tests.formulations.brute_force import brute_force
from tests.milp_planner.cli.conftest import Cli, cli  # noqa: F401

MODEL = """\
name: m
workload: {batch_per_rank: 64, cache_ratios: [1/2]}
defaults: {pooling_factor: 2, constraints: {sharding_types: [table_wise, table_row_wise]}}
tables:
  - {name: large, rows: 1M, dim: 64}
  - {name: middle, rows: 700k, dim: 64}
  - {name: small, rows: 100k, dim: 32}
"""
CLUSTER = """\
name: unequal
profile: h100
machines:
  - ddr: 256MiB
    ranks: [{hbm: 320MiB, reserved: 300MiB}, {hbm: 320MiB}, {hbm: 100MiB}]
  - {ddr: 600MiB, ranks: 2, hbm: 128MiB}
interconnect: {intra_machine: 450GB/s, inter_machine: 50GB/s}
reservations: {hbm_percent: 0, kjt_multiple: 0, min_headroom: 0}
"""
MIB = 2**20


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """The two files on disk."""
    (tmp_path / "m.yaml").write_text(MODEL)
    (tmp_path / "c.yaml").write_text(CLUSTER)
    return tmp_path / "m.yaml", tmp_path / "c.yaml"


def test_capacities_are_each_place_s_own(files: tuple[Path, Path]) -> None:
    """What embeddings may use: a rank's own reservation and a machine's own DDR count."""
    model, cluster = load_model(files[0]), load_cluster(files[1])
    assert cluster.usable_hbm(model) == tuple(m * MIB for m in (20, 320, 100, 128, 128))
    instance = compile_for(model, cluster, "step_time").instance
    *near, ddr = instance.resources
    sent = 3 * 64 * (64 + 64 + 32) * 4  # gradients of the embeddings, in order, as sent
    room = [m * MIB - sent for m in (20, 320, 100, 128, 128)]
    assert room in [hbm.capacity.tolist() for hbm in near]
    assert ddr.capacity.tolist() == [256 * MIB, 600 * MIB]
    assert instance.machines == ((0, 1, 2), (3, 4))


@pytest.mark.parametrize("objective", ["step_time", "busiest_rank", "total"])
def test_the_exact_plan_is_brute_forces(files: tuple[Path, Path], objective: str) -> None:
    """On unequal places the exact models find what trying every plan finds."""
    instance = compile_for(*files, objective).instance
    truth = brute_force(instance, 3_000_000).objective
    assert truth is not None
    for formulation in ("cpsat", "mip"):
        found = solve(instance, formulation, Settings(time_limit=60, workers=1))
        assert found.objective == truth and (found.gap or 0) < 1e-3
        assert found.closed or formulation == "mip"


def test_from_files_to_a_verified_report(cli: Cli, files: tuple[Path, Path]) -> None:  # noqa: F811
    """Planned, verified without a solver, and every place reported against its own capacity."""
    done = cli("plan", *files, "--workers", "1", "-o", "plan.json")
    assert done.code == 0, done.err
    assert "320.0 MiB" in done.out and "128.0 MiB" in done.out and "600.0 MiB" in done.out
    assert "reserved on this rank alone" in done.out
    assert cli("verify", "plan.json").code == 0
    from milp_planner.plans.plan_file import read_plan

    plan = read_plan("plan.json")
    assert plan.outcome.placement is not None
    info = ranks_of(plan.instance, plan.outcome.placement)
    assert [row.machine for row in info.rows] == [0, 0, 0, 1, 1]
    assert [row.usage[0].capacity // MIB for row in info.rows] == [19, 319, 99, 127, 127]
    assert all(u.used <= u.capacity for row in info.rows for u in row.usage)
    assert [m.usage[0].capacity // MIB for m in info.machines] == [256, 600]


def test_a_reservation_decides(files: tuple[Path, Path]) -> None:
    """A table bound to rank 0's HBM fits without that rank's own reservation, not with it."""
    bound = "dim: 64, constraints: {ranks: [0], sharding_types: [table_wise], modes: [HBM_ONLY]}}"
    files[0].write_text(MODEL.replace("1M, dim: 64}", f"1M, {bound}"))
    settings = Settings(time_limit=60, workers=1)
    held = solve(compile_for(*files, "busiest_rank").instance, "cpsat", settings)
    files[1].write_text(CLUSTER.replace("320MiB, reserved: 300MiB", "320MiB"))
    free = solve(compile_for(*files, "busiest_rank").instance, "cpsat", settings)
    assert (held.status, free.status) == ("infeasible", "optimal")
