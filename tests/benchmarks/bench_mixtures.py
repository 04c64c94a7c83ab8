"""How many mixtures of languages are found, how many pure texts are flagged, and what looking inside costs.

    python -m tests.benchmarks.bench_mixtures [DATA] [--seed 7] [--show KIND]

Texts are three problems of MGSM or PolyMath, one after another, about 140 words. About 10 % of a text is put in another
of the seven languages, from the same problems in that language: runs of four words, runs of two, single words, or whole
sentences of another problem in one place. The halves part the problems by a hash: the word lists were made from the
first, so the second says what is found in texts that nobody looked at. ``loan words`` are pure texts of all seven
languages with LaTeX, code, names, units and English terms put in. Found is what `language_shares` gives another
language more of than the threshold; times are CPU milliseconds for 1,000 tokens (four letters each), what the windows
alone took before and what is looked at now.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import re
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from curation.config.languages import LANGUAGES
from curation.languages.identification import LanguageSettings, identify, identify_prose
from curation.languages.mixing import language_shares, strip_lines, windows
from curation.languages.stripping import letters, strip
from tests.gates.translations import parallel_problems
from tests.places import ROOT

SHARE, TOGETHER = 0.1, 3
THRESHOLDS = (0.0, 0.01, 0.02, 0.05, 0.1)
RUNS = {"runs of four words": 4, "runs of two words": 2, "single words": 1}
TERMS = (
    "`for i in range(n): total += a[i]`", "Python", "JavaScript", "$\\text{if } x > 0$", "\\(f(x)=\\sin x\\)",
    "Facebook",
    "iPhone", "San Francisco", "New York", "km/h", "5 kg", "Wi-Fi", "online", "software", "marketing", "blog", "cookie",
    "```python\nfor x in the_list:\n    print(x)\n```",
)  # fmt: skip


class Text(NamedTuple):
    """A text to look at: what was done to it, its language, the half it is of."""

    kind: str
    lang: str
    half: int
    text: str


def problems(data: Path) -> dict[int, list[dict[str, str]]]:
    """Return by half the problems of both sets, each in the languages it has."""
    parallel: dict[str, dict[str, str]] = {}
    halves: dict[str, int] = {}
    for name in ("mgsm", "polymath"):
        for pair in parallel_problems(data / "math" / f"{name}.jsonl"):
            parallel.setdefault(name + pair.original, {"en": pair.original})[pair.target] = pair.translated
            halves[name + pair.original] = hashlib.blake2b(pair.original.encode(), digest_size=1).digest()[0] % 2
    return {half: [texts for key, texts in parallel.items() if halves[key] == half] for half in (0, 1)}


def texts(data: Path, seed: int) -> Iterator[Text]:
    """Yield pure texts, each with its mixtures."""
    chance = random.Random(seed)
    for half, known in problems(data).items():
        for lang in LANGUAGES:
            own = [problem for problem in known if lang in problem]
            for start in range(0, len(own) - TOGETHER + 1, TOGETHER):
                group = own[start : start + TOGETHER]
                pure = " ".join(problem[lang] for problem in group)
                yield Text("pure", lang, half, pure)
                yield Text("loan words", lang, half, with_terms(pure, lang, chance))
                others = [other for other in LANGUAGES if other != lang and all(other in one for one in group)]
                if others:
                    other = chance.choice(others)
                    foreign = " ".join(problem[other] for problem in group)
                    for kind, run in RUNS.items():
                        yield Text(kind, lang, half, switched(pure, foreign, (lang, other), run, chance))
                    rest = [problem[other] for problem in known if other in problem and problem not in group]
                    yield Text("sentences", lang, half, with_sentences(pure, chance.choice(rest)))


def words(text: str, lang: str) -> list[str]:
    """Return the words of a text; the characters of a Chinese one."""
    return list(text) if lang == "zh" else text.split(" ")


def switched(pure: str, foreign: str, langs: tuple[str, str], run: int, chance: random.Random) -> str:
    """Return a text with a tenth of its words exchanged for those at the same place of the other language's."""
    own, other = words(pure, langs[0]), words(foreign, langs[1])
    taken, put = (run * (2 if lang == "zh" else 1) for lang in langs)  # two Chinese characters are about a word
    places = range(max(1, len(own) - taken))
    for at in sorted(chance.sample(places, min(len(places), max(1, round(SHARE * len(own) / taken)))), reverse=True):
        source = int(at / len(own) * max(1, len(other) - put))
        passage = ("" if langs[1] == "zh" else " ").join(other[source : source + put])
        own[at : at + taken] = [f" {passage} " if langs[0] == "zh" else passage]
    return ("" if langs[0] == "zh" else " ").join(own)


def with_sentences(pure: str, foreign: str) -> str:
    """Return a text with sentences of another language behind its first, a tenth of its letters or more."""
    room, passage = SHARE * letters(strip(pure)), ""
    for sentence in re.split(r"(?<=[.!?。？！])\s*", foreign):
        if letters(strip(passage)) < room:
            passage = f"{passage} {sentence}"
    end = re.search(r"[.!?。？！]\s?", pure)
    at = end.end() if end else len(pure)
    return f"{pure[:at]}{passage} {pure[at:]}"


def with_terms(pure: str, lang: str, chance: random.Random) -> str:
    """Return a text with three terms that no language translates."""
    own = words(pure, lang)
    for term in chance.sample(TERMS, 3):
        own.insert(chance.randrange(len(own)), f" {term} ")
    return ("" if lang == "zh" else " ").join(own)


def by_windows(text: str) -> float:
    """Return the share of other languages by windows of sentences alone, as it was before words were looked at."""
    settings = LanguageSettings()
    whole = identify(text, LANGUAGES)
    counts: dict[str | None, int] = defaultdict(int)
    for window in windows(strip_lines(text), settings.window_letters):
        guess = identify_prose(window, LANGUAGES)
        sure = guess.lang is not None and guess.confidence >= settings.window_confidence
        counts[guess.lang if sure and guess.letters >= settings.window_letters else whole.lang] += guess.letters
    return 1 - counts[whole.lang] / (sum(counts.values()) or 1)


def by_words(text: str) -> float:
    """Return the share of other languages as it is."""
    shares = language_shares(text, LANGUAGES)
    return 1 - shares[0][1] if shares else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", default=os.environ.get("GOLDILOCKS_DATA", ROOT.parent / "shared" / "data"))
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--show", help="show what is missed of a kind, or flagged of the pure, in the first half")
    parsed = parser.parse_args()
    made = list(texts(Path(parsed.data), parsed.seed))
    tokens = sum(letters(one.text) for one in made) / 4
    print(f"{'share above which it is found':<42}" + "".join(f"{limit:>17.0%}" for limit in THRESHOLDS))
    for name, score in (("windows alone, as before", by_windows), ("windows and words", by_words)):
        begun = time.process_time()
        scored = [(one, score(one.text)) for one in made]
        spent = 1e6 * (time.process_time() - begun) / tokens
        print(f"{name}: {spent:.2f} CPU ms per 1,000 tokens; the first half, in brackets the second")
        for kind in dict.fromkeys(one.kind for one in made):
            both = [(one, share) for one, share in scored if one.kind == kind]
            first, second = ([share for one, share in both if one.half == half] for half in (0, 1))
            cells = [
                f"{sum(share > limit for share in first) / len(first):7.1%} "
                f"({sum(share > limit for share in second) / len(second):6.1%})"
                for limit in THRESHOLDS
            ]
            print(f"  {kind:<22}{len(both):>8,} texts    " + "  ".join(cells))
            for one, share in both if name == "windows and words" and parsed.show == kind else ():
                if one.half == 0 and (share > 0.01) == (kind in ("pure", "loan words")):
                    print(f"    {one.lang} {share:.3f} {one.text[:300]!r}")


if __name__ == "__main__":
    main()
