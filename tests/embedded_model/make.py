"""Train the embedded model from nothing: ``python -m tests.embedded_model.make [OUT]``, minutes on a CPU core.

Everything is drawn with one seed: the same machine, torch version and number of threads give the same weights; another
machine gives weights that behave alike. The model sees training problems only; `tests.embedded_model.measure` asks it
held-out ones.

Every text can be written with its tokens: bytes, single digits, and a few hundred merges learned from its own problems.
``<think>``, ``</think>`` and ``\\boxed{`` are one token each and, unlike the three special tokens, plain text: decoding
keeps them. The chat template drops system messages and whatever follows the first blank line of a user message, which
is where prompts ask for a form: the model answers in one form only.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import torch

from curation.storage.stages import atomic_write
from tests.embedded_model.measure import format_report, measure_pass_rates
from tests.embedded_model.solutions import write_response
from training.embedded_model import WEIGHTS
from training.embedded_model.problems import Split, generate_exercises
from training.optimisation.model import save_model

if TYPE_CHECKING:
    from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

IGNORE_INDEX = -100
"""Label of tokens that are not learned: the question and the padding."""

SEED, STEPS, BATCH_SIZE, TOKENIZER_TEXTS = 7, 1500, 64, 20_000
"""Of the training: its seed, steps, responses a step, and texts from which the tokenizer learns its merges."""
PEAK_LEARNING_RATE, WARMUP_STEPS = 4e-3, 50
"""The rate from the end of the warm-up to 30 % of the steps; then a line down to 0."""
SORT_WINDOW = 48
"""Batches that are drawn at once and sorted by length, so that little is padded."""

PAD, START, END = "<|pad|>", "<|start|>", "<|end|>"
SINGLE_TOKENS = ("<think>", "</think>", "\\boxed{")
VOCABULARY = 640

CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{% if message['role'] == 'user' %}{{ message['content'].split('\\n\\n')[0] }}{{ '\\n' }}"
    "{% elif message['role'] == 'assistant' %}{{ message['content'] }}{{ eos_token }}{% endif %}"
    "{% endfor %}"
)

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
    return train_tokenizer(render_chat(*pair) for pair in itertools.islice(demonstrations(seed), texts))


def train_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """Return a tokenizer whose merges come from these texts; the same texts give the same tokenizer."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(SINGLE_TOKENS),
        special_tokens=[PAD, START, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_tokens([AddedToken(whole, normalized=False, special=False) for whole in SINGLE_TOKENS])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=START,
        eos_token=END,
        pad_token=PAD,
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
        model_max_length=256,
    )


def render_chat(statement: str, response: str = "") -> str:
    """Return the text that the chat template makes of one question and, where given, its answer."""
    return f"{START}{statement}\n{response}{END if response else ''}"


def train_embedded_model(
    demonstrations: Demonstrations = embedded_problems,
) -> tuple[LlamaForCausalLM, PreTrainedTokenizerFast]:
    """Return the trained model and its tokenizer; other problems make another model of the same size."""
    torch.set_num_threads(1)
    tokenizer = make_tokenizer(SEED, TOKENIZER_TEXTS, demonstrations)
    model = new_model(tokenizer, SEED)
    model.train()
    optimizers = _optimizers(model)
    batches = _batches(tokenizer, demonstrations)
    for step in range(STEPS):
        decay = min(1.0, (STEPS - step) / (STEPS - 0.3 * STEPS))
        rate = PEAK_LEARNING_RATE * (min((step + 1) / WARMUP_STEPS, 1.0) * decay)
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
        if step % 100 == 99:
            print(f"step {step + 1}/{STEPS}  loss {loss.item():.3f}", flush=True)
    model.eval()
    return model, tokenizer


def _optimizers(model: LlamaForCausalLM) -> tuple[torch.optim.Optimizer, ...]:
    """Return Muon for the matrices inside the layers, and AdamW for embeddings and norms."""
    parameters = list(model.named_parameters())
    inner = [value for name, value in parameters if value.ndim == 2 and "embed" not in name]
    outer = [value for name, value in parameters if value.ndim != 2 or "embed" in name]
    return (
        torch.optim.Muon(inner, lr=PEAK_LEARNING_RATE, weight_decay=0.05, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(outer, lr=PEAK_LEARNING_RATE, betas=(0.9, 0.98), weight_decay=0.0, fused=True),
    )


def _batches(
    tokenizer: PreTrainedTokenizerFast, demonstrations: Demonstrations
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield tokens and labels, [batch, longest], right-padded; sequences of like length stand together."""
    drawn, order = demonstrations(SEED), Random(SEED + 2)
    while True:
        pool = list(itertools.islice(drawn, BATCH_SIZE * SORT_WINDOW))
        prompts = tokenizer([render_chat(statement) for statement, _ in pool])["input_ids"]
        whole = tokenizer([render_chat(statement, response) for statement, response in pool])["input_ids"]
        rows = sorted(zip(whole, map(len, prompts), strict=True), key=lambda row: len(row[0]))
        starts = list(range(0, len(rows), BATCH_SIZE))
        for last in range(len(starts) - 1, 0, -1):
            other = order.randrange(last + 1)
            starts[last], starts[other] = starts[other], starts[last]
        for start in starts:
            yield _padded(rows[start : start + BATCH_SIZE], tokenizer.pad_token_id)


def _padded(rows: Sequence[tuple[list[int], int]], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    longest = max(len(row) for row, _ in rows)
    ids = torch.full((len(rows), longest), pad)
    labels = torch.full((len(rows), longest), IGNORE_INDEX)
    for at, (row, prompt_length) in enumerate(rows):
        ids[at, : len(row)] = torch.tensor(row)
        labels[at, prompt_length : len(row)] = torch.tensor(row[prompt_length:])
    return ids, labels


def main(folder: Path = WEIGHTS) -> None:
    """Train the model, save it, measure it, and write the figures into its card."""
    text = (WEIGHTS / "README.md").read_text(encoding="utf-8")
    kept = text[: text.index("held-out problems:")].rpartition("\n")[0]
    save_model(*train_embedded_model(), folder)
    figures = format_report(measure_pass_rates(folder))
    atomic_write(folder / "README.md", f"{kept}\n{figures}\n")
    print(figures)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
