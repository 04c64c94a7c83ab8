"""What the translation invariants let pass of true translations, and what they catch of broken ones.

    python -m tests.benchmarks.bench_translation [DATA] [--sets mgsm,polymath] [--langs de,zh] [--draw 3/24]
        [--corpora FOLDER] [--missed] [--only true|broken] [--kinds ...] [--draws 1] [--seed 0]

DATA holds the shared sets (default: $GOLDILOCKS_DATA, or shared/data beside the checkout), ``--corpora`` the folders of
those that lie elsewhere (`translation_sets`). The English problems are the originals, the same problems in the target
languages their translations; each is broken ``--draws`` times in each way of `curation.planting.translations`,
`corrupting_meaning` and `corrupting_neighbours` that it allows. Shares are printed by language. ``--draw 3/24`` takes
the fourth of 24 shares of the problems: one that nobody looked at says what is seen of new rows. ``--missed`` shows
what was refused of the true and missed of the broken: the draw is looked at then. Another seed draws other numbers,
formulas, sentences.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from curation.planting.translations import CORRUPTIONS, TranslatedPair  # noqa: E402
from curation.translation import CheckedText, check_translation, reasons  # noqa: E402
from curation.verify.math_judge import MathJudge  # noqa: E402
from tests.benchmarks.corrupting_meaning import MEANING_CORRUPTIONS  # noqa: E402
from tests.benchmarks.corrupting_neighbours import NEIGHBOURS  # noqa: E402
from tests.benchmarks.translation_sets import Draw, Pair, parallel_problems  # noqa: E402

KINDS = {**MEANING_CORRUPTIONS, **NEIGHBOURS}


def broken(kind: str, pair: Pair, chance: random.Random) -> str | None:
    """Return the pair's translation broken in one way; None where that cannot be."""
    answer = pair.answer or "0"
    if kind in CORRUPTIONS:
        plain = TranslatedPair(pair.id, pair.original, pair.translated, pair.target, answer, pair.others)
        return CORRUPTIONS[kind](plain, chance)
    return KINDS[kind](pair.original, pair.translated, pair.target, answer, pair.others, chance)


def shares(caught: Counter[str], totals: Counter[str]) -> str:
    """Return the share of all, then of each language, as "98.1 % (of 640): de 97.0 of 128, …"."""
    by_language = ", ".join(f"{lang} {caught[lang] / totals[lang]:.1%} of {totals[lang]}" for lang in sorted(totals))
    return f"{caught.total() / totals.total():>6.1%} of {totals.total():>5,}: {by_language}"


def true_translations(parallel: list[Pair], judge: MathJudge, missed: bool) -> None:
    """Print pass rates per language, and what the refused ones broke."""
    totals: Counter[str] = Counter()
    passed: Counter[str] = Counter()
    broke: Counter[str] = Counter()
    begun = time.process_time()
    for pair in parallel:
        broken = check_translation(
            CheckedText(pair.original, pair.answer), CheckedText(pair.translated, pair.answer), pair.target, judge
        )
        totals[pair.target] += 1
        passed[pair.target] += not broken
        broke.update({violation.invariant for violation in broken})
        if broken and missed:
            print(f"    refused {pair.id}: {reasons(broken)[:240]}")
    seconds = time.process_time() - begun
    print(f"  {'true, accepted':<23} {shares(passed, totals)}")
    print(f"  refused for: {dict(broke.most_common())}; {len(parallel) / seconds:,.0f} checks a CPU second", flush=True)


def broken_translations(
    parallel: list[Pair], judge: MathJudge, kinds: list[str], missed: bool, draws: int, seed: int
) -> None:
    """Print the share that is caught, per kind and language, and by which invariants."""
    for kind in kinds:
        chance = random.Random(f"{kind}{seed or ''}")
        totals: Counter[str] = Counter()
        caught: Counter[str] = Counter()
        by: Counter[str] = Counter()
        for pair in (pair for pair in parallel for _ in range(draws)):
            bad = broken(kind, pair, chance)
            if bad is None or bad == pair.translated:
                continue
            totals[pair.target] += 1
            found = check_translation(
                CheckedText(pair.original, pair.answer), CheckedText(bad, pair.answer), pair.target, judge
            )
            caught[pair.target] += bool(found)
            by.update({violation.invariant for violation in found})
            if not found and missed:
                print(f"    missed {kind} {pair.id}: {_difference(pair.translated, bad)}")
        if totals:
            print(f"  {kind:<23} {shares(caught, totals)}  {dict(by.most_common(3))}", flush=True)


def _difference(good: str, bad: str) -> str:
    """Return the place where a broken text begins to differ from its sound one."""
    at = next((at for at, (a, b) in enumerate(zip(good, bad, strict=False)) if a != b), 0)
    return f"{good[max(0, at - 50) : at + 40]!r} → {bad[max(0, at - 10) : at + 40]!r}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", default=os.environ.get("GOLDILOCKS_DATA", ROOT.parent / "shared" / "data"))
    sets = "mgsm, polymath, olymmath, msvamp, gsm8ki, gsm8kzh, mmath, written…"
    parser.add_argument("--sets", default="mgsm,polymath", help=sets)
    parser.add_argument("--langs", help="target languages, all by default")
    parser.add_argument("--corpora", type=Path, help="folder of the sets that are not shared")
    parser.add_argument("--draw", type=Draw.of, default=Draw(0, 1), help="3/24: the fourth of 24 shares")
    parser.add_argument("--missed", action="store_true")
    parser.add_argument("--only", choices=("true", "broken"))
    parser.add_argument("--kinds", help="kinds of corruption, parted by semicolons; all by default")
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parsed = parser.parse_args()
    kinds = parsed.kinds.split(";") if parsed.kinds else [*KINDS, *CORRUPTIONS]
    with MathJudge(workers=1) as judge:
        for name in parsed.sets.split(","):
            parallel = [
                pair
                for pair in parallel_problems(name, Path(parsed.data), parsed.corpora)
                if parsed.draw.holds(pair) and (not parsed.langs or pair.target in parsed.langs.split(","))
            ]
            print(f"{name}: {len(parallel):,} parallel problems")
            if parsed.only != "broken":
                true_translations(parallel, judge, parsed.missed)
            if parsed.only != "true":
                broken_translations(parallel, judge, kinds, parsed.missed, parsed.draws, parsed.seed)


if __name__ == "__main__":
    main()
