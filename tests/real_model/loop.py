"""The whole loop on a real chat model, by the commands of a user: a set curated, a model trained, loaded and sampled.

    FOLDER/recipe.toml, run/         sums and word problems sampled by vLLM, and the set of those in the band
    FOLDER/train.toml, trained/      GRPO on that set, with vLLM generating
    `measure`                        held-out sums sampled by vLLM from any folder with a model

The commands run in processes of their own, as a user's do. All engines compute in fp32: on a processor without
instructions for it, bf16 is five times slower.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from curation.config.policies import Decoding, VllmModel, WorkedExample
from curation.policies.vllm import Vllm
from curation.records import Completion, Domain, Outcome, PromptRequest, problem_id
from curation.thinking import ThinkingTags
from curation.verify.math_judge import JudgeTask, MathJudge, Response
from tests.places import ROOT
from tests.real_model.sums import EXAMPLES, WORD_PROBLEMS, Sum, draw_sums, write_problems, write_set
from training.rewards import format_error

MAX_TOKENS = 32
_SHOWN = ", ".join(f"{{ statement = {json.dumps(one)}, response = {json.dumps(two)} }}" for one, two in EXAMPLES)
_ENGINE = 'dtype = "float32"\nmax_model_len = 512\nkv_cache_mb = 512'

CURATION = """
name = "real-model"
shard_rows = 200
workers = 1
[[sources]]
name = "sums"
kind = "jsonl"
path = "sums.jsonl"
license = "Apache-2.0"
columns = {{ answer = "answer" }}
{words}
[near_dedup]
enabled = false # two sums are as alike as that
[stage1]
model = "student"
# A weak model errs in one voice, and these references are right by construction.
band = {{ attempts = {attempts}, max_pass_rate = 0.875, wrong_label_share = 1 }}
[models.student]
kind = "vllm"
model = {model}
prompt = "plain"
thinking = "none"
examples = [{shown}]
in_flight = 64
{engine}
decoding = {{ temperature = {temperature}, max_tokens = {tokens} }}
"""

WORDS = """
[[sources]]
name = "svamp"
kind = "jsonl"
path = {path}
limit = {limit}
license = "MIT"
columns = {{ answer = "answer" }}
"""

TRAINING = """
name = "real-model"
seed = {seed}
steps = {steps}
model = "student"
[models.student]
kind = "vllm"
model = {model}
prompt = "plain"
thinking = "none"
examples = [{shown}]
decoding = {{ temperature = {temperature} }}
{engine}
[data]
kind = "curated"
folders = ["run/curated"]
[collector]
group_size = {group}
n_async = {batch}
n_batch = {batch}
max_staleness = 2
[rewards]
max_length = {tokens}
length_penalty = 0.0
language = 0.0 # a sum has no language
[optim]
learning_rate = {learning_rate}
warmup_steps = 2
[packing]
micro_batch_tokens = 2048
[evaluation]
every = {evaluate_every}
attempts = 4
problems = 32
[evaluation.data]
kind = "curated"
folders = ["held_out"]
[checkpoints]
every = {steps}
"""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of everything. ``words`` are word problems, where SVAMP is at hand."""

    sums: int = 150
    words: int = 50
    held_out: int = 64
    attempts: int = 8
    steps: int = 60
    group: int = 8
    batch: int = 64
    learning_rate: float = 1e-5
    evaluate_every: int = 20
    temperature: float = 1.0
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Sampled:
    """Held-out sums after sampling: per sum the share of its attempts that are right; of all attempts the share that
    keeps the form, and the mean length in tokens.
    """

    pass_rates: list[float]
    kept_form: float
    tokens: float


def curate(plan: Plan, folder: Path, model: Path, rows: str | None = None) -> Path:
    """Make the set with `goldilocks run`, where it is not there yet; return its run folder.

    Args:
        rows: lines of JSON in place of the plan's sums.
    """
    run = folder / "run"
    if not (run / "curated" / "README.md").exists():
        if rows is None:
            write_problems(folder / "sums.jsonl", draw_sums(plan.seed, plan.sums, held_out=False))
        else:
            (folder / "sums.jsonl").write_text(rows, encoding="utf-8")
        words = WORDS.format(path=json.dumps(str(WORD_PROBLEMS)), limit=plan.words)
        with_words = plan.words and WORD_PROBLEMS.is_file()
        text = CURATION.format(words=words if with_words else "", attempts=plan.attempts, **_both(plan, model))
        (folder / "recipe.toml").write_text(text, encoding="utf-8")
        goldilocks(folder / "curation.log", "run", str(folder / "recipe.toml"), "--out", str(run))
    return run


def train(plan: Plan, folder: Path, model: Path, checkpoints: str = "") -> Path:
    """Train on the set with `goldilocks train`, or go on with it; return its run folder.

    Args:
        checkpoints: further lines of the recipe's table [checkpoints].
    """
    out = folder / "trained"
    log = folder / "training.log"
    if (out / "summary.json").exists():
        return out
    if (out / "run.json").exists():
        goldilocks(log, "train", "--resume", str(out))
        return out
    write_set(folder / "held_out", held_out_sums(plan))
    sizes = {name: getattr(plan, name) for name in ("seed", "steps", "group", "batch", "learning_rate")}
    text = TRAINING.format(evaluate_every=plan.evaluate_every, **sizes, **_both(plan, model)) + checkpoints
    (folder / "train.toml").write_text(text, encoding="utf-8")
    goldilocks(log, "train", str(folder / "train.toml"), "--out", str(out))
    return out


def held_out_sums(plan: Plan) -> list[Sum]:
    """Return the held-out sums."""
    return draw_sums(plan.seed, plan.held_out, held_out=True)


def measure(model: Path, sums: list[Sum], attempts: int, temperature: float) -> Sampled:
    """Ask the model of a folder each sum so many times, through vLLM; an attempt is right if it also keeps the form."""
    settings = VllmModel.model_validate(
        {
            "kind": "vllm",
            "model": str(model.resolve()),
            "prompt": "plain",
            "thinking": "none",
            "examples": tuple(WorkedExample(statement=one, response=two) for one, two in EXAMPLES),
            "in_flight": 64,
            "dtype": "float32",
            "max_model_len": 512,
            "kv_cache_mb": 512,
            "decoding": Decoding(temperature=temperature, max_tokens=MAX_TOKENS),
        }
    )
    completions = asyncio.run(_sample(settings, sums, attempts))
    tasks = [
        JudgeTask(
            one.statement,
            one.answer,
            "en",
            tuple(Response(item.text, None) for item in answers),
            statement=one.statement,
        )
        for one, answers in zip(sums, completions, strict=True)
    ]
    with MathJudge(workers=1) as judge:
        outcomes = [[verdict.outcome for verdict in judged.verdicts] for judged in judge.judge(tasks)]
    none = ThinkingTags.of("none")
    kept = [[format_error(item.text or "", Domain.MATH, none) is None for item in answers] for answers in completions]
    right = [
        sum(form and outcome is Outcome.CORRECT for form, outcome in zip(*pair, strict=True)) / attempts
        for pair in zip(kept, outcomes, strict=True)
    ]
    every = [item for answers in completions for item in answers]
    return Sampled(right, sum(map(sum, kept)) / len(every), sum(item.tokens or 0 for item in every) / len(every))


def goldilocks(log: Path, *arguments: str) -> None:
    """Run the command; what it says goes to the end of a log.

    Raises:
        RuntimeError: it failed; the text is the end of what it said.
    """
    with log.open("ab") as said:
        command = [sys.executable, "-m", "flows.cli", *arguments]
        done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=said, stderr=said, check=False)
    if done.returncode:
        text = log.read_text(encoding="utf-8", errors="replace")
        raise RuntimeError(f"goldilocks {arguments[0]} ended with status {done.returncode}:\n{text[-3000:]}")


def _both(plan: Plan, model: Path) -> dict[str, object]:
    """Return what both recipes say alike."""
    shared = {"shown": _SHOWN, "engine": _ENGINE, "tokens": MAX_TOKENS, "temperature": plan.temperature}
    return {"model": json.dumps(str(model)), **shared}


async def _sample(settings: VllmModel, sums: list[Sum], attempts: int) -> list[list[Completion]]:
    requests = [PromptRequest(problem_id(one.statement), one.statement, Domain.MATH, "en") for one in sums]
    async with Vllm(settings, Path.cwd()) as policy:
        answers = await asyncio.gather(*(policy.answer(one, index) for one in requests for index in range(attempts)))
    whole = [answer for answer in answers if answer is not None]
    if len(whole) < len(answers):
        raise RuntimeError(f"{len(answers) - len(whole)} prompts are too long; raise max_model_len")
    return [whole[start : start + attempts] for start in range(0, len(whole), attempts)]
