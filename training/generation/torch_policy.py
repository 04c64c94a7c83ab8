"""Sample with torch under the `Policy` protocol, with random numbers by problem and index."""

from __future__ import annotations

import asyncio
import copy
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import torch

from curation.config.policies import TorchModel
from curation.policies.chat_templates import apply_chat_template, folder_stop_tokens
from curation.policies.checkpoints import folder_revision
from curation.policies.completions import ResponseReader
from curation.policies.seeds import about_of, key_of, prompt_of, seed_of
from curation.prompts import Prompt
from curation.records import AttemptKey, Completion, PolicyError, PromptRequest, RequestRefused
from curation.thinking import ThinkingTags
from training.generation.batched_decoding import DecodingEngine, DecodingRequest
from training.optimisation.model import load_model, load_tokenizer, require_model

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True, slots=True)
class PolicySample:
    """One response with each token's id, log-probability and weights' version; ``text`` is in the house's form."""

    text: str
    finish: str
    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    versions: tuple[int, ...]


@dataclass(slots=True, eq=False)
class _PendingRequest:
    request: DecodingRequest
    future: asyncio.Future[DecodingRequest]


IN_FLIGHT = 128
"""Requests that are decoded together."""


class TorchPolicy:
    """A causal language model of a folder, sampled with torch.

    Raises:
        PolicyError: no model there can be sampled here.
    """

    def __init__(
        self, settings: TorchModel, folder: Path, prompt: Prompt | None = None, in_flight: int = IN_FLIGHT
    ) -> None:
        self._settings = settings
        self._folder = folder / Path(settings.model).expanduser()
        require_model(self._folder)
        self._prompt = prompt or prompt_of(settings)
        self._tags = ThinkingTags.of(settings.thinking)
        self.in_flight = in_flight
        self._name = self._folder.resolve().name
        self._revision = folder_revision(self._folder)
        self.key = self._key()
        self._loads = 0
        self._engine: DecodingEngine | None = None
        self._tokenizer: PreTrainedTokenizerBase | None = None
        self._queue: deque[_PendingRequest] = deque()
        self._open: dict[DecodingRequest, _PendingRequest] = {}
        self._wake_up = asyncio.Event()
        self._closing = False

    @property
    def about(self) -> Mapping[str, Any]:
        """Return what the attempt store records next to the key."""
        return about_of(self._settings, self._prompt)

    @property
    def version(self) -> int:
        """Return the version of the next token's weights, 0 at first."""
        return self._require_engine().version

    def asking(self, prompt: Prompt | None) -> TorchPolicy:
        """Return a policy with another prompt for the same running model."""
        other = copy.copy(self)
        other._prompt = prompt or prompt_of(self._settings)
        other.key = other._key()
        return other

    async def __aenter__(self) -> Self:
        self._thread = ThreadPoolExecutor(1, "torch-policy")
        self._tokenizer, self._engine = await self._on_thread(self._load)
        self._reader = ResponseReader(self._tokenizer, self._tags)
        self._closing = False
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing = True
        self._wake_up.set()
        await self._task
        self._fail(PolicyError(f"{self._name}: the policy was closed while requests were under way"))
        self._thread.shutdown()
        self._engine = None

    async def answer(self, problem: PromptRequest, index: int) -> Completion:
        """Sample one attempt."""
        sample = await self.sample(problem, index)
        return Completion(sample.text, sample.finish, len(sample.token_ids))

    async def sample(self, problem: PromptRequest, index: int) -> PolicySample:
        """Sample one attempt for training; cancelling the call aborts it.

        Raises:
            RequestRefused: the prompt is longer than the model's context.
            PolicyError: the policy is not running.
        """
        engine, tokenizer = self._require_engine(), self._require_tokenizer()
        decoding = self._settings.decoding
        prompt = self.prompt_ids(problem)
        if len(prompt) >= engine.max_positions:
            raise RequestRefused(
                "too_long",
                f"{self._name}: problem {problem.id} takes {len(prompt)} tokens, the model's context is "
                f"{engine.max_positions}; drop the problem or take a model with a longer context",
            )
        request = DecodingRequest(prompt, decoding.max_tokens, Random(seed_of(problem.id, index)))
        pending = _PendingRequest(request, asyncio.get_running_loop().create_future())
        self._queue.append(pending)
        self._wake_up.set()
        finished = await pending.future
        decoded = str(tokenizer.decode(finished.token_ids, skip_special_tokens=True))
        text = self._reader.text(finished.prompt_ids, finished.token_ids, decoded)
        return PolicySample(
            self._tags.house_form(text),
            finished.finish or "stop",
            finished.prompt_ids,
            tuple(finished.token_ids),
            tuple(finished.logprobs),
            tuple(finished.versions),
        )

    def prompt_ids(self, problem: PromptRequest) -> tuple[int, ...]:
        """Return the question's tokens under the prompt and chat template."""
        chat = apply_chat_template(
            self._require_tokenizer(),
            self._prompt.messages(problem),
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            **self._tags.template_arguments,
        )
        return tuple(chat["input_ids"])

    async def load_weights(
        self, weights: Path | Mapping[str, torch.Tensor], *, version: int | None = None, revision: str | None = None
    ) -> None:
        """Replace the weights between two tokens; running requests go on.

        Args:
            version: of later tokens; one more if missing.
            revision: for ``key``; made up if missing.

        Raises:
            PolicyError: the weights do not fit the model.
        """
        self._loads += 1
        if isinstance(weights, Path):
            state = await self._on_thread(_read_weights, weights)
            revision = revision or folder_revision(weights)
        else:
            state = weights
        await self._on_thread(self._require_engine().load, state, version)
        self._revision = revision or f"{self._revision.split('+')[0]}+{self._loads}"
        self.key = self._key()

    def _key(self) -> AttemptKey:
        name = f"{self._name}@{self._revision}"
        return key_of(self._settings, name, self._prompt, engine="torch", dtype="float32")

    def _load(self) -> tuple[PreTrainedTokenizerBase, DecodingEngine]:
        settings = self._settings
        torch.set_num_threads(1)
        tokenizer = load_tokenizer(self._folder)
        model = load_model(self._folder, dtype="float32", device="cpu")
        model.requires_grad_(False)
        stops = folder_stop_tokens(self._folder, tokenizer)
        if stops.added:
            print(f"model {self._name}: {stops.phrase(tokenizer)}", file=sys.stderr)
        engine = DecodingEngine(
            model,
            stops.ids,
            slots=self.in_flight,
            temperature=settings.decoding.temperature,
            top_p=settings.decoding.top_p,
        )
        return tokenizer, engine

    async def _run(self) -> None:
        """Step the engine while requests run; sleep while none do."""
        engine = self._require_engine()
        while not self._closing:
            leaving = [request for request, pending in self._open.items() if pending.future.done()]
            for request in leaving:
                del self._open[request]
            joining = self._take_queued(self.in_flight - len(self._open))
            if not (engine.active or joining):
                self._wake_up.clear()
                await self._wake_up.wait()
                continue
            try:
                finished = await self._on_thread(engine.step, joining, leaving)
            except RuntimeError as error:  # torch's errors, out of memory among them
                self._closing = True
                self._fail(PolicyError(f"{self._name}: torch failed while sampling: {error}"))
                return
            for request in finished:
                future = self._open.pop(request).future
                if not future.done():
                    future.set_result(request)

    def _take_queued(self, free: int) -> Sequence[DecodingRequest]:
        joining: list[DecodingRequest] = []
        while self._queue and len(joining) < free:
            pending = self._queue.popleft()
            if not pending.future.done():
                self._open[pending.request] = pending
                joining.append(pending.request)
        return joining

    def _fail(self, error: PolicyError) -> None:
        for pending in (*self._open.values(), *self._queue):
            if not pending.future.done():
                pending.future.set_exception(error)
        self._open.clear()
        self._queue.clear()

    async def _on_thread(self, work: Any, *values: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *values)

    def _require_engine(self) -> DecodingEngine:
        if self._engine is None or self._closing:
            raise PolicyError(f"{self._name}: the policy is not running; use it in an `async with` block")
        return self._engine

    def _require_tokenizer(self) -> PreTrainedTokenizerBase:
        if self._tokenizer is None:
            raise PolicyError(f"{self._name}: the policy is not running; use it in an `async with` block")
        return self._tokenizer


def _read_weights(folder: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    state: dict[str, torch.Tensor] = {}
    for path in sorted(folder.glob("*.safetensors")):
        state.update(load_file(path))
    return state
