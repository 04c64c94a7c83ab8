"""Train the embedded model from nothing: ``python -m tests.embedded_model.make [OUT]``, minutes on two CPU cores.

Everything is drawn with one seed: the same machine, torch version and number of threads give the same weights; another
machine gives weights that behave alike. The model sees training
problems only; `tests.embedded_model.measure` asks it held-out ones.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import torch

from curation.storage.stages import atomic_write
from tests.embedded_model import tokens
from tests.embedded_model.card import CARD
from tests.embedded_model.measure import format_report, measure_pass_rates
from tests.embedded_model.solutions import CORRECT_GUESS_SHARE, UNBOXED_SHARE, WORKED_SHARE_BY_LEVEL, write_response
from training.embedded_model import WEIGHTS
from training.embedded_model.problems import WORDINGS, Split, generate_exercises
from training.optimisation.model import save_model

if TYPE_CHECKING:
    from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

IGNORE_INDEX = -100
"""Label of tokens that are not learned: the question and the padding."""


@dataclass(frozen=True)
class TrainingSettings:
    """How the embedded model is trained."""

    seed: int = 7
    steps: int = 1500
    batch_size: int = 64  # responses a step
    peak_learning_rate: float = (
        4e-3  # learning rate from the end of the warm-up to 30 % of the steps; then a line down to 0
    )
    warmup_steps: int = 50  # steps
    sort_window: int = 48  # batches that are drawn at once and sorted by length, so that little is padded
    threads: int = 1
    tokenizer_texts: int = 20_000  # from which the tokenizer learns its merges


Progress = Callable[[int, float], None]
Demonstrations = Callable[[int], Iterator[tuple[str, str]]]
"""A seed → statements and the responses that a model is shown, without end."""


def new_model(tokenizer: PreTrainedTokenizerFast, seed: int) -> LlamaForCausalLM:
    """Return a Llama of 0.4 million parameters with random weights."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=96,
        intermediate_size=288,
        num_hidden_layers=3,
        num_attention_heads=3,
        num_key_value_heads=3,
        max_position_embeddings=256,
        tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        dtype="float32",
    )
    return LlamaForCausalLM(config)


def embedded_problems(seed: int) -> Iterator[tuple[str, str]]:
    """Yield training problems of the embedded family, each with one response, without end."""
    random = Random(seed + 1)
    for exercise in generate_exercises(seed, Split.TRAIN, repeats=True):
        yield exercise.statement, write_response(exercise, random)


def make_tokenizer(
    seed: int, texts: int, demonstrations: Demonstrations = embedded_problems
) -> PreTrainedTokenizerFast:
    """Return the tokenizer, its merges learned from training problems."""
    return tokens.train_tokenizer(tokens.render_chat(*pair) for pair in itertools.islice(demonstrations(seed), texts))


def train_embedded_model(
    settings: TrainingSettings, progress: Progress | None = None, demonstrations: Demonstrations = embedded_problems
) -> tuple[LlamaForCausalLM, PreTrainedTokenizerFast]:
    """Return the trained model and its tokenizer.

    Args:
        progress: is told each step's number and loss.
        demonstrations: what the model learns from; other problems make another model of the same size.
    """
    torch.set_num_threads(settings.threads)
    tokenizer = make_tokenizer(settings.seed, settings.tokenizer_texts, demonstrations)
    model = new_model(tokenizer, settings.seed)
    model.train()
    optimizers = _optimizers(model, settings.peak_learning_rate)
    batches = _batches(tokenizer, settings, demonstrations)
    for step in range(settings.steps):
        rate = settings.peak_learning_rate * _schedule(step, settings)
        for group in itertools.chain.from_iterable(optimizer.param_groups for optimizer in optimizers):
            group["lr"] = rate
        tokens_in, labels = next(batches)
        hidden = model.model(input_ids=tokens_in, use_cache=False).last_hidden_state[:, :-1]
        is_response = labels[:, 1:] != IGNORE_INDEX
        logits = model.lm_head(hidden[is_response])
        loss = torch.nn.functional.cross_entropy(logits, labels[:, 1:][is_response])
        model.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
        if progress is not None:
            progress(step, loss.item())
    model.eval()
    return model, tokenizer


def _optimizers(model: LlamaForCausalLM, peak: float) -> tuple[torch.optim.Optimizer, ...]:
    """Return Muon for the matrices inside the layers, and AdamW for embeddings and norms."""
    parameters = list(model.named_parameters())
    inner = [value for name, value in parameters if value.ndim == 2 and "embed" not in name]
    outer = [value for name, value in parameters if value.ndim != 2 or "embed" in name]
    return (
        torch.optim.Muon(inner, lr=peak, weight_decay=0.05, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(outer, lr=peak, betas=(0.9, 0.98), weight_decay=0.0, fused=True),
    )


def _schedule(step: int, settings: TrainingSettings) -> float:
    level = 0.3 * settings.steps
    return min((step + 1) / settings.warmup_steps, 1.0) * min(1.0, (settings.steps - step) / (settings.steps - level))


def _batches(
    tokenizer: PreTrainedTokenizerFast, settings: TrainingSettings, demonstrations: Demonstrations
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield tokens and labels, [batch, longest], right-padded; sequences of like length stand together."""
    drawn, order = demonstrations(settings.seed), Random(settings.seed + 2)
    while True:
        pool = list(itertools.islice(drawn, settings.batch_size * settings.sort_window))
        prompts = tokenizer([tokens.render_chat(statement) for statement, _ in pool])["input_ids"]
        whole = tokenizer([tokens.render_chat(statement, response) for statement, response in pool])["input_ids"]
        rows = sorted(zip(whole, map(len, prompts), strict=True), key=lambda row: len(row[0]))
        starts = list(range(0, len(rows), settings.batch_size))
        for last in range(len(starts) - 1, 0, -1):
            other = order.randrange(last + 1)
            starts[last], starts[other] = starts[other], starts[last]
        for start in starts:
            yield _padded(rows[start : start + settings.batch_size], tokenizer.pad_token_id)


def _padded(rows: Sequence[tuple[list[int], int]], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    longest = max(len(row) for row, _ in rows)
    ids = torch.full((len(rows), longest), pad)
    labels = torch.full((len(rows), longest), IGNORE_INDEX)
    for at, (row, prompt_length) in enumerate(rows):
        ids[at, : len(row)] = torch.tensor(row)
        labels[at, prompt_length : len(row)] = torch.tensor(row[prompt_length:])
    return ids, labels


def main(arguments: Sequence[str] | None = None) -> None:
    """Train the model, save it, measure it, and write its card."""
    parser = argparse.ArgumentParser(prog="python -m tests.embedded_model.make", description=__doc__)
    parser.add_argument("out", nargs="?", type=Path, default=WEIGHTS, help="folder of the model (replaced)")
    parser.add_argument("--seed", type=int, default=TrainingSettings.seed)
    parser.add_argument("--steps", type=int, default=TrainingSettings.steps)
    parser.add_argument("--threads", type=int, default=TrainingSettings.threads)
    options = parser.parse_args(arguments)
    settings = TrainingSettings(seed=options.seed, steps=options.steps, threads=options.threads)
    began = time.monotonic()

    def progress(step: int, loss: float) -> None:
        if step % 100 == 99 or step + 1 == settings.steps:
            print(f"step {step + 1}/{settings.steps}  loss {loss:.3f}  {time.monotonic() - began:.0f} s", flush=True)

    model, tokenizer = train_embedded_model(settings, progress)
    seconds, parameters = time.monotonic() - began, sum(value.numel() for value in model.parameters())
    save_model(model, tokenizer, options.out)
    write_card(options.out, settings, parameters, seconds)


def write_card(folder: Path, settings: TrainingSettings, parameters: int, seconds: float) -> None:
    """Measure the saved model and write ``README.md`` beside its weights; ``seconds`` is the wall time it took."""
    figures = format_report(measure_pass_rates(folder))
    load = os.getloadavg()[1]
    card = CARD.format(
        parameters=parameters,
        kinds=len(WORDINGS["en"]),
        steps=settings.steps,
        batch=settings.batch_size,
        seed=settings.seed,
        threads=settings.threads,
        seconds=seconds,
        share=f"load {load:.1f} on {os.cpu_count()} cores",
        guessed=CORRECT_GUESS_SHARE,
        worked=", ".join(f"level {level}: {1 - share:.0%}" for level, share in WORKED_SHARE_BY_LEVEL.items()),
        unboxed=UNBOXED_SHARE,
        figures=figures,
    )
    atomic_write(folder / "README.md", card)
    print(figures)


if __name__ == "__main__":
    main()
