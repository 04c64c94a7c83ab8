"""The generator over vLLM: `training.generators.Generator`, kept by `curation.policies.vllm.weight_updates.TrainingEngine`.

Here are only the two types' differences; what holds of weights, versions and log-probabilities is said there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from curation.config import Decoding, VllmPolicy
from curation.policies.vllm.weight_updates import TrainingEngine
from training.generators import Generated, Weights
from training.vllm_settings import VllmGenerator as VllmSettings

_CAPACITY = 128


class VllmGenerator:
    """vLLM as a `Generator`.

    Args:
        folder: the model, with its tokenizer.
        settings: of the engine.
        temperature: of sampling; nothing is cut from the distribution (top_p = 1), as training needs.
        capacity: requests decoded together, where the settings leave it open.

    Raises:
        PolicyError: there is no such folder; on entering: vLLM is not installed, or cannot load the model.
    """

    def __init__(
        self, folder: Path, settings: VllmSettings, *, temperature: float = 1.0, capacity: int = _CAPACITY
    ) -> None:
        self._capacity = settings.capacity or capacity
        shared = settings.model_dump(exclude={"kind", "capacity", "transfer", "address"})
        policy = VllmPolicy(
            kind="vllm",
            model=str(folder),
            in_flight=self._capacity,
            keep_tokens=True,
            decoding=Decoding(temperature=temperature, top_p=1.0),
            **shared,
        )
        self.engine = TrainingEngine(policy, Path.cwd(), settings.transfer, settings.address)

    @property
    def capacity(self) -> int:
        """Requests decoded together."""
        return self._capacity

    async def __aenter__(self) -> Self:
        await self.engine.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.engine.__aexit__(kind, error, trace)

    async def generate(self, prompt_ids: Sequence[int], *, seed: int, max_tokens: int) -> Generated:
        """See `Generator.generate`."""
        made = await self.engine.generate(prompt_ids, seed=seed, max_tokens=max_tokens)
        return Generated(tuple(prompt_ids), made.token_ids, made.logprobs, made.versions, made.text, made.finish)

    async def update(self, weights: Weights, version: int) -> float:
        """See `Generator.update`."""
        return await self.engine.update(weights, version)
