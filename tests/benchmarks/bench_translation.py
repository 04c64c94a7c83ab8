"""What the translation invariants let pass of true translations, and what they catch of broken ones.

    python tests/benchmarks/bench_translation.py [DATA] [--missed] [--set mgsm|polymath]

DATA holds the shared sets (default: $GOLDILOCKS_DATA, or shared/data beside the checkout). The English problems of
MGSM and PolyMath are the originals, the same problems in the target languages their translations; each is broken once
in each way of `corrupting` that it allows. ``--missed`` shows what was refused of the true and missed of the broken.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from curation.config.languages import TARGETS  # noqa: E402
from curation.translation import Text, check, reasons  # noqa: E402
from tests.benchmarks.corrupting import CORRUPTIONS  # noqa: E402


class Pair(NamedTuple):
    """A problem, its translation, and the same problem in every language."""

    id: str
    original: str
    translated: str
    target: str
    answer: str
    others: dict[str, str]


def pairs(path: Path) -> list[Pair]:
    """The parallel problems of a file whose ids are set/lang_level/number or set/lang/number."""
    by_place: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        _, part, number = row["id"].split("/")
        by_place.setdefault((part.partition("_")[2], number), {})[row["lang"]] = row
    made: list[Pair] = []
    for langs in by_place.values():
        if "en" in langs:
            texts = {lang: row["problem"] for lang, row in langs.items()}
            made += [
                Pair(langs[lang]["id"], texts["en"], texts[lang], lang, langs["en"]["answer"], texts)
                for lang in TARGETS
                if lang in langs
            ]
    return made


def true_translations(found: list[Pair], missed: bool) -> None:
    """Pass rates per language, and what the refused ones broke."""
    total, passed, broke = Counter(pair.target for pair in found), Counter[str](), Counter[str]()
    begun = time.process_time()
    for pair in found:
        broken = check(Text(pair.original, pair.answer), Text(pair.translated, pair.answer), pair.target)
        passed[pair.target] += not broken
        broke.update({one.invariant for one in broken})
        if broken and missed:
            print(f"    refused {pair.id}: {reasons(broken)[:160]}")
    seconds = time.process_time() - begun
    for lang in total:
        print(f"  true, {lang:<17} {passed[lang]:>5,} of {total[lang]:>5,}  {passed[lang] / total[lang]:.2%}")
    print(f"  true, all{'':<14} {passed.total():>5,} of {total.total():>5,}  {passed.total() / total.total():.2%}")
    print(f"  refused for: {dict(broke.most_common())}; {total.total() / seconds:,.0f} checks a CPU second")


def broken_translations(found: list[Pair], missed: bool) -> None:
    """The share that is caught, per kind, and by which invariants."""
    for kind, corrupt in CORRUPTIONS.items():
        chance = random.Random(kind)
        made = caught = 0
        by: Counter[str] = Counter()
        for pair in found:
            bad = corrupt(pair.original, pair.translated, pair.target, pair.answer, pair.others, chance)
            if bad is None or bad == pair.translated:
                continue
            made += 1
            broken = check(Text(pair.original, pair.answer), Text(bad, pair.answer), pair.target)
            caught += bool(broken)
            by.update({one.invariant for one in broken})
            if not broken and missed:
                print(f"    missed {pair.id}: {bad[-160:]!r}")
        if made:
            print(f"  {kind:<23} {caught:>5,} of {made:>5,}  {caught / made:.2%}  {dict(by.most_common(4))}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", default=os.environ.get("GOLDILOCKS_DATA", ROOT.parent / "shared" / "data"))
    parser.add_argument("--missed", action="store_true")
    parser.add_argument("--set", choices=("mgsm", "polymath"))
    asked = parser.parse_args()
    for name in (asked.set,) if asked.set else ("mgsm", "polymath"):
        found = pairs(Path(asked.data) / "math" / f"{name}.jsonl")
        print(f"{name}: {len(found):,} parallel problems")
        true_translations(found, asked.missed)
        broken_translations(found, asked.missed)


if __name__ == "__main__":
    main()
