"""A TorchRec model given on the command line as ``module:function``."""

from __future__ import annotations

import copy
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from torch import nn
from torchrec import KeyedJaggedTensor
from torchrec.distributed.planner.types import (
    Enumerator,
    ParameterConstraints,
    StorageReservation,
    Topology,
)
from torchrec.distributed.sharding_plan import get_default_sharders
from torchrec.distributed.types import ModuleSharder

from milp_planner.errors import BadInput
from milp_planner.inputs.problems import choice, nearest
from milp_planner.integrations.torchrec.planner import MilpShardingPlanner


@dataclass(frozen=True)
class TorchRecInputs:
    """All inputs of TorchRec's planner, as the user's own function returns them."""

    module: nn.Module
    """May be on the meta device."""
    topology: Topology
    sharders: list[ModuleSharder[nn.Module]] | None = None
    """None: TorchRec's default sharders."""
    batch_size: int | None = None
    constraints: dict[str, ParameterConstraints] | None = None
    """``ParameterConstraints`` by table name."""
    enumerator: Enumerator | None = None
    storage_reservation: StorageReservation | None = None
    """None: TorchRec's defaults."""

    def planner(self, **more: Any) -> MilpShardingPlanner:
        """A planner for these inputs; ``more`` as in ``MilpShardingPlanner``."""
        return MilpShardingPlanner(
            topology=self.topology,
            batch_size=self.batch_size,
            enumerator=self.enumerator,
            storage_reservation=self.storage_reservation,
            constraints=self.constraints,
            **more,
        )

    def all_sharders(self) -> list[ModuleSharder[nn.Module]]:
        """The sharders given, or TorchRec's defaults."""
        return self.sharders if self.sharders is not None else get_default_sharders()


def load_inputs(reference: str) -> TorchRecInputs:
    """Call ``module:function`` or ``path/to/file.py:function`` and read what it returns.

    Parameters
    ----------
    reference : str
        The function takes no arguments and returns a :class:`TorchRecInputs` or a mapping with
        its fields.

    Raises
    ------
    BadInput
        If the reference is malformed or names nothing, or the function returns something else.
    """
    place, _, name = reference.rpartition(":")
    if not place or not name.isidentifier():
        raise BadInput(f"found {reference!r}; allowed: module:function or file.py:function")
    module = _import(place)
    function = getattr(module, name, None)
    if not callable(function):
        names = [n for n, value in vars(module).items() if callable(value) and n[0] != "_"]
        close = nearest(name, names)
        hint = f"; did you mean {close}?" if close else ""
        raise BadInput(f"{place} has no function {name!r}{hint}")
    return _inputs(_guarded(function, reference), reference)


def _guarded(call: Callable[[], Any], what: str) -> Any:
    """Run the user's own code; any exception is reported in one sentence with its line."""
    try:
        return call()
    except BadInput:
        raise
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        reason = " ".join(str(error).split())
        raise BadInput(
            f"{what} raised {type(error).__name__}: {reason} ({last.filename}, line {last.lineno})"
        ) from error


def _import(place: str) -> Any:
    if place.endswith(".py"):
        path = Path(place)
        if not path.is_file():
            raise BadInput(f"there is no file {place!r}")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        if spec is None or spec.loader is None:
            raise BadInput(f"{place!r} cannot be imported as Python")
        module = importlib.util.module_from_spec(spec)
        sys.modules.setdefault(path.stem, module)
        loader = spec.loader
        _guarded(lambda: loader.exec_module(module), place)
        return module
    if "" not in sys.path and "." not in sys.path:
        sys.path.insert(0, "")
    if _absent(place):
        raise BadInput(f"there is no Python module {place!r}")
    return _guarded(lambda: importlib.import_module(place), place)


def _absent(name: str) -> bool:
    """Whether a module cannot be found (its parents are imported, which may raise)."""
    try:
        return importlib.util.find_spec(name) is None
    except (ModuleNotFoundError, ValueError):
        return True


def _inputs(result: object, reference: str) -> TorchRecInputs:
    if isinstance(result, TorchRecInputs):
        return result
    names = [f.name for f in fields(TorchRecInputs)]
    if not isinstance(result, Mapping):
        raise BadInput(
            f"{reference} returned {type(result).__name__}; allowed: TorchRecInputs or a mapping "
            f"with {', '.join(names)}"
        )
    unknown = [key for key in result if key not in names]
    if unknown:
        raise BadInput(
            f"{reference} returned the field {unknown[0]!r}; {choice(str(unknown[0]), names)}"
        )
    for name in ("module", "topology"):
        if name not in result:
            raise BadInput(f"{reference} returned no {name!r}; it is required")
    return TorchRecInputs(**result)


def measured_pooling(
    batches: Iterable[KeyedJaggedTensor],
    tables: Iterable[Any],
    constraints: Mapping[str, ParameterConstraints] | None = None,
) -> dict[str, ParameterConstraints]:
    """Constraints with the pooling factors measured in some batches.

    A pooling factor is the mean number of ids that a sample has in a feature (for sequence tables
    its mean length). TorchRec needs one for each feature of a table, in the order of its
    ``feature_names``, and assumes 1 if there is none.

    Parameters
    ----------
    batches : iterable of KeyedJaggedTensor
        Local batches, as one rank gets them.
    tables : iterable of EmbeddingBagConfig or EmbeddingConfig
        As ``embedding_bag_configs()`` or ``embedding_configs()`` of a collection lists them.
    constraints : mapping of table name to ParameterConstraints, optional
        Copied; only their ``pooling_factors`` are replaced.

    Raises
    ------
    BadInput
        If there are no samples, or no batch has a feature.
    """
    ids: dict[str, int] = {}
    samples: dict[str, int] = {}
    for batch in batches:
        for key in batch.keys():  # noqa: SIM118 (a KeyedJaggedTensor is no mapping)
            lengths = batch[key].lengths()
            ids[key] = ids.get(key, 0) + int(lengths.sum())
            samples[key] = samples.get(key, 0) + lengths.numel()
    found = {name: copy.copy(limit) for name, limit in (constraints or {}).items()}
    for table in tables:
        missing = [name for name in table.feature_names if not samples.get(name)]
        if missing:
            raise BadInput(
                f"table {table.name!r}: no batch has a sample of feature {missing[0]!r}; found: "
                f"{', '.join(sorted(samples)) or 'no features'}"
            )
        limit = found.setdefault(table.name, ParameterConstraints())
        limit.pooling_factors = [ids[name] / samples[name] for name in table.feature_names]
    return found
