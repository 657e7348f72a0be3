"""Bytes of rows and optimizer state against FBGEMM's own modules.

Its CPU modules hold data; its CUDA modules are constructed on PyTorch's meta device, where tensors
have a shape and a type but no data, so that every optimizer and placement is FBGEMM's own.
"""

import logging
import warnings
from typing import Any

import numpy as np
import pytest

from milp_planner.errors import BadInput
from milp_planner.inputs import Table
from milp_planner.inputs.constraints import COLUMN_STEP
from milp_planner.pricing.job import table_columns
from milp_planner.pricing.runtimes import key_value
from tests.milp_planner.pricing.build import entry, held, model, priced

ROWS, DIM = 1000, 128
TYPES = {"fp32": "FP32", "fp16": "FP16", "bf16": "BF16", "fp8": "NFP8", "int8": "INT8"}
OPTIMIZERS = {
    "sgd": "EXACT_SGD",
    "adam": "ADAM",
    "adagrad": "EXACT_ADAGRAD",
    "rowwise_adagrad": "EXACT_ROWWISE_ADAGRAD",
    "lamb": "LAMB",
    "partial_rowwise_adam": "PARTIAL_ROWWISE_ADAM",
    "partial_rowwise_lamb": "PARTIAL_ROWWISE_LAMB",
    "other": "LARS_SGD",
}
ON_CPU = ("sgd", "adagrad", "rowwise_adagrad")


def ours(option: str, dtype: str, optimizer: str) -> dict[str, int]:
    """What a shard that is the whole table takes, and what moves with it."""
    options = priced({"rows": ROWS, "dim": DIM, "dtype": dtype, "optimizer": optimizer}, ranks=1)
    return held(options, option) | {"all": int(options.entries.move[entry(options, option)])}


def module(location: str, device: str, dtype: str, optimizer: str) -> Any:
    """One table in FBGEMM's training module."""
    training = pytest.importorskip("fbgemm_gpu.split_table_batched_embeddings_ops_training")
    import torch
    from fbgemm_gpu.split_embedding_configs import SparseType

    place = training.EmbeddingLocation[location]
    where = training.ComputeDevice["CPU" if device == "cpu" else "CUDA"]
    logging.disable(logging.INFO)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = training.SplitTableBatchedEmbeddingBagsCodegen(
            [(ROWS, DIM, place, where)],
            optimizer=training.OptimType[OPTIMIZERS[optimizer]],
            weights_precision=SparseType[TYPES[dtype]],
            cache_precision=SparseType.FP16,  # nothing is cached here
            device=torch.device(device),
        )
    logging.disable(logging.NOTSET)
    return made


def state_of(made: Any, memory: str) -> int:
    """Bytes of the module's momenta in one memory (empty ones have a token of bytes)."""
    found = [getattr(made, f"momentum{i}_{memory}", None) for i in (1, 2)]
    return sum(each.nbytes for each in found if each is not None and each.numel() >= ROWS)


@pytest.mark.parametrize("optimizer", ON_CPU)
@pytest.mark.parametrize("dtype", TYPES)
def test_state_of_modules_with_data(dtype: str, optimizer: str) -> None:
    """Rows and state of FBGEMM's CPU modules, by its own ``split_optimizer_states``."""
    made = module("HOST", "cpu", dtype, optimizer)
    state = 0
    if optimizer != "sgd":
        state = sum(each.nbytes for each in made.split_optimizer_states()[0])
    found = ours("table_wise/HBM_ONLY", dtype, optimizer)
    assert (found["weights"], found["state"]) == (made.weights_host.nbytes, state)
    assert found["all"] == found["weights"] + found["state"]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("dtype", TYPES)
def test_rows_and_state_in_hbm_and_in_host_memory(dtype: str, optimizer: str) -> None:
    """Of a managed table, state of rows stays on the device, state of elements goes with them."""
    options = priced({"rows": ROWS, "dim": DIM, "dtype": dtype, "optimizer": optimizer}, ranks=1)
    made, found = module("DEVICE", "meta", dtype, optimizer), held(options, "table_wise/HBM_ONLY")
    assert (found["weights"], found["state"]) == (made.weights_dev.nbytes, state_of(made, "dev"))
    assert state_of(made, "uvm") == found["ddr"] == 0
    made, found = module("MANAGED", "meta", dtype, optimizer), held(options, "table_wise/HOST_ONLY")
    assert (found["weights"], found["state"]) == (0, state_of(made, "dev"))
    assert found["ddr"] == made.weights_uvm.nbytes + state_of(made, "uvm")


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_state_of_cached_tables(optimizer: str) -> None:
    """No state is cached: that of rows is on the device, that of elements is managed."""
    training = pytest.importorskip("fbgemm_gpu.split_table_batched_embeddings_ops_training")
    where = training.EmbeddingLocation.MANAGED_CACHING, training.ComputeDevice.CUDA
    near = far = 0
    uncached = module("MANAGED", "meta", "fp16", optimizer)
    for index in (1, 2):
        sizes = [getattr(uncached, f"momentum{index}_{at}").numel() for at in ("dev", "uvm")]
        if max(sizes) < ROWS:
            continue
        split = training.construct_split_state(
            [(ROWS, DIM, *where)], rowwise=sizes[0] >= ROWS, cacheable=False
        )
        near, far = near + 4 * split.dev_size, far + 4 * split.uvm_size
    found = ours("table_wise/CACHING/0.5", "fp16", optimizer)
    assert (found["state"], found["ddr"]) == (near, ROWS * DIM * 2 + far)
    assert found["weights"] == ROWS * DIM  # half of them


def test_an_fp8_cache_holds_fp16() -> None:
    """TorchRec's ``batched_embedding_kernel.py`` sets cache_precision FP16 for NFP8."""
    assert ours("table_wise/CACHING/0.5", "fp8", "sgd")["weights"] == ROWS // 2 * DIM * 2


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
@pytest.mark.parametrize("optimizer", [*ON_CPU, "adam"])
def test_state_of_replicas_is_of_the_tables_type(dtype: str, optimizer: str) -> None:
    """A dense kernel is trained by PyTorch's optimizers, whose state has the parameter's type."""
    torch = pytest.importorskip("torch")
    rowwise = pytest.importorskip("torchrec.optim.rowwise_adagrad")
    kinds = {
        "sgd": torch.optim.SGD,
        "adagrad": torch.optim.Adagrad,
        "adam": torch.optim.Adam,
        "rowwise_adagrad": rowwise.RowWiseAdagrad,
    }
    names = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
    weights = torch.nn.Parameter(torch.zeros(ROWS, DIM, dtype=names[dtype]))
    trained = kinds[optimizer]([weights], lr=0.1)
    weights.grad = torch.zeros_like(weights)
    trained.step()
    states = [each for each in trained.state[weights].values() if torch.is_tensor(each)]
    state = sum(each.nbytes for each in states if each.numel() > 1)
    assert ours("data_parallel/HBM_ONLY", dtype, optimizer)["state"] == state


@pytest.mark.parametrize("optimizer", ["rowwise_adagrad", "adam", "partial_rowwise_adam"])
@pytest.mark.parametrize("in_rows", [False, True])
@pytest.mark.parametrize("dtype", ["fp32", "fp16"])
def test_state_in_key_value_stores(dtype: str, optimizer: str, in_rows: bool) -> None:
    """State beside the rows as FBGEMM splits it (Adam also counts a row's updates), or in them."""
    configs = pytest.importorskip("fbgemm_gpu.split_embedding_configs")
    kind = configs.EmbOptimType[OPTIMIZERS[optimizer]]
    splits = kind.ssd_state_splits([(ROWS, DIM)], {}, enable_optimizer_offloading=in_rows)
    beside = sum(4 * split.dev_size for split, _, _ in splits)
    store = {"virtual": in_rows, "optimizer_in_rows": in_rows}
    tables = table_columns(model({"dtype": dtype, "optimizer": optimizer, "key_value": store}))
    table, columns = np.array([0]), np.array([DIM])
    assert ROWS * int(key_value.state_bytes(tables, table, columns)[0]) == beside
    element = 4 if dtype == "fp32" else 2
    inside = -(-kind.state_size_nbytes(DIM) // element) if in_rows else 0
    assert key_value.row_elements(tables, table, columns).tolist() == [DIM + configs.pad4(inside)]


def test_lookups_return_fp32_unless_told_otherwise() -> None:
    """FBGEMM's output_dtype; an fp16 table without a codec exchanges fp32, and nothing is cast."""
    bags = 8 * 512
    found = held(priced({"dtype": "fp16"}), "table_wise/HBM_ONLY")
    assert found["output"] == found["send_buffer"] == bags * 64 * 4
    assert found["encoding"] == 0
    told = priced({"dtype": "fp16", "output_dtype": "fp16"}, exchange_dtype="fp16")
    found = held(told, "table_wise/HBM_ONLY")
    assert (found["output"], found["encoding"]) == (bags * 64 * 2, 0)


def test_the_table_of_the_issue() -> None:
    """A thousand rows of 128 in fp16 with Adam: 1.2207 MiB, not 0.7324."""
    row = ours("table_wise/HBM_ONLY", "fp16", "adam")
    assert row["weights"] + row["state"] == ROWS * DIM * (2 + 8)


@pytest.mark.parametrize("dim", [4, 6, 128, 130])
def test_fbgemm_runs_the_dims_that_a_table_may_have(dim: int) -> None:
    """Multiples of four, and no others."""
    training = pytest.importorskip("fbgemm_gpu.split_table_batched_embeddings_ops_training")
    spec = (10, dim, training.EmbeddingLocation.HOST, training.ComputeDevice.CPU)
    data = {"name": "t", "rows": 10, "dim": dim}
    if dim % COLUMN_STEP == 0:
        assert Table.from_dict(data).dim == dim
        training.SplitTableBatchedEmbeddingBagsCodegen([spec])
        return
    with pytest.raises(BadInput, match="multiples of 4"):
        Table.from_dict(data)
    with pytest.raises(AssertionError, match="multiple of 4"):
        training.SplitTableBatchedEmbeddingBagsCodegen([spec])
