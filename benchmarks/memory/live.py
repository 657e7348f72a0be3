"""Bytes of live tensors, operator by operator."""

import gc
import time
import weakref
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

SETTLE = 0.002
"""Seconds to wait before each operator, while gloo's threads release what they have sent."""


class Live(TorchDispatchMode):
    """Follows every storage that an operator returns, until it is freed.

    What an operator allocates and frees inside itself is not seen.
    """

    def __init__(self) -> None:
        super().__init__()
        self._storages: dict[int, tuple[weakref.ref[Any], str]] = {}
        self.most: dict[str, dict[str, int]] = {}
        """Most bytes at once in each moment, in order, by the moment in which they appeared."""
        self._moment = ""
        self._next = ""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run the operator, then count."""
        time.sleep(SETTLE)
        if self._next:
            self.enter(self._next)
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            self.follow(leaf)
        self.count()
        return result

    def follow(self, tensor: object) -> None:
        """Follow the storage of a tensor; other objects and meta tensors have no bytes."""
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            return
        assert isinstance(tensor, torch.Tensor)
        if tensor.device.type == "meta":
            return
        storage = tensor.untyped_storage()
        known = self._storages.get(storage._cdata)
        if known is None or known[0]() is None:
            self._storages[storage._cdata] = weakref.ref(storage), self._moment

    def adopt(self) -> None:
        """Follow the tensors that the garbage collector knows but no operator returned."""
        gc.collect()
        for each in gc.get_objects():
            self.follow(each)

    def now(self) -> dict[str, int]:
        """Bytes of all live storages, by the moment in which they appeared."""
        held = {key: (ref(), since) for key, (ref, since) in self._storages.items()}
        found: dict[str, int] = {}
        for key, (storage, since) in held.items():
            if storage is None:
                del self._storages[key]
            else:
                found[since] = found.get(since, 0) + storage.nbytes()
        return found

    def count(self) -> None:
        """Raise the moment's figure to the bytes that are alive."""
        now = self.now()
        if sum(now.values()) > sum(self.most.get(self._moment, {}).values()):
            self.most[self._moment] = now

    def enter(self, moment: str) -> None:
        """Begin a moment with what is alive."""
        time.sleep(SETTLE)
        self._moment, self._next = moment, ""
        self.most[moment] = {}
        self.count()

    def then(self, moment: str) -> None:
        """Begin a moment with the next operator."""
        self._next = moment
