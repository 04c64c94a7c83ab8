"""How new weights reach the generators, and how long that takes.

Two ways: a state dict in memory (`WeightSync` with ``memory``: generators in this process), and a folder of
safetensors. The folder may lie in a file system in memory, for an engine in another process of this machine
(`WeightSync` with ``file``), or where other machines see it: `WeightPublisher` writes whole, marked folders there under
rising versions, and `follow_published` hands the newest to a generator.

Invariants: a generator's version rises; a published folder is whole once its mark is there; the last ``keep`` stay, so
that a reader who has just seen one can still read it.

Not here: weights that reach vLLM by NCCL (`training.generation.weight_broadcast`).
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from torch import Tensor

from curation.policies.checkpoints import write_weights
from curation.records import StoreError
from curation.storage.scratch import memory_folder
from training.generation.generators import Generator
from training.optimisation.model import published_revision, save_model

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

SyncMethod = Literal["memory", "file"]


class WeightSync:
    """Gives new weights to a generator. A context manager; what it wrote is removed on leaving.

    Args:
        method: ``memory`` hands over the tensors, ``file`` a folder in a file system in memory.
    """

    def __init__(self, generator: Generator, method: SyncMethod = "memory") -> None:
        self._generator, self._method = generator, method
        self._folder: Path | None = None

    def __enter__(self) -> Self:
        if self._method == "file":
            self._folder = Path(tempfile.mkdtemp(prefix="goldilocks-weights-", dir=memory_folder()))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    async def update(self, state: Mapping[str, Tensor], version: int) -> float:
        """Give the state to the generator; return the seconds until it makes tokens with the new weights."""
        started_at = time.perf_counter()
        if self._folder is None:
            await self._generator.update_weights(state, version)
        else:
            folder = self._folder / f"v{version:08}"
            await asyncio.to_thread(write_weights, state, folder)
            await self._generator.update_weights(folder, version)
            shutil.rmtree(folder)
        return time.perf_counter() - started_at


class WeightPublisher:
    """Publishes versions of a model in ``folder``: ``v00000001``, ``v00000002`` …, each with its mark.

    Args:
        keep: the last so many stay; all where None.
        every: `after_update` publishes every so many versions.
    """

    def __init__(
        self,
        folder: Path,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        keep: int | None = 2,
        *,
        every: int = 1,
    ) -> None:
        self.folder = folder
        self._model, self._tokenizer, self._keep = model, tokenizer, keep
        self._every = every

    def after_update(self, version: int, state: Mapping[str, Tensor]) -> None:
        """Publish this version where it is due."""
        if version % self._every == 0:
            self.publish(version, state)

    def publish(self, version: int, state: Mapping[str, Tensor] | None = None) -> Path:
        """Write this version, of the model or of ``state``, and delete all but the last ``keep``."""
        target = self.folder / f"v{version:08}"
        save_model(self._model, self._tokenizer, target, state=state)
        for old in sorted(self.folder.glob("v*"))[: -self._keep] if self._keep is not None else ():
            shutil.rmtree(old, ignore_errors=True)
        return target


def latest_version(folder: Path) -> tuple[int, Path] | None:
    """Return the newest whole version that was published, or None."""
    for path in sorted(folder.glob("v*"), reverse=True):
        try:
            published_revision(path)
        except StoreError:
            continue
        return int(path.name[1:]), path
    return None


async def follow_published(folder: Path, generator: Generator, *, interval_s: float = 1.0) -> None:
    """Hand each newest version to the generator, looking every so many seconds, until cancelled."""
    held_version = -1
    while True:
        latest = await asyncio.to_thread(latest_version, folder)
        if latest is not None and latest[0] > held_version:
            await generator.update_weights(latest[1], latest[0])
            held_version = latest[0]
        await asyncio.sleep(interval_s)
