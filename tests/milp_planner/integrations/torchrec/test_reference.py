"""``module:function`` names a TorchRec model on the command line.

Pooling factors measured from batches.
"""

from pathlib import Path

import pytest
import torch
from torchrec import KeyedJaggedTensor
from torchrec.distributed.planner.types import ParameterConstraints

from milp_planner.errors import BadInput
from milp_planner.integrations.torchrec import TorchRecInputs, load_inputs, measured_pooling
from tests.corpus import mistakes

from .models import bags, sequences

MODEL = """
import torch
from torchrec import EmbeddingBagCollection
from torchrec.distributed.planner import Topology
from torchrec.modules.embedding_configs import EmbeddingBagConfig

def inputs():
    table = EmbeddingBagConfig(
        name="t", num_embeddings=1000, embedding_dim=64, feature_names=["f"])
    module = EmbeddingBagCollection(tables=[table], device=torch.device("meta"))
    return {"module": module, "topology": Topology(2, "cuda"), "batch_size": 16}

def wrong_field():
    return {"module": None, "topology": None, "batch": 3}

def missing_field():
    return {"module": None}

def wrong_type():
    return 3
"""


@pytest.fixture
def model_file(tmp_path: Path) -> Path:
    """A user's file with several functions."""
    path = tmp_path / "my_model.py"
    path.write_text(MODEL)
    return path


def test_from_a_file(model_file: Path) -> None:
    """A mapping becomes inputs; sharders default to TorchRec's."""
    found = load_inputs(f"{model_file}:inputs")
    assert isinstance(found, TorchRecInputs)
    assert found.batch_size == 16
    assert any(type(s).__name__ == "EmbeddingBagCollectionSharder" for s in found.all_sharders())
    problem = found.planner(stats=[]).prepare(found.module, found.all_sharders())
    assert problem is not None and problem.instance.table_names == ("t",)


def test_from_a_module(model_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An importable module works, too."""
    monkeypatch.syspath_prepend(model_file.parent)
    assert load_inputs("my_model:inputs").batch_size == 16


@pytest.mark.parametrize(("name", "sentence"), mistakes(__file__, "wrong functions"))
def test_wrong_functions(model_file: Path, name: str, sentence: str) -> None:
    """A function that is missing or returns something else gets one sentence."""
    with pytest.raises(BadInput, match=sentence):
        load_inputs(f"{model_file}:{name}")


@pytest.mark.parametrize("reference", ["model.py", "model.py:", ":inputs", "a b:c d"])
def test_malformed_references(reference: str) -> None:
    """A reference needs a module or file, and a function."""
    with pytest.raises(BadInput, match="module:function"):
        load_inputs(reference)


def test_absent_places() -> None:
    """Missing files and modules are named."""
    with pytest.raises(BadInput, match=r"no file 'nowhere\.py'"):
        load_inputs("nowhere.py:f")
    with pytest.raises(BadInput, match="no Python module 'nowhere_at_all'"):
        load_inputs("nowhere_at_all:f")


def test_code_that_raises(tmp_path: Path) -> None:
    """An error in the user's file or function is reported with its line."""
    path = tmp_path / "broken.py"
    path.write_text("def f():\n    raise KeyError('x')\n")
    with pytest.raises(BadInput, match=r"raised KeyError: 'x' \(.*broken\.py, line 2\)"):
        load_inputs(f"{path}:f")
    path.write_text("import no_such_module_here\n")
    with pytest.raises(BadInput, match="raised ModuleNotFoundError"):
        load_inputs(f"{path}:f")


def batch(lengths: dict[str, list[int]]) -> KeyedJaggedTensor:
    """A batch with so many ids of each feature in each sample."""
    counts = [n for row in lengths.values() for n in row]
    return KeyedJaggedTensor(
        keys=list(lengths),
        values=torch.zeros(sum(counts), dtype=torch.int64),
        lengths=torch.tensor(counts),
    )


def test_means_over_all_samples() -> None:
    """Ids divided by samples over all batches, so that a larger batch counts for more."""
    batches = [
        batch({"tf0": [3, 1, 2], "sf0": [0, 0, 9]}),
        batch({"tf0": [4], "sf0": [1]}),
    ]
    tables = [*bags([(10, 4)]).embedding_bag_configs(), *sequences([(10, 4)]).embedding_configs()]
    found = measured_pooling(batches, tables)
    assert found["t0"].pooling_factors == [10 / 4]
    assert found["s0"].pooling_factors == [10 / 4]


def test_one_factor_a_feature_and_the_rest_is_kept() -> None:
    """Factors follow the order of the table's features; given constraints are copied."""
    [table] = bags([(10, 4)]).embedding_bag_configs()
    table.feature_names = ["b", "a"]
    given = {"t0": ParameterConstraints(sharding_types=["row_wise"]), "x": ParameterConstraints()}
    found = measured_pooling([batch({"a": [1, 1], "b": [5, 6]})], [table], given)
    assert found["t0"].pooling_factors == [5.5, 1.0]
    assert found["t0"].sharding_types == ["row_wise"]
    assert given["t0"].pooling_factors == [1.0], "the given constraint is not changed"
    assert set(found) == {"t0", "x"}


def test_a_feature_without_samples_is_a_sentence() -> None:
    """A table cannot be measured if no batch has its feature."""
    tables = bags([(10, 4)]).embedding_bag_configs()
    with pytest.raises(BadInput, match=r"'t0': no batch has a sample of feature 'tf0'; found: g"):
        measured_pooling([batch({"g": [1]})], tables)
    with pytest.raises(BadInput, match="no features"):
        measured_pooling([], tables)
