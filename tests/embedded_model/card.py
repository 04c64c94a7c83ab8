"""The model card of the embedded model, with the figures that were measured when it was made."""

from __future__ import annotations

CARD = """\
---
license: apache-2.0
library_name: transformers
language: [en, fr, es, it, de, zh, ru]
---

# The embedded model of Goldilocks

A Llama of {parameters:,} parameters that answers short sums as `<think>…</think>` and a sentence ending in
`\\boxed{{}}`. It is there so that demos and tests have a real model on a machine without a GPU. It is **not** a
language model of any use: it knows {kinds} kinds of problem, in fixed wordings, and nothing else.

It is made from nothing by `python -m tests.embedded_model.make` ({steps} steps of {batch} responses, seed {seed},
{seconds:.0f} s with {threads} thread(s) on the machine that made these weights, {share}). Problems come from
`training/embedded_model/problems.py`. A fifth of all computations is held out from training by content.

**It is weak on purpose.** It was shown two ways of answering: the sum worked out column by column, which is right, and
a guess after one glance, which is right in {guessed:.0%} of the cases shown. The harder the problem, the more often it
was shown a guess ({worked}). {unboxed:.0%} of the responses shown lack the box. So pass rates spread from 0 to 1, and
reinforcement learning has something to find: that working it out pays.

- Tokens: bytes, single digits and merges learned from the problems; `<think>`, `</think>` and `\\boxed{{` are one token
  each. Context: 256 tokens.
- The chat template drops system messages and whatever follows the first blank line of a question.
- Level 5 (products of two two-digit numbers) was never shown worked out: it stays close to never solved.

## Measured

At temperature 1, 16 attempts a problem, judged by the math verifier:

{figures}
"""
"""Filled by `tests.embedded_model.make`."""
