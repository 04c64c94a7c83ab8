"""Generate with vLLM here while weights change; prompts are cached per version."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from curation.config import EngineSettings
from curation.policies.chat_templates import folder_stop_tokens
from curation.policies.completions import TokenCompletion
from curation.policies.vllm.engine import Launch, VllmEngine, sampling_params
from curation.records import PolicyError, RequestRefused
from training.generation.decoding_meter import DecodingTotals, RequestMeter
from training.generation.generators import Weights
from training.generation.weight_transfer import FOLDER_TRANSFER, WORKER
from training.generation.weight_updates import WeightUpdates
from training.optimisation.model import load_tokenizer

_CAPACITY = 128


class VllmGenerator:
    """vLLM as a `training.generation.generators.Generator`.

    Args:
        temperature: with top_p = 1, as training needs.

    Raises:
        PolicyError: the folder is missing; on entering: vLLM is not installed, or cannot load the model.
    """

    def __init__(
        self,
        folder: Path,
        settings: EngineSettings,
        *,
        temperature: float = 1.0,
        capacity: int = _CAPACITY,
    ) -> None:
        self._folder, self._temperature = folder.expanduser().resolve(), temperature
        if not self._folder.is_dir():
            raise PolicyError(f"model {folder}: there is no folder {self._folder}; training needs a local one.")
        self._capacity = capacity
        launch = Launch(str(self._folder), self._folder.name, self._capacity, transfer=FOLDER_TRANSFER, worker=WORKER)
        self.engine = VllmEngine(launch, settings)
        self._meter = RequestMeter(self._capacity)
        self._updates = WeightUpdates(
            self.engine,
            self._folder,
            on_pause=lambda paused: self._meter.hold() if paused else self._meter.release(),
        )

    @property
    def capacity(self) -> int:
        """Return how many requests are decoded together."""
        return self._capacity

    @property
    def decoding(self) -> DecodingTotals:
        """Return the slot-seconds while the engine is not paused."""
        return self._meter.totals

    async def __aenter__(self) -> Self:
        self._ends = folder_stop_tokens(self._folder, load_tokenizer(self._folder)).ids
        await self.engine.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._updates.close()
        await self.engine.__aexit__(kind, error, trace)

    async def generate(self, prompt_ids: Sequence[int], *, seed: int, max_tokens: int) -> TokenCompletion:
        """Generate one response, see `Generator.generate`."""
        context = self.engine.context
        if len(prompt_ids) >= context:
            raise RequestRefused(
                "too_long",
                f"{self._folder.name}: a prompt takes {len(prompt_ids)} tokens, the context is {context}; drop the "
                "problem or raise max_model_len.",
            )
        sampling = sampling_params(
            temperature=self._temperature,
            top_p=1.0,
            max_tokens=min(max_tokens, context - len(prompt_ids)),
            seed=seed % 2**63,
            logprobs=True,
            stop_token_ids=self._ends,
        )
        self._meter.begin()
        try:
            return await self.engine.generate(prompt_ids, sampling, "rollout", cache_salt=str(self._updates.version))
        finally:
            self._meter.end()

    async def update_weights(self, weights: Weights, version: int) -> float:
        """Replace the weights, see `Generator.update_weights`."""
        return await self._updates.update(weights, version)
