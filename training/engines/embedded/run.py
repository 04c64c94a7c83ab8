"""Run a training recipe and write the trained model and its records.

    OUT/run.json           the recipe
    OUT/metrics.jsonl      a row per step; also in OUT/tensorboard
    OUT/attempts.jsonl     every judged rollout
    OUT/attempts/          texts of rollouts and evaluations; OUT/verdicts/ their verdicts
    OUT/batches.jsonl      each step's rollouts
    OUT/asked.jsonl        a model's decisions on doubtful verdicts
    OUT/left_out.jsonl     problems with too long prompts
    OUT/changes.jsonl      the curriculum's changes, with reasons
    OUT/traces/            a cold start's training data
    OUT/checkpoints/       checkpoints to resume from
    OUT/model/             the trained model in Hugging Face format
    OUT/adapter/           with [lora], the trained adapters
    OUT/best/              with `evaluation.keep_best`, the best evaluation's model
    OUT/summary.json
    OUT/stalled.json       why a stalled run ended

Under torchrun every process calls `train`; other ranks only share gradient steps.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, closing, contextmanager
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import torch.distributed as dist

from curation.config import EndpointModel, VllmModel
from curation.policies.chat_templates import folder_stop_tokens
from curation.policies.endpoint import Endpoint
from curation.questions.doubtful_verdicts import PROMPT
from curation.records import SourceError
from curation.storage.locks import lock_folder
from curation.storage.stages import atomic_write
from curation.verify.own_judges import find_judge
from training.checks import CheckResult, require_passed
from training.embedded_model import resolve_model
from training.embedded_model.problems import Split
from training.engines.embedded.loop import CHECKING, TrainingLoop
from training.engines.embedded.preflight import Preflight, PromptChecks, context_of
from training.engines.embedded.servers import generator_servers, served
from training.engines.mirroring import RunMirror, claim_folder
from training.engines.processes import PATIENCE_S
from training.evaluation.metrics import MetricsLogger, open_monitors
from training.generation.generators import Generator, TorchGenerator
from training.generation.weight_transfer import Way
from training.objectives.registry import needs_of
from training.objectives.soft import SoftSettings, soft_values
from training.optimisation.checkpoint import JsonlLog, last_checkpoint
from training.optimisation.distributed import DistributedContext
from training.optimisation.model import load_tokenizer, require_model
from training.optimisation.scoring import ReferencePolicy, require_same_tokens
from training.optimisation.trainer import Trainer
from training.recipe import TrainRecipe
from training.rollouts.attempt_log import AttemptLog
from training.rollouts.curriculum import CurriculumController
from training.rollouts.rollouts import RolloutRunner
from training.rollouts.tasks import TrainingTask, load_tasks
from training.rollouts.verifiers import MAX_QUESTIONS, DoubtfulVerdicts, Verifiers, verifier_workers
from training.stored.batches import open_shown, open_stored
from training.stored.tokens import TokenWriter

LEFT_OUT = "left_out.jsonl"

LOGS = ("metrics", "attempts", "batches", "changes")


def train(
    recipe: TrainRecipe, recipe_folder: Path, out: Path, *, resume: bool = False, servers: Sequence[str] = ()
) -> Path:
    """Train, and return the model's folder; without ``servers`` (vLLM's URLs) the run starts its own."""
    folder = resolve_model(recipe.trained.model, recipe_folder)
    require_model(folder)
    with closing(DistributedContext(recipe.compute)) as context, ExitStack() as stack:
        if context.is_rank_zero:
            stack.enter_context(lock_folder(out, PATIENCE_S if resume else 0.0, _say))
            claim_folder(recipe, recipe_folder, out, resume=resume)
        trainer = _open_trainer(recipe, recipe_folder, folder, context)
        if not context.is_rank_zero:
            trainer.follow()
            return out / "model"
        mirror = stack.enter_context(RunMirror(recipe.storage.mirror, recipe.name, out, _say))
        started_at, cpu_started_at = time.monotonic(), time.process_time()
        summary = _run_rank_zero(recipe, recipe_folder, out, folder, trainer, mirror, servers)
        summary |= {"wall_s": time.monotonic() - started_at, "cpu_s": time.process_time() - cpu_started_at}
        atomic_write(out / "summary.json", json.dumps(summary, indent=1) + "\n")
        return out / "model"


def _open_trainer(recipe: TrainRecipe, recipe_folder: Path, folder: Path, context: DistributedContext) -> Trainer:
    """Return the trainer, with a reference policy and teacher if needed."""
    trainer, needs = Trainer(folder, recipe, context), needs_of(recipe.objective)
    reference = teacher = None
    if needs.uses_reference:
        path = resolve_model(recipe.reference_model, recipe_folder)
        reference = ReferencePolicy(path, recipe, context, trainer.model.config.vocab_size)
    if needs.teacher is not None:
        path = resolve_model(recipe.teacher_model, recipe_folder)
        require_same_tokens(path, folder)
        teacher = ReferencePolicy(path, recipe, context, None, "teacher")
    trainer.ask(reference, teacher)
    return trainer


def check(recipe: TrainRecipe, recipe_folder: Path) -> list[CheckResult]:
    """Check the model and generators; under torchrun only rank 0 returns results."""
    folder = resolve_model(recipe.trained.model, recipe_folder)
    require_model(folder)
    with closing(DistributedContext(recipe.compute)) as context:
        trainer = Trainer(folder, recipe, context)
        if not context.is_rank_zero:
            trainer.follow()
            return []
        tasks, tokenizer = load_tasks(recipe.data, Split.TRAIN, recipe_folder), load_tokenizer(folder)
        prompts = PromptChecks(tokenizer, recipe.solving_prompt, recipe.tags)
        for line in _leave_out_long(recipe, trainer, prompts, tasks, []):
            _say(line)
        preflight = Preflight(recipe, folder_stop_tokens(folder, tokenizer), trainer, prompts, tasks)

        async def check_running(generator: Generator) -> None:
            async with generator:
                await preflight.of_generator(generator)

        if all(result.passed for result in preflight.before_generation()):
            with _opened_generator(recipe, recipe_folder, folder, ()) as generator:
                if generator is not None:
                    asyncio.run(check_running(generator))
        return preflight.results


@contextmanager
def _opened_generator(
    recipe: TrainRecipe, recipe_folder: Path, folder: Path, servers: Sequence[str]
) -> Iterator[Generator | None]:
    """Yield the run's generator, with its own vLLM server unless ``servers`` are given; None if nothing is sampled.

    The own server shares the trainer's GPU, so NCCL cannot broadcast.
    """
    if not recipe.generates:
        yield None
    elif servers or not isinstance(recipe.trained, VllmModel):
        yield build_generator(recipe, folder, servers)
    else:
        _say("vLLM's server is starting")
        with generator_servers(recipe, recipe_folder, [()]) as urls:
            yield build_generator(recipe, folder, urls, "folder")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _run_rank_zero(
    recipe: TrainRecipe,
    recipe_folder: Path,
    out: Path,
    folder: Path,
    trainer: Trainer,
    mirror: RunMirror,
    servers: Sequence[str],
) -> dict[str, Any]:
    """Train, save the model, and return the summary."""
    tasks, evaluation = load_tasks(recipe.data, Split.TRAIN, recipe_folder), recipe.evaluation
    problems = load_tasks(evaluation.data, Split.HELD_OUT, recipe_folder) if evaluation.data is not None else {}
    held_out = list(islice(problems.values(), evaluation.problems))
    checkpoint, tokenizer = last_checkpoint(out), load_tokenizer(folder)
    state: Mapping[str, Any] = checkpoint.state if checkpoint is not None else {}
    prompts = PromptChecks(tokenizer, recipe.solving_prompt, recipe.tags)
    too_long = _leave_out_long(recipe, trainer, prompts, tasks, held_out, out / LEFT_OUT)
    stops = folder_stop_tokens(folder, tokenizer)
    if stops.added:  # the saved model must list all tokens that end responses
        trainer.model.generation_config.eos_token_id = list(stops.ids)
    preflight = Preflight(recipe, stops, trainer, prompts, tasks) if recipe.checks else None
    if preflight is not None:
        require_passed(preflight.before_generation(), recipe.trained.model)
    curriculum = CurriculumController(recipe, tasks)
    values: dict[str, float] = {}
    if isinstance(recipe.objective, SoftSettings) and trainer.reference is not None:
        reference = f"{recipe.reference_model}@{trainer.reference.revision}"
        values |= soft_values(recipe.objective, list(tasks.values()), recipe.rewards, reference)
    if state:
        curriculum.restore(state["curriculum"])
        values |= state["values"]
    own_judges = [find_judge(name, recipe_folder) for name in recipe.verify.judges]
    with ExitStack() as stack:
        logs = {name: stack.enter_context(closing(JsonlLog(out / f"{name}.jsonl"))) for name in LOGS}
        for name, log in logs.items():
            log.truncate(state["logs"].get(name, 0) if state else 0)
        judged = (*tasks.values(), *held_out)
        verifiers = stack.enter_context(Verifiers(judged, verifier_workers(), recipe.rewards, own_judges))
        rollouts = RolloutRunner(tokenizer, prompts.prompt, verifiers, curriculum.rewards, recipe.seed, recipe.tags)
        monitors = open_monitors(recipe.monitor, recipe.name, out, recipe.model_dump(mode="json"))
        first = checkpoint.step + 1 if checkpoint is not None else 0
        logger = stack.enter_context(closing(MetricsLogger(out, logs["metrics"], recipe.steps, first, monitors)))
        generator = stack.enter_context(_opened_generator(recipe, recipe_folder, folder, servers))
        way = getattr(generator, "way", None)
        remarks = [
            *too_long,
            *(f"warning: {warning}" for warning in recipe.warnings()),
            stops.phrase(tokenizer) if stops.added else None,
            f"new weights reach the servers by {way}" if way is not None else None,
            trainer.packing_note,
        ]
        for remark in filter(None, remarks):
            logger.log_message(remark)
        inputs = (tasks, rollouts, TokenWriter(tokenizer, stops, recipe.tags), logger.log_message)
        stored = asyncio.run(open_stored(recipe, recipe_folder, out, *inputs))
        logger.total = stored.steps
        loop = TrainingLoop(
            recipe,
            out,
            tasks,
            held_out,
            trainer,
            tokenizer,
            generator,
            rollouts,
            curriculum,
            logs,
            logger,
            stack.enter_context(AttemptLog(out, recipe, folder, verifiers, state.get("attempt_parts", []))),
            stored,
            mirror,
            values,
            asyncio.run(open_shown(recipe, recipe_folder, *inputs)),
            checkpoint,
        )
        summary = asyncio.run(_run(loop, preflight, recipe_folder, verifiers))
        trainer.publish(out / "model", tokenizer, trainer.full_state_dict())
        shutil.rmtree(out / "adapter", ignore_errors=True)
        trainer.write_adapters(out / "adapter")
    return summary


def _leave_out_long(
    recipe: TrainRecipe,
    trainer: Trainer,
    prompts: PromptChecks,
    tasks: dict[str, TrainingTask],
    held_out: list[TrainingTask],
    file: Path | None = None,
) -> list[str]:
    """Remove problems whose prompts fill the context, list them in ``file``, and return remarks."""
    context = context_of(recipe, trainer.model.config.get_text_config())
    too_long = prompts.without_room([*tasks.values(), *held_out], context)
    for name in too_long.keys() & tasks.keys():
        del tasks[name]
    if not tasks:
        raise SourceError(f"every prompt fills the context of {context:,} tokens; take a longer context")
    held_out[:] = [task for task in held_out if task.id not in too_long]
    if file is not None:
        file.unlink(missing_ok=True)
    if not too_long:
        return []
    line = f"{len(too_long):,} problems are left out, as their prompts fill the context of {context:,} tokens: "
    line += ", ".join(f"{name} ({tokens:,} tokens)" for name, tokens in islice(too_long.items(), 3))
    if file is not None:
        rows = (json.dumps({"problem": name, "tokens": tokens}) for name, tokens in too_long.items())
        atomic_write(file, "".join(f"{row}\n" for row in rows))
        line += f" … ({file})" if len(too_long) > 3 else ""
    return [line]


async def _run(
    loop: TrainingLoop, preflight: Preflight | None, recipe_folder: Path, verifiers: Verifiers
) -> dict[str, Any]:
    recipe = loop.recipe
    async with AsyncExitStack() as stack:
        stack.callback(asyncio.create_task(loop.report_silence()).cancel)
        if loop.generator is not None:
            await stack.enter_async_context(loop.generator)
        if recipe.verify.model is not None:
            settings = recipe.models[recipe.verify.model]
            assert isinstance(settings, EndpointModel)  # other kinds are refused
            policy = await stack.enter_async_context(Endpoint(settings, recipe_folder, PROMPT))
            verifiers.questions = DoubtfulVerdicts(policy, MAX_QUESTIONS, loop.out)
        if preflight is not None:
            loop.begin(0, CHECKING)
            if loop.generator is not None:
                require_passed(await preflight.of_generator(loop.generator), recipe.trained.model)
            for line in preflight.lines():
                loop.logger.log_message(line)
        ledger = await loop.run()
    return {
        "name": recipe.name,
        "steps": loop.step,
        "ledger": {**asdict(ledger), "dropped": dict(ledger.dropped)},
        "evaluations": {str(step): asdict(result) for step, result in loop.evaluations.items()},
        "problems": loop.curriculum.pool_sizes(),
    }


def build_generator(recipe: TrainRecipe, folder: Path, urls: Sequence[str] = (), way: Way | None = None) -> Generator:
    """Build the recipe's generator, not started."""
    model, n_async, temperature, compute = recipe.trained, recipe.collector.n_async, recipe.temperature, recipe.compute
    if isinstance(model, VllmModel):
        model = served(recipe, urls)
    if isinstance(model, EndpointModel):
        from training.generation.endpoint_generators import EndpointGenerator

        copies = compute.dtype != "float32" or (dist.is_initialized() and dist.get_world_size() > 1)
        return EndpointGenerator(folder, model, temperature=temperature, device=compute.device, lasting=copies, way=way)
    return TorchGenerator(folder, capacity=n_async, temperature=temperature, dtype=compute.dtype, device=compute.device)
