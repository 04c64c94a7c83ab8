"""Take optimiser steps on one process, or sharded over several with FSDP2.

Weights, gradients and AdamW's state are fp32; with ``dtype = bfloat16`` the passes run in bf16.

Invariants: loss and gradient do not depend on the number of ranks, up to rounding; all ranks gather tensors in one
order.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor

from curation.policies.checkpoints import folder_revision
from curation.records import GoldilocksError
from training.config import ADAM_BETAS, ADAM_EPS, MAX_GRAD_NORM, ObjectiveSettings
from training.objectives.base import GroupWeights, ObjectiveInputs, ScoredGroups, Statistic
from training.objectives.registry import objective_of
from training.objectives.step_statistics import joined, measured_over_ranks, policy_statistics
from training.optimisation.attention import packing_for
from training.optimisation.distributed import DistributedContext, RankTask
from training.optimisation.logprobs import PackedPolicy
from training.optimisation.lora import Adapters, is_adapter, plain_name
from training.optimisation.memory import GIB
from training.optimisation.model import active_parameters, load_model, save_model, to_checkpoint_names
from training.optimisation.packing import Collation, MicroBatch, TrainingSample, model_tokens
from training.optimisation.scoring import PolicyScorer, ReferencePolicy, with_teacher_scores
from training.optimisation.sharding import shard
from training.recipe import TrainRecipe

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class TrainingError(GoldilocksError):
    """A training run cannot continue."""


@dataclass(frozen=True, slots=True)
class StepResult:
    """The figures of an optimiser step, over all ranks."""

    loss: float
    gradient_norm: float
    learning_rate: float
    statistics: Mapping[str, Statistic]
    micro_batches: int
    model_tokens: int  # read by the model
    trained_tokens: int  # of responses, in the loss
    seconds: float
    estimates: Mapping[int, float] = field(default_factory=dict)


class Trainer:
    """The policy in training with its optimiser; ranks but 0 run `follow`; ``model`` is in fp32."""

    def __init__(
        self, folder: Path | None, recipe: TrainRecipe, ranks: DistributedContext, model: PreTrainedModel | None = None
    ) -> None:
        self.ranks, self._recipe = ranks, recipe
        self.steps_taken = 0  # optimiser steps
        self.reference: ReferencePolicy | None = None
        self.teacher: ReferencePolicy | None = None
        self._saving: Future[Any] = Future()  # of the current or last checkpoint
        self._saving.set_result(None)
        dtype, loaded = getattr(torch, recipe.compute.dtype), model is None
        if model is None:
            assert folder is not None
            model = load_model(folder, dtype="float32", device=ranks.loading_device, training=True)
        self.model: Any = model
        self.adapters = Adapters(model, recipe.lora, recipe.seed) if recipe.lora is not None else None
        self.base_revision = folder_revision(folder) if self.adapters and folder and ranks.is_rank_zero else None
        if recipe.compute.activation_checkpointing:
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        self.parameters = active_parameters(model)
        self.packing, self.packing_note = packing_for(model, recipe.packing)
        self.policy = PackedPolicy(model, recipe.temperature)
        if ranks.sharded:
            shard(self.policy, ranks, dtype, received=loaded)
        self.scorer = PolicyScorer(self.policy, ranks, self.packing)
        optim = recipe.optim
        self.optimiser = torch.optim.AdamW(
            [value for value in self.policy.parameters() if value.requires_grad],
            lr=optim.learning_rate,
            betas=ADAM_BETAS,
            eps=ADAM_EPS,
            weight_decay=0.0,
        )
        self._work: dict[str, RankTask] = {
            "step": self._step,
            "weights": lambda *_: plain_state(self.model, self.adapters, ranks, dtype),
            "adapters": self._host_adapters,
            "save": self._save,
            "load": self._load,
            **self.scorer.tasks,
        }

    def ask(self, reference: ReferencePolicy | None = None, teacher: ReferencePolicy | None = None) -> None:
        """Set the frozen policies, on every rank before `follow`."""
        self.reference, self.teacher = reference, teacher
        for policy in filter(None, (reference, teacher)):
            self._work |= policy.scorer.tasks

    def follow(self) -> None:
        """Run rank 0's tasks until it closes."""
        self.ranks.follow(self._work)
        wait([self._saving])

    def step(self, samples: Sequence[TrainingSample], settings: ObjectiveSettings) -> StepResult:
        """Take an optimiser step; return its figures."""
        begun = time.perf_counter()
        if self.reference is not None:
            scored = zip(samples, self.reference.scorer.logprobs(samples), strict=True)
            samples = [replace(sample, reference_logprobs=own.tolist()) for sample, own in scored]
        samples, estimates = self._with_second_pass(samples, settings)
        if self.teacher is not None:
            samples = with_teacher_scores(samples, self.teacher.scorer)
        collation = Collation(samples, self.packing, self.ranks.world_size)
        micro_batches = [indices for share in collation.shares for indices in share]
        read = sum(model_tokens(samples, indices) for indices in micro_batches)
        value = (settings, self.steps_taken)
        loss, norm, statistics = self.ranks.run_on_all_ranks("step", self._work, collation, value)
        trained = sum(len(sample.response_ids) if sample.mask is None else sum(sample.mask) for sample in samples)
        if self._recipe.stored is not None and self._recipe.stored.max_distance is not None:
            statistics = {**statistics, "stored_far": far_share(samples)}
        rate, seconds = self._recipe.optim.learning_rate_at(self.steps_taken - 1), time.perf_counter() - begun
        return StepResult(loss, norm, rate, statistics, len(micro_batches), read, trained, seconds, estimates)

    def _with_second_pass(
        self, samples: Sequence[TrainingSample], settings: ObjectiveSettings
    ) -> tuple[Sequence[TrainingSample], Mapping[int, float]]:
        objective = objective_of(settings)
        needs, second_pass = objective.needs(settings), objective.second_pass
        if second_pass is None or not (needs.second_pass or any(sample.max_distance is not None for sample in samples)):
            return samples, {}
        scores = zip(samples, self.scorer.logprobs(samples), strict=True)
        sums = [sequence_sum(sample, own, of_answers=needs.scores_answers) for sample, own in scores]
        scored = ScoredGroups(
            torch.tensor([sample.advantage for sample in samples], dtype=torch.float64),
            torch.tensor(sums, dtype=torch.float64),
            torch.tensor([sample.group for sample in samples]),
            torch.tensor(
                [math.nan if sample.value is None else sample.value for sample in samples], dtype=torch.float64
            ),
        )
        made = second_pass(scored, settings)
        return reweighed(samples, sums, made), made.estimates

    def full_state_dict(self) -> dict[str, Tensor]:
        """Return all tensors under their names on disk, untrained ones on ``meta``; the next step may change others."""
        state: dict[str, Tensor] = self.ranks.run_on_all_ranks("weights", self._work, None, None)
        return state

    def publish(
        self, folder: Path, tokenizer: Any, state: Mapping[str, Tensor], files: Mapping[str, str] | None = None
    ) -> None:
        """Write these weights as a model for transformers and vLLM, with other files."""
        save_model(self.model, tokenizer, folder, asked=self._recipe.trained, extra_files=files, state=state)

    def write_adapters(self, folder: Path, tensors: Mapping[str, Tensor] | None = None) -> None:
        """Write the adapters, if any, or these copies, for peft."""
        if self.adapters is not None:
            current = self.adapter_tensors() if tensors is None else tensors
            self.adapters.write(folder, current, self.model, self._recipe.trained.model)

    def adapter_tensors(self) -> dict[str, Tensor]:
        """Return host copies of the adapters' tensors in fp32, if any."""
        tensors: dict[str, Tensor] = {}
        if self.adapters is not None:
            tensors = self.ranks.run_on_all_ranks("adapters", self._work, None, None)
        return tensors

    def _host_adapters(self, *_: None) -> dict[str, Tensor]:
        own = self.model.state_dict()
        return {name: _whole(value).detach().to("cpu", copy=True) for name, value in own.items() if is_adapter(name)}

    def throughput(self, figures: Sequence[StepResult]) -> dict[str, float]:
        """Return model TFLOP/s without attention, and rank 0's peak memory."""
        seconds = max(sum(step.seconds for step in figures), 1e-9)
        numbers = {"speed/model_tflops": 6e-12 * self.parameters * sum(step.model_tokens for step in figures) / seconds}
        if self.ranks.device.type == "cuda":
            numbers["speed/peak_memory_gib"] = torch.cuda.max_memory_allocated(self.ranks.device) / GIB
        return numbers

    def begin_save(self, folder: Path) -> Future[Any]:
        """Copy weights and optimiser to the host; return a future of the write."""
        self.ranks.run_on_all_ranks("save", self._work, None, str(folder))
        return self._saving

    def load(self, folder: Path, steps_taken: int) -> None:
        """Load what `begin_save` wrote, on any number of ranks."""
        self.ranks.run_on_all_ranks("load", self._work, None, (str(folder), steps_taken))

    def _step(
        self, shares: Iterator[MicroBatch], value: tuple[ObjectiveSettings, int]
    ) -> tuple[float, float, dict[str, Statistic]]:
        objective, self.steps_taken = value
        rate = self._recipe.optim.learning_rate_at(self.steps_taken)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.zero_grad(set_to_none=True)
        loss = torch.zeros((), device=self.ranks.device)
        statistics: dict[str, Statistic] | None = None
        for share in shares:
            part_loss, part_statistics = self._scored(share.to(self.ranks.device), objective)
            torch.autograd.backward(part_loss * self.ranks.world_size)  # sharding averages over ranks
            loss += part_loss.detach()
            earlier = statistics or {}
            statistics = {name: own + earlier[name] if earlier else own for name, own in part_statistics.items()}
        assert statistics is not None
        norm = torch.nn.utils.clip_grad_norm_(self.policy.parameters(), MAX_GRAD_NORM)
        norm = norm.full_tensor() if hasattr(norm, "full_tensor") else norm
        total, measured = float(self.ranks.all_reduce(loss)), measured_over_ranks(statistics, self.ranks)
        if not torch.isfinite(norm):
            raise TrainingError(nonfinite_gradient(self.steps_taken, float(norm), total, measured))
        self.optimiser.step()
        self.steps_taken += 1
        return total, float(norm), measured

    def _scored(self, micro_batch: MicroBatch, settings: ObjectiveSettings) -> tuple[Tensor, dict[str, Statistic]]:
        objective = objective_of(settings)
        scores = self.policy(micro_batch, "gradient" if objective.needs(settings).entropy_gradient else "value")
        shared = {name: getattr(micro_batch, name) for name in _SHARED_FIELDS}
        inputs = ObjectiveInputs(scores.logprobs, entropy=scores.entropy, **shared)
        loss, own = objective.loss(inputs, settings)
        return loss, joined(policy_statistics(inputs), own)

    def _save(self, _: None, folder: str) -> None:
        from torch.distributed.checkpoint.state_dict_saver import async_save

        wait([self._saving])
        state = self._saved_state()
        begun = async_save(
            state, checkpoint_id=folder, no_dist=not self.ranks.sharded, process_group=self.ranks.background_group
        )
        assert isinstance(begun, Future)  # copied when it returns
        self._saving = begun

    def _load(self, _: None, value: tuple[str, int]) -> None:
        from torch.distributed.checkpoint.state_dict import set_state_dict
        from torch.distributed.checkpoint.state_dict_loader import load

        folder, self.steps_taken = value
        state = self._saved_state()
        load(state, checkpoint_id=folder, no_dist=not self.ranks.sharded)
        set_state_dict(
            self.policy,
            self.optimiser,
            model_state_dict=state["model"],
            optim_state_dict=state["optimiser"],
            options=self._saved_parts(),
        )

    def _saved_state(self) -> dict[str, Any]:
        from torch.distributed.checkpoint.state_dict import get_state_dict

        warnings.filterwarnings("ignore", message="torch.distributed is disabled")  # without process groups
        model, optimiser = get_state_dict(self.policy, self.optimiser, options=self._saved_parts())
        if self.adapters is not None:
            model = {name: value for name, value in model.items() if is_adapter(name)}
        return {"model": model, "optimiser": optimiser}

    def _saved_parts(self) -> Any:
        from torch.distributed.checkpoint.state_dict import StateDictOptions

        alone = self.adapters is not None
        return StateDictOptions(ignore_frozen_params=alone, strict=not alone)


_SHARED_FIELDS = tuple(field.name for field in fields(ObjectiveInputs) if field.name in MicroBatch.__dataclass_fields__)
"""Fields of `ObjectiveInputs` and `MicroBatch`."""

_FAR = math.exp(10)
"""A ratio beyond rounding and staleness."""


def nonfinite_gradient(step: int, norm: float, loss: float, statistics: Mapping[str, Statistic]) -> str:
    """Return an error message with the likely cause."""
    largest = statistics["ratio_max"].value
    if not math.isfinite(statistics["kl_generator"].value):
        why = "an earlier step broke the weights; resume with a lower optim.learning_rate"
        if not step:
            why = "no step was taken yet; look for NaN in its weights, or set compute.dtype = float32"
        cause = f"the model's own log-probabilities are no finite numbers: {why}"
    elif largest >= _FAR:
        cause = (
            f"a token is {largest:.1e} times as likely for the trainer as for the generator: they do not compute the "
            "same model; look at policy/mismatch_max in metrics.jsonl, and resume with objective.preset = "
            '"dual_clip", whose ratios are clamped at 3'
        )
    elif not math.isfinite(loss):
        cause = "an advantage, a weight or a term of the objective is no number; look at reward/ and the objective"
    else:
        cause = "the backward pass overflows; resume with compute.dtype = float32 or a lower optim.learning_rate"
    return f"optimiser step {step}: the gradient's norm is {norm}, the loss {loss}: {cause}"


def sequence_sum(sample: TrainingSample, logprobs: Tensor, *, of_answers: bool) -> float:
    """Return the sum of the reference text's log-probabilities, or of the log-ratios to the reference."""
    counts = torch.ones(len(logprobs), dtype=torch.bool) if sample.mask is None else torch.tensor(sample.mask)
    if of_answers:
        counts[: len(logprobs) - sample.answer_tokens] = False
    elif sample.reference_logprobs is None:
        raise ValueError("the objective's second pass needs a reference policy, and the trainer has none")
    else:
        logprobs = logprobs - torch.tensor(sample.reference_logprobs)
    return float(torch.where(counts, logprobs, 0.0).double().sum())


def reweighed(samples: Sequence[TrainingSample], sums: Sequence[float], made: GroupWeights) -> list[TrainingSample]:
    """Return the samples with new weights, 0 if too far from the reference."""
    texts = [0.0] * len(samples) if made.answer_weights is None else made.answer_weights.tolist()
    far = [
        sample.max_distance is not None and abs(sums[index]) > sample.max_distance * len(sample.response_ids)
        for index, sample in enumerate(samples)
    ]
    return [
        replace(sample, advantage=value, answer_weight=text, token_weight=0.0 if too_far else sample.token_weight)
        for sample, value, text, too_far in zip(samples, made.advantages.tolist(), texts, far, strict=True)
    ]


def far_share(samples: Sequence[TrainingSample]) -> Statistic:
    """Return the stored samples' share without weight, or NaN."""
    weighs = [sample.token_weight > 0 for sample in samples if sample.max_distance is not None]
    return Statistic("mean", float(weighs.count(False)), float(len(weighs)))


def plain_state(
    model: PreTrainedModel, adapters: Adapters | None, ranks: DistributedContext, dtype: torch.dtype
) -> dict[str, Tensor]:
    """Return on rank 0 the state dict with merged adapters, under its names on disk.

    Sharded weights are copied in ``dtype``, for several ranks to the host; others are those in training.
    """
    own = model.state_dict()
    state: dict[str, Tensor] = {}
    first = {id(value): name for name, value in model.named_parameters()}
    tied = {name: first[id(value)] for name, value in model.named_parameters(remove_duplicate=False)}
    for name in own:
        if is_adapter(name):
            continue
        if ranks.sharded and tied.get(name, name) != name:  # gathered already
            if ranks.is_rank_zero:
                state[plain_name(name)] = state[plain_name(tied[name])]
            continue
        full = adapters.merged(name, own, _whole) if adapters is not None else _whole(own[name])
        if not ranks.sharded:
            state[plain_name(name)] = full.detach()
        elif ranks.is_rank_zero:
            kept = full.detach().to(dtype if full.is_floating_point() else full.dtype, copy=True)
            state[plain_name(name)] = kept.cpu() if ranks.world_size > 1 else kept
    return to_checkpoint_names(model, state) if ranks.is_rank_zero else state


def _whole(value: Tensor) -> Tensor:
    """Return the unsharded tensor; all ranks take part."""
    full: Tensor = value.full_tensor() if isinstance(value, DTensor) else value
    return full
