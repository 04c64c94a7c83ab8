"""What of broken translations the invariants find, on a set's own: figures of its receipt, from the set's files alone.

Every translation of a set passed the invariants, but those for which a reader overruled one: these would be refused
unbroken, and are left out. Copies are broken in known ways (`curation.planting.translations`)
and held to them again. Back-translations and solving back ask a model, and are left out. The same set and the same
Goldilocks give the same figures.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from curation.planting import CORRUPTIONS, TranslatedPair, plant_translations
from curation.publish.receipts import Figure, Needs, share_figure
from curation.translation import VERSION, CheckedText, check_translation
from curation.verify.math_judge import MathJudge

SECTION = "translations"

TRANSLATED = "data/translated-*.parquet"

MOST = 50
"""Translations that are broken in one way, at most."""

_HOW = (
    f"copies of the set's translations were broken on purpose and held to the invariants of {VERSION}; what asks a "
    "model was left out; after the share, which invariants were broken first"
)
_COLUMNS = ["id", "lang", "statement", "answer", "meta"]


def translation_figures(folder: Path) -> list[Figure]:
    """Return the share of broken translations that is refused, kind by kind; nothing where a set has none."""
    pairs = list(_pairs(folder))
    if not pairs:
        return []
    found: dict[str, Counter[str]] = {kind: Counter() for kind in CORRUPTIONS}
    with MathJudge(workers=1) as judge:
        for kind, pair, broken in plant_translations(pairs, 0, MOST):
            before, after = CheckedText(pair.original, pair.answer), CheckedText(broken, pair.answer)
            violations = check_translation(before, after, pair.target, judge, pair.source)
            found[kind][violations[0].invariant if violations else "stayed"] += 1
    return [_figure(kind, counts) for kind, counts in found.items()]


def _figure(kind: str, counts: Counter[str]) -> Figure:
    total = counts.total()
    how = _HOW if total else "no translation of the set can be broken so"
    ordered = dict(sorted(counts.items(), key=lambda item: (item[0] == "stayed", -item[1], item[0])))
    name, title = f"{SECTION}.{kind.replace(' ', '_')}", f"Translations with a {kind}"
    return share_figure(name, _TITLES.get(kind, title), total - counts["stayed"], total, how, Needs.SET, ordered)


_TITLES = {
    "wrong language": "Translations into another language",
    "answer appended": "Translations with the answer",
    "sentence left": "Translations with a sentence of the original",
    "numbers exchanged": "Translations with two numbers exchanged",
}


def _pairs(folder: Path) -> Iterator[TranslatedPair]:
    """Yield each translation whose original is in the set, with the translations of the same problem."""
    tables = sorted(folder.glob(TRANSLATED))
    if not tables:
        return
    rows = pl.concat([pl.read_parquet(file, columns=_COLUMNS, glob=False) for file in tables])
    files = sorted(folder.glob("data/train-*.parquet"))
    table = pl.concat([pl.read_parquet(file, columns=_COLUMNS, glob=False) for file in files])
    originals = {row["id"]: row for row in table.iter_rows(named=True)}
    together: dict[str, dict[str, str]] = {}
    made = [json.loads(meta or "{}").get("translation", {}) for meta in rows["meta"]]
    of = ["" if one.get("reader", {}).get("overruled") else one.get("of", "") for one in made]
    for name, lang, statement in zip(of, rows["lang"], rows["statement"], strict=True):
        together.setdefault(name, {})[lang] = statement or ""
    for name, row in zip(of, rows.iter_rows(named=True), strict=True):
        original = originals.get(name)
        if original is None or not row["statement"] or not original["statement"]:  # withheld texts
            continue
        source = original["lang"] or "en"
        others = {lang: text for lang, text in together[name].items() if text} | {source: original["statement"]}
        answer = original["answer"] or "0"
        yield TranslatedPair(row["id"], original["statement"], row["statement"], row["lang"], answer, others, source)
