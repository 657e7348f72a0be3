"""Real dynamicemb tables, on a stand-in library: what each mode asks for, and what is timed."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
from milp_planner.features.calibrate import cuda_machine  # noqa: E402


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[SimpleNamespace]:
    """A library that records how tables are made and looks rows up in a small dense table."""
    made: list[SimpleNamespace] = []

    class Tables(torch.nn.Module):
        def __init__(self, **fields: object) -> None:
            super().__init__()
            self.seen: list[torch.Tensor] = []
            self.weight = torch.nn.Parameter(torch.zeros(cuda_machine.ROWS, 1))
            made.append(SimpleNamespace(table=self, **fields))

        def forward(self, ids: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
            assert offsets[-1] == len(ids)
            self.seen.append(ids)
            return self.weight[ids]

    library = ModuleType("dynamicemb")
    library.DynamicEmbTableOptions = SimpleNamespace
    library.DynamicEmbInitializerArgs = SimpleNamespace
    library.DynamicEmbInitializerMode = SimpleNamespace(NORMAL="normal")
    library.DynamicEmbPoolingMode = SimpleNamespace(NONE="none")
    library.EmbOptimType = SimpleNamespace(ADAM="adam")
    tables = ModuleType("dynamicemb.batched_dynamicemb_tables")
    tables.BatchedDynamicEmbeddingTablesV2 = Tables
    monkeypatch.setitem(sys.modules, "dynamicemb", library)
    monkeypatch.setitem(sys.modules, "dynamicemb.batched_dynamicemb_tables", tables)
    monkeypatch.setattr(cuda_machine, "ROWS", 64)
    monkeypatch.setattr(cuda_machine, "IDS", 16)
    return made


@pytest.mark.parametrize(
    ("mode", "ratio", "caching"),
    [("HBM_ONLY", 1.0, False), ("CACHING", 0.1, True), ("HYBRID", 0.4, False),
     ("HOST_ONLY", 0.0, False)],
)  # fmt: skip
def test_each_mode_asks_for_its_layout(
    built: list[SimpleNamespace], mode: str, ratio: float, caching: bool
) -> None:
    """The runtime chooses the layout by ``caching`` and the bytes of values in HBM."""
    probe = cuda_machine.runtime_probe(mode, ratio, 0, "cpu")
    (options,) = built[0].table_options
    assert options.caching is caching
    assert options.local_hbm_for_values == int(64 * 128 * 4 * 3 * ratio)  # Adam: two moments
    probe.run(probe.prepare(0), lambda _: None)
    assert built[0].table.weight.grad.abs().sum() > 0


def test_every_key_is_inserted_before_the_clock_starts(built: list[SimpleNamespace]) -> None:
    """All rows are looked up once before; timed ids are skewed, in range and new every round."""
    probe = cuda_machine.runtime_probe("HYBRID", 0.1, 0, "cpu")
    assert torch.cat(built[0].table.seen).tolist() == list(range(64))
    drawn = [probe.prepare(number) for number in range(200)]
    assert not torch.equal(drawn[0], drawn[1])
    counts = torch.bincount(torch.cat(drawn), minlength=64)
    assert len(counts) == 64
    assert counts[0] / counts[7] == pytest.approx(8**1.05, rel=0.35)
