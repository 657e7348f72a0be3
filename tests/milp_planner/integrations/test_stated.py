"""Files as the trainers' own examples write them: the plan that runs, and what they state."""

import itertools
import random
from fractions import Fraction
from pathlib import Path

import pytest

from milp_planner import audit
from milp_planner.errors import BadInput, FallsShort
from milp_planner.inputs import Model
from milp_planner.integrations import exports
from milp_planner.integrations.replay import tzrec
from milp_planner.integrations.replay.estimate import Asked, Bytes, Job, shards_of, tiers
from milp_planner.integrations.stated import Stated, read_stated
from tests.milp_planner.integrations.exports import plans

TAOBAO = """
train_input_path: "data/taobao_data_train/*.parquet"
train_config {
    sparse_optimizer { adagrad_optimizer { lr: 0.001 } constant_learning_rate { } }
    dense_optimizer { adam_optimizer { lr: 0.001 } }
    num_epochs: 1
}
data_config { batch_size: 8192 dataset_type: ParquetDataset label_fields: "clk" num_workers: 8 }
feature_configs {
    id_feature {
        feature_name: "user_id" expression: "user:user_id" num_buckets: 1141730 embedding_dim: 16
    }
}
feature_configs {
    id_feature {
        feature_name: "adgroup_id" expression: "item:adgroup_id" hash_bucket_size: 846812
        embedding_dim: 16 embedding_name: "adgroup"
    }
}
feature_configs {
    raw_feature {
        feature_name: "price" expression: "item:price" boundaries: [1.1, 2.2, 3.6] embedding_dim: 16
    }
}
feature_configs { raw_feature { feature_name: "age" expression: "user:age" } }
feature_configs {
    id_feature {
        feature_name: "brand" expression: "item:brand" embedding_dim: 16
        dynamicemb { max_capacity: 461497 }
    }
}
feature_configs {
    sequence_feature {
        sequence_name: "click_50_seq" sequence_length: 100 sequence_delim: "|"
        features {
            id_feature {
                feature_name: "adgroup_id" hash_bucket_size: 846812 embedding_dim: 16
                embedding_name: "adgroup"
            }
        }
        features { raw_feature { feature_name: "price" expression: "item:price" } }
    }
}
model_config { feature_groups { group_name: "user" feature_names: "user_id" group_type: DEEP } }
"""
TABLES = (
    {"name": "user_id_emb", "rows": 1_000_000, "dim": 16},
    {"name": "adgroup", "rows": 846_812, "dim": 16, "num_features": 2, "pooling_factor": 50},
    {"name": "price_emb", "rows": 4, "dim": 32},
    {"name": "brand_emb", "rows": 461_497, "dim": 16},
)
WORK = {"batch_per_rank": 8192, "exchange_dtype": "fp16"}


def _model(**work: object) -> Model:
    return Model.from_dict({"name": "m", "workload": {**WORK, **work}, "tables": list(TABLES)})


def _stated(text: str, tmp_path: Path, model: Model, ranks: int = 2) -> Stated:
    path = tmp_path / "today"
    path.write_text(text)
    return read_stated(path, model, plans.cluster(2, ranks))


def test_a_config_of_torcheasyrec(tmp_path: Path) -> None:
    """Every feature with a table is found; what differs from the model is judged, and listed."""
    found = _stated(TAOBAO, tmp_path, _model())
    assert isinstance(found.plan, dict) and set(found.plan) == {t["name"] for t in TABLES}
    assert found.plan["brand_emb"].sharding_type == "row_wise"
    rows = {t.name: (t.kind, t.rows, t.dim, t.optimizer) for t in found.model.tables}
    assert rows == {
        "user_id_emb": ("torchrec", 1_141_730, 16, "adagrad"),
        "adgroup": ("torchrec", 846_812, 16, "adagrad"),
        "price_emb": ("torchrec", 4, 16, "adagrad"),
        "brand_emb": ("dynamicemb", 461_497, 16, "adagrad"),
    }
    assert found.notes[:-1] == (
        "the trainer has exchange_dtype fp32; the model has fp16",
        "the trainer has exchange_dtype_backward fp32; the model has fp16",
        "the file states kind dynamicemb of brand_emb; the model has torchrec",
        "the file states rows 1141730 of user_id_emb; the model has 1000000",
        "the file states dim 16 of price_emb; the model has 32",
        "the file states optimizer adagrad of user_id_emb; the model has rowwise_adagrad; so of 3 "
        "more tables",
    )
    assert "user_id_emb, adgroup, price_emb" in found.notes[-1]
    judged = audit(found.plan, found.model, plans.cluster(), formulation="greedy", time_limit=5)
    assert judged.verdict.feasible


def test_every_field_of_a_config_counts(tmp_path: Path) -> None:
    """A batch, and a table of other rows, that the model does not have."""
    usual = _stated(TAOBAO, tmp_path, _model())
    other = _stated(TAOBAO.replace("8192", "512"), tmp_path, _model())
    assert other.model.workload.batch_per_rank == 512
    assert "the file states batch_per_rank 512; the model has 8192" in other.notes
    assert usual.model.workload.batch_per_rank == 8192
    silent = TAOBAO.replace("data_config { batch_size: 8192", "data_config {")
    assert _stated(silent, tmp_path, _model()).model.workload.batch_per_rank == 8192


def test_whose_constraints_count(tmp_path: Path) -> None:
    """A feature's own replace those of all tables, and put its table out of dynamicemb."""
    own = 'embedding_constraints { sharding_types: "column_wise" compute_kernels: "fused_uvm" }'
    text = TAOBAO.replace("max_capacity: 461497 }", "max_capacity: 461497 } " + own)
    every = 'global_embedding_constraints { sharding_types: "row_wise" compute_kernels: "fused" }'
    found = _stated(text.replace("num_epochs: 1", every), tmp_path, _model())
    assert isinstance(found.plan, dict)
    ways = {n: (p.sharding_type, p.mode) for n, p in found.plan.items()}
    assert ways.pop("brand_emb") == ("table_wise", "HOST_ONLY")  # one column shard
    assert set(ways.values()) == {("row_wise", "HBM_ONLY")}
    assert not any("leaves open" in note for note in found.notes)
    stops = text.replace('"column_wise"', '"data_parallel"')
    with pytest.raises(FallsShort, match=r"'brand_emb'.*No available sharding type"):
        _stated(stops, tmp_path, _model())


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('feature_name: "user_id" ', 'feature_name: "user" ', "unknown table 'user'"),
        ("raw_feature {", "my_feature {", "no block of a known kind"),
        ("hash_bucket_size: 846812", "hash_bucket_size: 7", "disagree on rows"),
    ],
)
def test_bad_configs(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    """One sentence each."""
    with pytest.raises(BadInput, match=sentence):
        _stated(TAOBAO.replace(old, new, 1), tmp_path, _model())


def test_bytes_of_a_dynamicemb_table_as_torcheasyrec_counts_them() -> None:
    """12.5 million rows of 128 floats with Adam, 0.3 of them in HBM."""
    for kernel, ddr in (("HYBRID", 13_440_000_000), ("CACHING", 19_200_000_000)):
        own = Asked("d", 1, 128, 4, "adam", "row_wise", kernel, load_factor=Fraction(3, 10),
                    bucket=128)  # fmt: skip
        assert tiers(own, 12_500_000) == Bytes(5_972_890_625, ddr)


@pytest.mark.parametrize("seed", range(6))
def test_the_programme_finds_the_cheapest_sum(seed: int) -> None:
    """Of all combinations that leave a bin free for each table's rounding, none is cheaper than the
    cheapest proposal, and every proposal after the first keeps within all memory."""
    draw = random.Random(seed)
    job = Job(2, 2, 64)
    tables = [
        [
            Asked(f"t{i}", rows, 128, 4, "adagrad", kind, kernel)
            for kind in ("row_wise", "table_wise")
            for kernel in draw.sample(["fused", "fused_uvm", "fused_uvm_caching"], 2)
        ]
        for i, rows in enumerate(draw.sample([2000, 40_000, 300_000, 700_000], 3))
    ]  # fmt: skip
    room = Bytes(draw.choice([10, 200, 600]) * 2**20, 2**40)

    def amount(proposal: tuple[Asked, ...]) -> tuple[float, int]:
        shards = [shard for option in proposal for shard in shards_of(option, job)]
        return sum(s.perf.total for s in shards), sum(s.storage.hbm for s in shards)

    def one_by_one(proposal: tuple[Asked, ...]) -> bool:
        return all(s.storage.fits(room) for option in proposal for s in shards_of(option, job))

    first, *others = list(tzrec._programme(tables, job, room))
    assert all(amount(each)[1] < 2 * room.hbm and one_by_one(each) for each in others)
    less = 2 * room.hbm * (1 - len(tables) / (2 * tzrec.BINS[0]))
    every = [p for p in itertools.product(*tables) if amount(p)[1] < less and one_by_one(p)]
    if every:
        best = min(amount(p)[0] for p in every)
        assert min(amount(p)[0] for p in others) <= best * (1 + 1e-5)
    stored = [sum(sum(s.storage) for o in p for s in shards_of(o, job)) for p in (first, *others)]
    assert stored[0] == min(stored)


GIN = """\
TrainerArgs.train_batch_size = 32  # a rank
TrainerArgs.max_train_iters = 1000
DatasetArgs.dataset_name = 'kuairand-27k'
NetworkArgs.dtype_str = "bfloat16"
NetworkArgs.hidden_size = 128
OptimizerArgs.optimizer_str = 'adam'
"""
DESCRIBED = """
video/DynamicEmbeddingArgs.feature_names = ['video_id']
video/DynamicEmbeddingArgs.table_name = 'v'
video/DynamicEmbeddingArgs.item_vocab_size_or_capacity = 4096
video/DynamicEmbeddingArgs.item_vocab_gpu_capacity_ratio = 0.25
user/EmbeddingArgs.table_name = 'u'
user/EmbeddingArgs.sharding_type = 'data_parallel'
BenchmarkDatasetArgs.embedding_args = [@video/DynamicEmbeddingArgs(), @user/EmbeddingArgs()]
"""


def _hstu() -> Model:
    tables = [plans.dynamic("v"), plans.static("u", dim=64), plans.static("w", dim=64)]
    return plans.model(*tables)


def test_a_gin_file_of_recsys_examples(tmp_path: Path) -> None:
    """What it states of batch, columns and optimizer counts; tables that it does not describe are
    as the example's script and planner have them."""
    found = _stated(GIN, tmp_path, _hstu())
    assert isinstance(found.plan, dict)
    assert found.model.workload.batch_per_rank == 32
    assert {(t.dim, t.optimizer) for t in found.model.tables} == {(128, "adam")}
    assert {n: (p.mode, p.sharding_type) for n, p in found.plan.items()} == dict.fromkeys(
        ("v", "u", "w"), ("HBM_ONLY", "row_wise")
    )
    assert "the file states batch_per_rank 32; the model has 64" in found.notes
    assert "the file states no HBM for dynamicemb tables (v)" in found.notes[-1]
    fetched = _stated(f"{GIN}TrainerArgs.pipeline_type = 'prefetch'\n", tmp_path, _hstu())
    assert isinstance(fetched.plan, dict)
    assert (fetched.plan["u"].mode, fetched.plan["u"].cache_ratio) == ("CACHING", Fraction(1, 5))


def test_tables_that_a_gin_file_describes(tmp_path: Path) -> None:
    """Rows, the share of HBM, and replication."""
    found = _stated(GIN + DESCRIBED, tmp_path, _hstu())
    assert isinstance(found.plan, dict)
    assert found.model.table("v").rows == 4096
    assert (found.plan["v"].mode, found.plan["v"].cache_ratio) == ("HYBRID", Fraction(1, 4))
    assert found.plan["u"].sharding_type == "data_parallel"
    caching = DESCRIBED + "video/DynamicEmbeddingArgs.caching = True\n"
    cached = _stated(GIN + caching, tmp_path, _hstu()).plan
    assert isinstance(cached, dict) and cached["v"].mode == "CACHING"
    with pytest.raises(BadInput, match="unknown table 'x'"):
        _stated(GIN + DESCRIBED.replace("'v'", "'x'"), tmp_path, _hstu())


def test_items_and_context_have_columns_of_their_own(tmp_path: Path) -> None:
    """Where both widths are stated, tables of items have one and others the other; hidden_size is
    then the network's alone, as a table that the file does not describe shows."""
    text = GIN + DESCRIBED + "user/EmbeddingArgs.feature_names = ['user_id']\n"
    text += "NetworkArgs.item_embedding_dim = 32\nNetworkArgs.contextual_embedding_dim = 16\n"
    text += "BenchmarkDatasetArgs.item_feature_name = 'video_id'\n"
    found = _stated(text, tmp_path, _hstu()).model
    assert [found.table(name).dim for name in ("v", "u", "w")] == [32, 16, 64]
    unnamed = _stated(
        text.replace("BenchmarkDatasetArgs.item", "DatasetArgs.other"), tmp_path, _hstu()
    )
    assert {table.dim for table in unnamed.model.tables} == {64}
    assert any("not which tables are of items" in note for note in unnamed.notes)
    one = _stated(
        text.replace("contextual_embedding_dim = 16", "num_layers = 8"), tmp_path, _hstu()
    )
    assert {table.dim for table in one.model.tables} == {128}


def test_what_of_a_gin_file_is_not_read(tmp_path: Path) -> None:
    """References and other files are listed, a list may take several lines, None states nothing,
    and a value of another kind is an error."""
    text = GIN.replace("= 32 ", "= %batch ") + "include 'base.gin'  # more\n" + DESCRIBED
    text = text.replace("['video_id']", "[\n    'video_id',  # one\n]")
    found = _stated(f"{text}OptimizerArgs.optimizer_str = None\n", tmp_path, _hstu())
    assert "not read: include 'base.gin', TrainerArgs.train_batch_size = %batch" in found.notes
    assert found.model.workload.batch_per_rank == 64
    assert {table.optimizer for table in found.model.tables} == {"adam"}
    for wrong in ("NetworkArgs.hidden_size = 'x'", "video/DynamicEmbeddingArgs.feature_names = 5"):
        with pytest.raises(BadInput, match=r"Args\.\w+: found ('x'|5); allowed: (int|list) or"):
            _stated(f"{GIN}{wrong}\n", tmp_path, _hstu())


def test_bytes_of_hbm_become_a_share(tmp_path: Path) -> None:
    """4,096 rows of 128 floats with Adam are 1,024 a rank of 1,536 bytes; a third of them."""
    text = DESCRIBED.replace(
        "item_vocab_gpu_capacity_ratio = 0.25", f"global_hbm_for_values = {4096 * 512}"
    )
    found = _stated(GIN + text, tmp_path, _hstu())
    assert isinstance(found.plan, dict) and found.plan["v"].cache_ratio == Fraction(1, 3)
    rough = _stated(GIN + text.replace(f"{4096 * 512}", "1234567"), tmp_path, _hstu())
    assert isinstance(rough.plan, dict) and rough.plan["v"].cache_ratio == Fraction(10, 51)
    assert "asks for 0.1962 of its values in HBM; judged at" in rough.notes[-1]


def test_options_of_dynamicemb(tmp_path: Path) -> None:
    """An export for dynamicemb is audited as the plan's dynamicemb tables; the rest by rows."""
    plan = plans.chosen_plan(
        {"d": "row_wise/CACHING/0.3/roundrobin", "a": "table_wise/HBM_ONLY"},
        plans.dynamic("d"), plans.static("a"),
    )  # fmt: skip
    text = exports.write(plan, "dynamicemb")
    found = _stated(text, tmp_path, plan.model)
    assert isinstance(found.plan, dict)
    assert (found.plan["d"].mode, found.plan["d"].cache_ratio) == ("CACHING", Fraction(3, 10))
    assert found.plan["a"].sharding_type == "row_wise" and "(a)" in found.notes[-1]
    with pytest.raises(BadInput, match="world_size: found 4; allowed: 6"):
        _stated(text, tmp_path, plan.model, 3)
