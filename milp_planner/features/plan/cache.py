"""Answers kept in a folder: the same question is answered once, by the outcome that was certified.

An entry is the outcome's document behind a digest. Its name is a digest of the question; what an
entry says is verified again before it is an answer, as the folder may be anybody's.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from formulations import Outcome, Settings
from formulations.errors import InstanceError
from formulations.instance import strict_json
from formulations.result.outcome import certified_gap, near_enough
from formulations.result.outcome_file import outcome_from_dict, outcome_to_dict
from formulations.result.verify import holds
from milp_planner.errors import BadInput
from milp_planner.files import write_atomically
from milp_planner.inputs.spec import fingerprint_of
from milp_planner.plans.compile import Compiled
from milp_planner.version import __version__

#: Bytes that the entries of a folder may take together.
MOST = 1 << 30
_SUFFIX, _DIGEST = ".outcome", 64
_SOLVERS = ("ortools", "highspy", "pulp")


class PlanCache:
    """Outcomes by question, in a folder that several processes may share.

    Parameters
    ----------
    folder : str or Path
        Made if it does not exist.
    most : int
        Bytes of all entries; those not used for longest go first.

    Attributes
    ----------
    answered : bool
        Whether the last question was answered from here.
    """

    def __init__(self, folder: str | Path, most: int = MOST) -> None:
        self.folder, self.most, self.answered = Path(folder), most, False
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"cache: cannot use {folder} as a folder: {error.strerror}") from None

    def get(self, compiled: Compiled, formulation: str, settings: Settings) -> Outcome | None:
        """The outcome kept for this question, if it is certified to the gap asked for (without a
        gap: optimal) and everything it claims is verified on today's instance."""
        path = self._path(compiled, formulation, settings)
        outcome = _read(compiled, path)
        self.answered = outcome is not None and _answers(compiled, outcome, settings)
        if not self.answered:
            return None
        with contextlib.suppress(OSError):  # another process may have made room
            os.utime(path)
        return outcome

    def put(
        self, compiled: Compiled, formulation: str, settings: Settings, outcome: Outcome
    ) -> None:
        """Keep a plan that is certified to some gap, unless one certified as well is there."""
        gap = certified_gap(outcome)
        if gap is None:
            return
        path = self._path(compiled, formulation, settings)
        there = _read(compiled, path)
        known = None if there is None else certified_gap(there)
        if known is None or gap < known:
            document = outcome_to_dict(compiled.instance, outcome)
            packed = gzip.compress(json.dumps(document).encode(), mtime=0)
            write_atomically(path, hashlib.sha256(packed).hexdigest().encode() + packed)
            self._make_room()

    def _path(self, compiled: Compiled, formulation: str, settings: Settings) -> Path:
        question = {
            "model": compiled.model.fingerprint(),
            "cluster": compiled.cluster.fingerprint(),
            "profile": compiled.options.profile.fingerprint(),
            "instance": compiled.instance.fingerprint,
            "formulation": formulation,
            "seed": settings.seed,
            "polish": settings.polish,
            "goals": str(settings.goals),
            "options": {str(name): value for name, value in settings.options.items()},
            "versions": _versions(),
        }
        return self.folder / f"{fingerprint_of(question)}{_SUFFIX}"

    def _make_room(self) -> None:
        """Remove the entries used least recently until the rest is small enough."""
        left = self.most
        for _, size, path in sorted(self._entries(), reverse=True):
            left -= size
            if left < 0:
                with contextlib.suppress(OSError):  # another process was faster
                    path.unlink()

    def _entries(self) -> Iterator[tuple[int, int, Path]]:
        """When each entry was last used, its bytes, and its path."""
        for path in self.folder.glob(f"*{_SUFFIX}"):
            with contextlib.suppress(OSError):
                known = path.stat()
                yield known.st_mtime_ns, known.st_size, path


def to_cache(source: PlanCache | str | Path | None) -> PlanCache | None:
    """The cache itself, or that of a folder."""
    return source if isinstance(source, PlanCache | None) else PlanCache(source)


def _read(compiled: Compiled, path: Path) -> Outcome | None:
    """What an entry says; None where there is none, or not as it was written."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, packed = content[:_DIGEST], content[_DIGEST:]
    if digest != hashlib.sha256(packed).hexdigest().encode():
        return None
    try:
        document = strict_json.parse(strict_json.unpack(packed, path.name), path.name)
        return outcome_from_dict(compiled.instance, document, path.name)
    except InstanceError:
        return None


def _answers(compiled: Compiled, outcome: Outcome, settings: Settings) -> bool:
    near = near_enough(outcome, settings.gap) or outcome.objective == outcome.certified_bound
    if outcome.placement is None or not near:
        return False
    try:
        return holds(compiled.instance, outcome)
    except InstanceError:
        return False


def _versions() -> dict[str, str]:
    """Of us and of every solver installed."""
    found = {"milp-planner": __version__}
    for name in _SOLVERS:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found
