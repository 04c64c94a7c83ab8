"""Learn which words of a translation say a word of its original, from problems that lie elsewhere.

    .venv/bin/python -m tests.word_pairs FOLDER [--langs zh,de] [--without 3/8] [--out FOLDER]

FOLDER holds gsm8ki/ as `tests.benchmarks.translation_sets` reads it. Counted is in how many aligned sentences two
words stand together; kept are the words that come `_LEAST` times and their at most three others whose share (Dice:
twice the sentences of both over the sentences of each) is at least `_SHARE`. The same texts give the same bytes.
``--without 3/8`` leaves the problems of a draw out, to measure on them what was not learnt from them.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter, defaultdict
from pathlib import Path

from curation.languages.vocabulary import language
from curation.translation.alignment import align
from curation.translation.word_pairs import SOURCE, beginning, stem
from tests.benchmarks.translation_sets import MSVAMP, Draw, Pair, gsm8ki

_LEAST, _LEAST_OTHER = 10, 4
_SHARE = 0.25
_FORMS = 3
_COMMON = 0.08
"""Share of the sentences above which a word is too common to tell anything: the, has, how."""
_RUN = 4
_WORD = re.compile(r"[A-Za-z]{2,}")
_ANY = re.compile(r"[^\W\d_]{2,}")
_CHARACTERS = re.compile(r"[\u3400-\u9fff]+")


def aligned(pairs: list[Pair], target: str) -> list[tuple[set[str], set[str]]]:
    """Return the words of the aligned sentences of both sides."""
    return [
        ({stem(word) for word in _WORD.findall(segment.before)}, words_of(segment.after, target))
        for pair in pairs
        for segment in align(pair.original, pair.translated, SOURCE, target)
        if segment.before and segment.after
    ]


def words_of(text: str, target: str) -> set[str]:
    """Return the beginnings of a text's words, or its runs of characters where words run together."""
    if language(target).spaced:
        return {beginning(word) for word in _ANY.findall(text)}
    return {
        run[at : at + size]
        for run in _CHARACTERS.findall(text)
        for size in range(1, _RUN + 1)
        for at in range(len(run) - size + 1)
    }


def learnt(sentences: list[tuple[set[str], set[str]]]) -> dict[str, list[tuple[str, float]]]:
    """Return the words with what says them, the surest first."""
    mine = Counter(word for words, _ in sentences for word in words)
    theirs = Counter(word for _, words in sentences for word in words)
    together: dict[str, Counter[str]] = defaultdict(Counter)
    for words, others in sentences:
        known = {other for other in others if theirs[other] >= _LEAST_OTHER}
        for word in words:
            if _LEAST <= mine[word] <= _COMMON * len(sentences):
                together[word].update(known)
    pairs: dict[str, list[tuple[str, float]]] = {}
    for word in sorted(together):
        shares = [(2 * count / (mine[word] + theirs[other]), other) for other, count in together[word].items()]
        kept: list[tuple[str, float]] = []
        for share, other in sorted(shares, key=lambda one: (-one[0], len(one[1]), one[1])):
            if share < _SHARE or len(kept) == _FORMS:
                break
            if not any(other in known or known in other for known, _ in kept):
                kept.append((other, share))
        if kept:
            pairs[word] = kept
    return pairs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", type=Path)
    parser.add_argument("--langs", default=",".join(MSVAMP))
    parser.add_argument("--without", type=Draw.of)
    parser.add_argument("--out", type=Path, default=Path("curation/translation/learnt"))
    parsed = parser.parse_args()
    problems = gsm8ki(parsed.corpora / "gsm8ki")
    for target in parsed.langs.split(","):
        pairs = [
            pair for pair in problems if pair.target == target and not (parsed.without and parsed.without.holds(pair))
        ]
        found = learnt(aligned(pairs, target))
        lines = ("\t".join([word, *(f"{form}\t{share:.2f}" for form, share in said)]) for word, said in found.items())
        (parsed.out / f"{target}.tsv").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        print(f"{target}: {len(found):,} words of {len(pairs):,} problems")


if __name__ == "__main__":
    main()
