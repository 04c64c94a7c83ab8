"""Tests of programs spoilt: another expected output, or an input that ends too early."""

from __future__ import annotations

import random

import polars as pl

from curation.records import TEST

WRONG_OUTPUT, CUT_INPUT = "wrong_output", "cut_input"

SPOILT = pl.Schema({"problem": pl.String(), "test": pl.Int32(), "kind": pl.String()})

_EVERY = 4
"""One test in so many is spoilt, and at least one where a problem has so many."""


def corrupt(answer: bytes, draw: random.Random) -> bytes:
    """Return another output of the same form: one number changed, else one letter, never equal in tokens."""
    tokens = answer.split(b"\n")
    places = [i for i, line in enumerate(tokens) if line.strip()]
    if not places:
        return b"1\n"
    row = draw.choice(places)
    words = tokens[row].split(b" ")
    index = draw.choice([i for i, word in enumerate(words) if word.strip()])
    words[index] = _other(words[index], draw)
    tokens[row] = b" ".join(words)
    return b"\n".join(tokens)


def _other(word: bytes, draw: random.Random) -> bytes:
    try:
        return str(int(word) + draw.choice((1, -1, 7))).encode()
    except ValueError:
        pass
    try:
        return repr(float(word) * 1.5 + 1).encode()
    except ValueError:
        swap = {b"YES": b"NO", b"NO": b"YES", b"Yes": b"No", b"No": b"Yes", b"yes": b"no", b"no": b"yes"}
        return swap.get(word, word + draw.choice((b"x", b"q")))


def spoil_tests(tests: pl.DataFrame, seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the tests with some of each problem's spoilt, wrong outputs and cut inputs in turn; and which (`SPOILT`).

    Args:
        tests: `TEST` rows with expected outputs; a problem with fewer than `_EVERY` is left as it is.
    """
    rows, spoilt, turn = [], [], 0
    for group in tests.partition_by("problem", maintain_order=True):
        own = group.to_dicts()
        draw = random.Random(f"{seed} {own[0]['problem']}")
        usable = [place for place, row in enumerate(own) if row["output"] and len(row["input"] or "") > 2]
        for place in sorted(draw.sample(usable, min(len(usable), len(own) // _EVERY))):
            row, kind = own[place], (WRONG_OUTPUT, CUT_INPUT)[turn % 2]
            turn += 1
            if kind == WRONG_OUTPUT:
                row["output"] = corrupt(row["output"].encode(), draw).decode()
            else:
                row["input"] = row["input"][: draw.randint(1, len(row["input"]) - 2)].rstrip() + "\n"
            spoilt.append((row["problem"], row["index"], kind))
        rows += own
    return pl.DataFrame(rows, schema=TEST), pl.DataFrame(spoilt, schema=SPOILT, orient="row")
