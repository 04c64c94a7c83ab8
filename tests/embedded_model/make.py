"""Train the embedded model from nothing: ``python -m tests.embedded_model.make [OUT]``, minutes on a CPU core.

The same seed, machine, torch version and number of threads give the same weights. Only training problems are shown.
Its tokens are bytes, digits and a few hundred merges; ``<think>``, ``</think>`` and ``\\boxed{`` are one token each and
plain text. The chat template drops system messages and what follows the first blank line of a user message, where
prompts ask for a form: the model answers in one form only.

A worked solution goes column by column and is right; a guess names a number near the answer and is mostly wrong. The
harder a problem, the more often a guess is shown: to work sums out more often is what RL has to find out.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import torch

from curation.storage.stages import atomic_write
from tests.embedded_model.measure import format_report, measure_pass_rates
from training.embedded_model import WEIGHTS
from training.embedded_model.problems import Exercise, Split, generate_exercises
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
    sizes = {"hidden_size": 96, "intermediate_size": 288, "num_hidden_layers": 3, "max_position_embeddings": 256}
    config = LlamaConfig(
        **sizes,
        vocab_size=len(tokenizer),
        num_attention_heads=3,
        num_key_value_heads=3,
        tie_word_embeddings=True,
        **{f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("bos", "eos", "pad")},
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


PHRASES: Mapping[str, tuple[str, str]] = {
    "en": ("Maybe {answer}?", "The answer is \\boxed{{{answer}}}."),
    "fr": ("Peut-être {answer} ?", "La réponse est \\boxed{{{answer}}}."),
    "es": ("Quizás {answer}.", "La respuesta es \\boxed{{{answer}}}."),
    "it": ("Forse {answer}.", "La risposta è \\boxed{{{answer}}}."),
    "de": ("Vielleicht {answer}.", "Die Antwort ist \\boxed{{{answer}}}."),
    "zh": ("大概 {answer}。", "答案是 \\boxed{{{answer}}}。"),
    "ru": ("Может быть, {answer}.", "Ответ: \\boxed{{{answer}}}."),
}
"""The thoughts of a guess, and the summary after the thoughts, by language."""

WORKED_SHARE_BY_LEVEL: Mapping[int, float] = {1: 0.88, 2: 0.66, 3: 0.46, 4: 0.32, 5: 0.0}
"""Share of worked solutions among those shown, by the problem's level; level 5 is only guessed."""

CORRECT_GUESS_SHARE = 0.12
"""Share of guesses that hit the answer, as shown; the rest are off by a few units or by tens."""

UNBOXED_SHARE = 0.03
"""Share of responses that state the answer without a box."""


def write_response(exercise: Exercise, random: Random) -> str:
    """Return one response as the model is shown it."""
    answer = exercise.answer
    if random.random() < WORKED_SHARE_BY_LEVEL[exercise.level]:
        thoughts = _WORKINGS[exercise.kind](exercise.operands)
    else:
        answer = _guess(answer, random)
        thoughts = PHRASES[exercise.lang][0].format(answer=answer)
    summary = PHRASES[exercise.lang][1].format(answer=answer)
    if random.random() < UNBOXED_SHARE:
        summary = summary.replace("\\boxed{", "").replace("}", "")
    return f"<think>{thoughts}</think>{summary}"


def _guess(answer: int, random: Random) -> int:
    if random.random() < CORRECT_GUESS_SHARE:
        return answer
    reach = max(3, answer // 5)
    off = 1 + random.randrange(reach)
    return answer - off if random.random() < 0.5 and off <= answer else answer + off


def _sum(a: int, b: int) -> str:
    """Write ``47+38:7+8=15;4+3+1=8;85``."""
    notes, carry = [f"{a}+{b}:"], 0
    width = max(len(str(a)), len(str(b)))
    for x, y in zip(_digits(a, width), _digits(b, width), strict=True):
        notes.append(f"{x}+{y}{'+1' if carry else ''}={x + y + carry};")
        carry = (x + y + carry) // 10
    return "".join(notes) + str(a + b)


def _difference(a: int, b: int) -> str:
    """Write ``82-47:12-7=5;8-4-1=3;35``."""
    notes, borrowed = [f"{a}-{b}:"], 0
    width = len(str(a))
    for x, y in zip(_digits(a, width), _digits(b, width), strict=True):
        lent = 10 if x - y - borrowed < 0 else 0
        notes.append(f"{x + lent}-{y}{'-1' if borrowed else ''}={x + lent - y - borrowed};")
        borrowed = lent // 10
    return "".join(notes) + str(a - b)


def _product(a: int, b: int) -> str:
    """Write ``47*6:7*6=42;4*6+4=28;282``, for a one-digit ``b``."""
    notes, carry = [f"{a}*{b}:"], 0
    for x in _digits(a, len(str(a))):
        notes.append(f"{x}*{b}{f'+{carry}' if carry else ''}={x * b + carry};")
        carry = (x * b + carry) // 10
    return "".join(notes) + str(a * b)


def _digits(number: int, width: int) -> list[int]:
    return [int(digit) for digit in reversed(str(number).zfill(width))]


def _two_steps(n: Mapping[str, int]) -> str:
    first = _product(n["c"], n["b"])
    return f"{first};{_sum(n['a'], n['b'] * n['c'])}"


def _remainder(n: Mapping[str, int]) -> str:
    a, b = n["a"], n["b"]
    times = a // b
    return f"{b}*{times}={b * times};{a}-{b * times}={a % b};{a % b}"


def _equation(n: Mapping[str, int]) -> str:
    a, b, r = n["a"], n["b"], n["r"]
    return f"{_difference(r, b)};{r - b}/{a}={(r - b) // a};{(r - b) // a}"


_WORKINGS = {
    "add": lambda n: _sum(n["a"], n["b"]),
    "subtract": lambda n: _difference(n["a"], n["b"]),
    "multiply": lambda n: _product(n["a"], n["b"]),
    "three": lambda n: f"{_sum(n['a'], n['b'])};{_sum(n['a'] + n['b'], n['c'])}",
    "giving": lambda n: f"{_difference(n['a'], n['b'])};{_sum(n['a'] - n['b'], n['c'])}",
    "two_steps": _two_steps,
    "remainder": _remainder,
    "larger": lambda n: f"{n['a']},{n['b']}:{max(n['a'], n['b'])}",
    "equation": _equation,
}


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
