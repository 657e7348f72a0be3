# %% [markdown]
# # From a list of tables to a plan you can ship
#
# Open this file in an editor that knows `# %%` cells (VS Code, PyCharm, Jupyter with jupytext), or
# run it: `python docs/tutorial.py`. It takes under a minute, and CI runs it as it stands.

# %% [markdown]
# ## 1. Tables and a cluster
#
# Rows, dims and how often each table is looked up; your model's configuration already has these.

# %%
import tempfile
import threading
from pathlib import Path

from milp_planner import Cluster, Model, audit, explain, export, plan, read_plan, report, verify

folder = Path(tempfile.mkdtemp())
rows = [50_000_000, 20_000_000, 8_000_000, 4_000_000, 1_000_000, 300_000, 50_000, 2_000]
model = Model.from_dict(
    {
        "name": "tutorial",
        "workload": {"batch_per_rank": 2048, "exchange_dtype": "fp16"},
        "tables": [
            {"name": f"feature_{i}", "rows": n, "dim": 64, "pooling_factor": 2 + 4 * (i % 3)}
            for i, n in enumerate(rows)
        ],
    }
)
cluster = Cluster.from_dict(
    {
        "name": "two-ranks",
        "profile": "b200",
        "machines": 1,
        "ranks_per_machine": 2,
        "hbm": "32GiB",
        "ddr": "64GiB",
        "interconnect": {"intra_machine": "450GB/s"},
        "reservations": {"hbm_percent": 15},
    }
)

# %% [markdown]
# ## 2. A plan
#
# In a notebook, a plan is displayed as a table. The bound says how good any plan could be.

# %%
best = plan(model, cluster, time_limit=10)
print(best)
print(f"{best.status}: {best.objective_ms:.4g} ms, no plan below {best.bound_ms:.4g} ms")

# %% [markdown]
# The time of every rank by phase, and how full its memory is (needs matplotlib).

# %%
best.plot().savefig(folder / "plan.png")

# %% [markdown]
# You need not take that on trust: `verify` recomputes it from the plan alone, without a solver.

# %%
assert verify(best).ok

# %% [markdown]
# ## 3. Interrupt, keep, continue
#
# A notebook's *interrupt* returns the best plan so far; a stop event does the same from code. The
# next search can start from that plan.

# %%
from formulations import Settings  # noqa: E402

stop = threading.Event()
threading.Timer(0.5, stop.set).start()
first = plan(model, cluster, settings=Settings(stop=stop, time_limit=10))
again = plan(model, cluster, today=first, time_limit=10) if first.tables else best
assert again.outcome.objective == best.outcome.objective or again.status != "optimal"

# %% [markdown]
# ## 4. The plan you run today
#
# In this example everything is row-wise, as many teams begin. `audit` says whether the plan fits,
# how far it is from the bound, which ranks are to blame, and what the first moves towards the
# better plan gain.

# %%
today = folder / "today.csv"
lines = [f"{t.name},HBM_ONLY,row_wise,all" for t in model.tables]
today.write_text("\n".join(["table,mode,sharding_type,ranks", *lines]) + "\n")
judged = audit(today, model, cluster, time_limit=10)
print(judged)

# %% [markdown]
# ## 5. The way there
#
# What the first moves gain, in an order that exceeds no capacity while a table is at both ends.
# Each step is a plan of its own. On the command line: `explain plan.json --today today.csv`.

# %%
way = explain(best, "moves", today=today)
print(way)

# %% [markdown]
# ## 6. Why, and what more memory would buy

# %%
answers = explain(best, "why", "frontier", time_limit=10)
for table in answers.why.tables[:3]:
    others = ", ".join(other.option for other in table.alternatives)
    print(f"{table.table}: {table.option}; next best: {others}")

# %% [markdown]
# ## 7. Ship it
#
# One file holds the plan and everything needed to verify it. The report needs no network, and
# TorchRec reads the export.

# %%
kept = read_plan(best.save(folder / "plan.json"))
page = report(kept, folder / "report.html", answers)
(folder / "sharding.json").write_text(export(kept, "torchrec"))
print(f"{len(page) / 1000:.0f} kB of report in {folder}")
