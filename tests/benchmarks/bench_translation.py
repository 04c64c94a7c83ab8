"""What the translation invariants let pass of true translations, and what they catch of broken ones.

    python tests/benchmarks/bench_translation.py [DATA] [--set mgsm|polymath] [--missed] [--draws 1] [--seed 0]
        [--msvamp FOLDER] [--every 1]

DATA holds the shared sets (default: $GOLDILOCKS_DATA, or shared/data beside the checkout). The English problems of
MGSM and PolyMath are the originals, the same problems in the target languages their translations; each is broken
``--draws`` times in each way of `corrupting` and `corrupting_meaning` that it allows. ``--missed``
shows what was refused of the true and missed
of the broken, in the first half alone. The halves part the problems by a hash: what is mended is looked up in the
first, so the second says what a set does that nobody looked at. Another seed draws other numbers, formulas, sentences.

``--msvamp`` names a folder with MSVAMP's test_English.json, test_German.json … (microsoft/MathOctopus, folder
step1_supervised_finetuning/data/msvamp): 1,000 problems in five of the languages, translated by machine and
looked over; nothing here was made with a look at them. ``--every`` takes every so many of the problems of a set.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from curation.config.languages import TARGETS  # noqa: E402
from curation.translation import CheckedText, check_translation, reasons  # noqa: E402
from curation.verify.math_judge import MathJudge  # noqa: E402
from tests.benchmarks.corrupting import CORRUPTIONS  # noqa: E402
from tests.benchmarks.corrupting_meaning import MEANING_CORRUPTIONS  # noqa: E402


class Pair(NamedTuple):
    """A problem, its translation, and the same problem in every language."""

    id: str
    original: str
    translated: str
    target: str
    answer: str
    others: dict[str, str]

    @property
    def half(self) -> int:
        """Return 0 or 1, the same for a problem in all languages."""
        return hashlib.blake2b(self.original.encode(), digest_size=1).digest()[0] % 2


def pairs(path: Path) -> list[Pair]:
    """Return the parallel problems of a file whose ids are set/lang_level/number or set/lang/number."""
    by_place: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        _, part, number = row["id"].split("/")
        by_place.setdefault((part.partition("_")[2], number), {})[row["lang"]] = row
    parallel: list[Pair] = []
    for langs in by_place.values():
        if "en" in langs:
            texts = {lang: row["problem"] for lang, row in langs.items()}
            parallel += [
                Pair(langs[lang]["id"], texts["en"], texts[lang], lang, langs["en"]["answer"], texts)
                for lang in TARGETS
                if lang in langs
            ]
    return parallel


MSVAMP = {"de": "German", "es": "Spanish", "fr": "French", "ru": "Russian", "zh": "Chinese"}


def _as_written(text: str) -> str:
    """Return a text of MSVAMP, which is cut into words in small letters, with its stops and capitals."""
    joined = re.sub(r" (?=[.,?!;:]|n't\b|'s\b)|(?<=[a-z]) (?=- [a-z])|(?<=[a-z] -) (?=[a-z])", "", text)
    return re.sub(r"(?:^|(?<=[.?!] ))[a-z]", lambda match: match[0].upper(), joined)


def msvamp_pairs(folder: Path) -> list[Pair]:
    """Return MSVAMP's problems with their translations."""
    rows = {
        lang: [json.loads(line) for line in (folder / f"test_{name}.json").read_text(encoding="utf-8").splitlines()]
        for lang, name in {**MSVAMP, "en": "English"}.items()
    }
    return [
        Pair(f"msvamp/{lang}/{at}", _as_written(rows["en"][at]["m_query"]), row["m_query"], lang, row["response"], {})
        for lang in MSVAMP
        for at, row in enumerate(rows[lang])
    ]


def share(caught: Counter[int], totals: Counter[int]) -> str:
    """Return the share of both halves together, then of each."""
    halves = ", ".join(f"{caught[half] / totals[half]:.2%}" for half in (0, 1) if totals[half])
    return f"{caught.total():>5,} of {totals.total():>5,}  {caught.total() / totals.total():>7.2%}  ({halves})"


def true_translations(parallel: list[Pair], judge: MathJudge, missed: bool) -> None:
    """Print pass rates per language, and what the refused ones broke."""
    totals: dict[str, Counter[int]] = defaultdict(Counter)
    passed: dict[str, Counter[int]] = defaultdict(Counter)
    broke: Counter[str] = Counter()
    begun = time.process_time()
    for pair in parallel:
        broken = check_translation(
            CheckedText(pair.original, pair.answer), CheckedText(pair.translated, pair.answer), pair.target, judge
        )
        for name in (pair.target, "all"):
            totals[name][pair.half] += 1
            passed[name][pair.half] += not broken
        broke.update({violation.invariant for violation in broken})
        if broken and missed and pair.half == 0:
            print(f"    refused {pair.id}: {reasons(broken)[:160]}")
    seconds = time.process_time() - begun
    for name in sorted(totals):
        print(f"  true, {name:<17} {share(passed[name], totals[name])}")
    print(f"  refused for: {dict(broke.most_common())}; {len(parallel) / seconds:,.0f} checks a CPU second")


def broken_translations(parallel: list[Pair], judge: MathJudge, missed: bool, draws: int, seed: int) -> None:
    """Print the share that is caught, per kind, and by which invariants."""
    for kind, corrupt in {**CORRUPTIONS, **MEANING_CORRUPTIONS}.items():
        chance = random.Random(f"{kind}{seed or ''}")
        totals: Counter[int] = Counter()
        caught: Counter[int] = Counter()
        by: Counter[str] = Counter()
        for pair in (pair for pair in parallel for _ in range(draws)):
            bad = corrupt(pair.original, pair.translated, pair.target, pair.answer, pair.others, chance)
            if bad is None or bad == pair.translated:
                continue
            totals[pair.half] += 1
            broken = check_translation(
                CheckedText(pair.original, pair.answer), CheckedText(bad, pair.answer), pair.target, judge
            )
            caught[pair.half] += bool(broken)
            by.update({violation.invariant for violation in broken})
            if not broken and missed and pair.half == 0:
                print(f"    missed {pair.id}: {bad[-160:]!r}")
        if totals:
            print(f"  {kind:<23} {share(caught, totals)}  {dict(by.most_common(4))}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", default=os.environ.get("GOLDILOCKS_DATA", ROOT.parent / "shared" / "data"))
    parser.add_argument("--missed", action="store_true")
    parser.add_argument("--set", choices=("mgsm", "polymath"))
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--msvamp", type=Path, help="folder of MSVAMP's files")
    parser.add_argument("--every", type=int, default=1, help="take every so many of a set's problems")
    parsed = parser.parse_args()
    with MathJudge(workers=1) as judge:
        for name in (parsed.set,) if parsed.set else ("mgsm", "polymath", *(["msvamp"] if parsed.msvamp else [])):
            if name == "msvamp":
                parallel = msvamp_pairs(parsed.msvamp)[:: parsed.every]
            else:
                parallel = pairs(Path(parsed.data) / "math" / f"{name}.jsonl")[:: parsed.every]
            print(f"{name}: {len(parallel):,} parallel problems")
            true_translations(parallel, judge, parsed.missed)
            broken_translations(parallel, judge, parsed.missed, parsed.draws, parsed.seed)


if __name__ == "__main__":
    main()
