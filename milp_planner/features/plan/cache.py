"""Certified outcomes stored in a folder, so that the same question is solved only once.

An entry is the outcome's document; its name is a digest of the question. Every entry is verified
again before it is used, as anybody may have written to the folder.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache, partial
from hashlib import sha256
from importlib import metadata
from pathlib import Path

import numpy as np

from formulations import Instance, Outcome, Settings
from formulations.errors import InstanceError
from formulations.evidence.verify import holds
from formulations.instance import Resource, strict_json
from formulations.result.certificate import (
    Certificate,
    certificate_from_dict,
    certificate_to_dict,
)
from formulations.result.outcome import certified_gap, near_enough
from formulations.result.outcome_file import outcome_from_dict, outcome_to_dict
from formulations.runtime.collector import uncollected
from formulations.runtime.regular_file import read_regular
from milp_planner.errors import BadInput
from milp_planner.features.plan.one_ratio import asked
from milp_planner.files import write_atomically
from milp_planner.inputs.spec import fingerprint_of
from milp_planner.plans.compile import Compiled
from milp_planner.request import KEYED
from milp_planner.version import __version__

logger = logging.getLogger(__name__)
_DIGEST = 64


class Entries:
    """The files of a folder with a certain suffix.

    Parameters
    ----------
    folder : str or Path
        Created if it does not exist.
    suffix : str
    most : int
        Most bytes of all entries together; the least recently used are removed first.
    """

    def __init__(self, folder: str | Path, suffix: str, most: int) -> None:
        self.folder, self.suffix, self.most = Path(folder), suffix, most
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"cache: cannot use {folder} as a folder: {error.strerror}") from None

    def read(self, name: str) -> bytes | None:
        """The bytes written under a name; None if there are none, or if something else than a
        regular file of them is there."""
        try:
            content = read_regular(self._path(name), min(self.most, strict_json.MAX_BYTES))
        except OSError:
            return None
        digest, data = content[:_DIGEST], content[_DIGEST:]
        return data if digest == hashlib.sha256(data).hexdigest().encode() else None

    def write(self, name: str, data: bytes) -> None:
        """Write an entry atomically, removing others to make room; the log says if it cannot be
        written, as an answer that is not stored is still an answer."""
        try:
            write_atomically(self._path(name), hashlib.sha256(data).hexdigest().encode() + data)
        except BadInput as error:
            logger.warning("cache: the plan is not stored: %s", error)
            return
        left = self.most
        for _, size, path in sorted(self._all(), reverse=True):
            left -= size
            if left < 0:
                with contextlib.suppress(OSError):  # another process removed it first
                    path.unlink()

    def __contains__(self, name: str) -> bool:
        """Whether there is a file under a name, which may be damaged."""
        return self._path(name).is_file()

    def used(self, name: str) -> None:
        """Mark an entry as just used."""
        with contextlib.suppress(OSError):  # another process may have removed it
            os.utime(self._path(name))

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}{self.suffix}"

    def _all(self) -> Iterator[tuple[int, int, Path]]:
        """Time of last use, size in bytes, and path of each entry."""
        for path in self.folder.glob(f"*{self.suffix}"):
            with contextlib.suppress(OSError):
                known = path.stat()
                yield known.st_mtime_ns, known.st_size, path


#: Most bytes of all entries of a folder together.
MOST_BYTES = 1 << 30
SUFFIX, PROOFS = ".outcome", ".proof"
SOLVERS = ("ortools", "highspy", "pulp")
"""Packages besides our own whose version affects the outcome."""
_UNREAD = frozenset({"name", "source", "time_unit", "reference"})
"""Fields of an Instance that decide no answer."""


@dataclass(frozen=True, eq=False)
class Question:
    """An instance, how to solve it, and everything else that determines the answer's bytes.

    Attributes
    ----------
    instance : Instance
    formulation : str
    settings : Settings
        Those of :data:`milp_planner.request.KEYED` are part of the question. ``gap`` is how close
        to the optimum an answer must be. Limits do not matter.
    inputs : dict of str to str
        Fingerprints or versions of the instance's sources.
    ruled : callable, optional
        See :meth:`asked`.
    """

    instance: Instance
    formulation: str
    settings: Settings
    inputs: Mapping[str, str] = field(default_factory=dict)
    ruled: Callable[[Mapping[str, object]], Instance] | None = None

    def asked(self, outcome: Outcome) -> Instance:
        """The instance that an outcome is of, which may have more rules than :attr:`instance`."""
        return self.instance if self.ruled is None else self.ruled(outcome.detail)

    @property
    def name(self) -> str:
        """A digest of the question."""
        settings = self.settings
        asked = {name: getattr(settings, name) for name in KEYED}
        document = {
            **self.inputs,
            "instance": self._digest,
            "formulation": self.formulation,
            "polish": settings.polish,
            **asked,
            "goals": str(settings.goals),
            "options": {str(name): value for name, value in settings.options.items()},
            "versions": versions(),
        }
        return fingerprint_of(document)

    def answered_by(self, outcome: Outcome) -> bool:
        """Whether an outcome is certified to the gap (without one: certified optimal), and all its
        claims are verified on the instance."""
        near = near_enough(outcome, self.settings.gap)
        near = near or outcome.objective == outcome.certified_bound
        if outcome.placement is None or not near:
            return False
        try:
            return holds(self.asked(outcome), outcome)
        except InstanceError:
            return False

    def read(self, packed: bytes) -> Outcome | None:
        """An outcome from its document; None if it is invalid or about another instance."""
        try:
            document = strict_json.parse(strict_json.unpack(packed, "cache"), "cache")
            return outcome_from_dict(self.instance, document, "cache", self._digest)
        except InstanceError:
            return None

    def written(self, outcome: Outcome) -> bytes:
        """The document for :meth:`read`, with the same bytes for the same outcome."""
        document = outcome_to_dict(self.instance, outcome, self._digest)
        return gzip.compress(json.dumps(document).encode(), mtime=0)

    @cached_property
    def _digest(self) -> str:
        """SHA-256 of the Instance's arrays, names and constraints: a tenth of the work of its
        fingerprint, and as good where both sides are of one version, which :attr:`name` holds."""
        return digest_of(self.instance)


def question_of(
    compiled: Compiled, formulation: str, settings: Settings, within: float = 0.0
) -> Question:
    """The question of a plan; its inputs are part of it, including their names and comments.

    ``within`` is the share of the objective that may be given up for bytes that stay.
    """
    inputs = {
        "model": compiled.model.fingerprint(),
        "cluster": compiled.cluster.fingerprint(),
        "profile": compiled.options.profile.fingerprint(),
        **({"within": repr(within)} if within else {}),
    }
    return Question(compiled.instance, formulation, settings, inputs, partial(asked, compiled))


class PlanCache:
    """Outcomes by question, in a folder that several processes may share.

    Parameters
    ----------
    folder : str or Path
        Created if it does not exist.
    most : int
        Most bytes of all entries together; the least recently used are removed first.

    Attributes
    ----------
    answered : bool
        Whether the last question was answered from the cache.
    """

    def __init__(self, folder: str | Path, most: int = MOST_BYTES) -> None:
        self._entries, self.answered = Entries(folder, SUFFIX, most), False
        self._proofs = Entries(folder, PROOFS, most // 8)

    @property
    def folder(self) -> Path:
        """The folder of the entries."""
        return self._entries.folder

    def get(self, question: Question) -> Outcome | None:
        """The outcome stored for a question, if it answers it; see :meth:`Question.answered_by`."""
        with uncollected():
            name = question.name
            outcome = self._known(question, name)
            self.answered = outcome is not None and question.answered_by(outcome)
        if not self.answered:
            return None
        self._entries.used(name)
        return outcome

    def put(self, question: Question, outcome: Outcome) -> None:
        """Store a plan certified to some gap, unless one certified as well is already stored."""
        gap = certified_gap(outcome)
        if gap is None:
            return
        name = question.name
        there = self._known(question, name)
        known = None if there is None else certified_gap(there)
        if known is None or gap < known:
            self._entries.write(name, question.written(outcome))

    def proof(self, instance: Instance) -> Certificate | None:
        """The best certificate that any call left for an instance, whatever may move in it; nobody
        has judged it yet."""
        packed = self._proofs.read(_name_of_proof(instance))
        if packed is None:
            return None
        try:
            return certificate_from_dict(strict_json.parse(strict_json.unpack(packed, ""), ""))
        except InstanceError:
            return None

    def prove(self, instance: Instance, outcome: Outcome) -> None:
        """Keep an outcome's certificate for other calls if it proves more than the one there."""
        found = outcome.certificate
        if found is None or outcome.certified_bound is None or instance.limits_moves:
            return  # limits only take plans away: what they prove may not hold without them
        there = self.proof(instance)
        if there is None or (there.target or 0) < outcome.certified_bound:
            text = json.dumps(certificate_to_dict(found))
            self._proofs.write(_name_of_proof(instance), gzip.compress(text.encode(), mtime=0))

    def _known(self, question: Question, name: str) -> Outcome | None:
        packed = self._entries.read(name)
        return None if packed is None else question.read(packed)


def answered(cache: PlanCache | None, question: Question, solve: Callable[[], Outcome]) -> Outcome:
    """The outcome from the cache, or else a new one that is then stored."""
    known = None if cache is None else cache.get(question)
    if known is not None:
        return known
    made = solve()
    if cache is not None:
        cache.put(question, made)
        cache.prove(question.asked(made), made)
    return made


def _name_of_proof(instance: Instance) -> str:
    return digest_of(replace(instance, current=(), max_moved_tables=None, max_moved_bytes=None))


def digest_of(instance: Instance) -> str:
    """SHA-256 (hexadecimal) of all that decides an answer."""
    digest = sha256()
    for each in fields(instance):
        if each.name not in _UNREAD:
            digest.update(sha256(_bytes_of(getattr(instance, each.name))).digest())
    return digest.hexdigest()


def _bytes_of(value: object) -> bytes:
    """Different bytes for different values of an Instance's field."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype.str}{value.shape}".encode() + value.tobytes()
    if isinstance(value, tuple) and value and isinstance(value[0], Resource):
        parts = [(r.name, r.scope.value, r.capacity.tolist()) for r in value]
        return repr(parts).encode()
    return repr(value).encode()


def to_cache(source: PlanCache | str | Path | None) -> PlanCache | None:
    """The given cache, or the cache in a given folder.

    Raises
    ------
    BadInput
        For anything else.
    """
    if not isinstance(source, PlanCache | str | Path | None):
        raise BadInput(f"cache: found {source!r}; a folder, a PlanCache, or None for no cache")
    return source if isinstance(source, PlanCache | None) else PlanCache(source)


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Versions of milp-planner and of every installed solver."""
    found = {"milp-planner": __version__}
    for name in SOLVERS:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found
