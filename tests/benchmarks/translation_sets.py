"""Parallel problems for `bench_translation`, read where they lie; nothing of them is kept here.

    mgsm, polymath, olymmath    of the shared data
    msvamp     1,000 problems of SVAMP in five languages (microsoft/MathOctopus, data/msvamp: test_German.json …)
    gsm8ki     about 7,400 problems of GSM8K's training set in five languages, translated by a chat model
               (NJUNLP/QAlign, data/gsmtrans/gsm8kinstruct_question, its files as de-en.txt, de-de.txt …)
    gsm8kzh    1,069 problems of GSM8K's test set in Chinese, by GPT-3.5: MetaMath's GSM8K_zh without MGSM's 250
               (yifusuyi/UCC-Inj, datasets: problemset_encoded0.jsonl of GSM8K_zh as zh.jsonl, of gsm8k as en.jsonl)
    mmath      374 olympiad problems, of the five in es, fr and zh (RUCAIBox/MMATH: en.json, zh.json …)
    written…   problems that a model translated for the occasion: a folder of the set's name with source.jsonl (n, id,
               problem) and answers/de.txt, zh1.txt …, where each translation stands behind a line ``### n``;
               ``written/0`` are the even n, ``written/1`` the odd ones. Where its writer was asked to err at times, and
               says behind each ``NONE`` or ``MISTAKE: …``, those that err are ``written/0/mistakes``, left out else

A draw is a share of a set's problems by a hash of the English text: the same problems in every language, and another
draw is rows that this one did not hold.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import NamedTuple

from curation.config.languages import TARGETS

_OF_MGSM = 250
"""Problems of GSM8K's test set, from its first one on, that MGSM has."""
MSVAMP = {"de": "German", "es": "Spanish", "fr": "French", "ru": "Russian", "zh": "Chinese"}


class Pair(NamedTuple):
    """A problem, its translation, and the same problem in every language."""

    id: str
    original: str
    translated: str
    target: str
    answer: str | None
    others: dict[str, str]

    @property
    def half(self) -> int:
        """Return 0 or 1, the same for a problem in all languages."""
        return _hash(self.original) % 2


class Draw(NamedTuple):
    """The ``part``-th of ``parts`` shares of a set, from 0 on.

    Example: ``Draw.of("3/24")``
    """

    part: int
    parts: int

    @staticmethod
    def of(written: str) -> Draw:
        """Read ``3/24``."""
        part, _, parts = written.partition("/")
        return Draw(int(part), int(parts))

    def holds(self, pair: Pair) -> bool:
        """Return whether a problem is in this draw."""
        digest = hashlib.blake2b(pair.original.encode(), digest_size=4, salt=b"draw").digest()
        return int.from_bytes(digest, "big") % self.parts == self.part


def _hash(text: str) -> int:
    return hashlib.blake2b(text.encode(), digest_size=1).digest()[0]


def shared(path: Path) -> list[Pair]:
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


def _as_written(text: str) -> str:
    """Return a text of MSVAMP, which is cut into words in small letters, with its stops and capitals."""
    joined = re.sub(r" (?=[.,?!;:]|n't\b|'s\b)|(?<=[a-z]) (?=- [a-z])|(?<=[a-z] -) (?=[a-z])", "", text)
    return re.sub(r"(?:^|(?<=[.?!] ))[a-z]", lambda match: match[0].upper(), joined)


def msvamp(folder: Path) -> list[Pair]:
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


def gsm8ki(folder: Path) -> list[Pair]:
    """Return the problems of GSM8KInstruct with their translations; they come without answers.

    Left out is what was never translated: about one row in a hundred is the English text again.
    """
    parallel: list[Pair] = []
    for lang in MSVAMP:
        before, after = (
            (folder / f"{lang}-{side}.txt").read_text(encoding="utf-8").splitlines() for side in ("en", lang)
        )
        parallel += [
            Pair(f"gsm8ki/{lang}/{at}", original, translated, lang, None, {})
            for at, (original, translated) in enumerate(zip(before, after, strict=True))
            if original.split() != translated.split()
        ]
    return parallel


def gsm8kzh(folder: Path) -> list[Pair]:
    """Return the Chinese problems of GSM8K's test set but those that MGSM has, too; both files are in one order."""
    rows = {
        lang: [json.loads(line) for line in (folder / f"{lang}.jsonl").read_text(encoding="utf-8").splitlines()]
        for lang in ("en", "zh")
    }
    return [
        Pair(f"gsm8kzh/zh/{before['pid']}", before["question"], after["question"], "zh", str(before["answer"]), {})
        for before, after in zip(rows["en"], rows["zh"], strict=True)
        if before["pid"] >= _OF_MGSM
    ]


def mmath(folder: Path) -> list[Pair]:
    """Return MMATH's problems in those languages that are targets."""
    langs = [lang for lang in TARGETS if (folder / f"{lang}.json").exists()]
    rows = {lang: json.loads((folder / f"{lang}.json").read_text(encoding="utf-8")) for lang in (*langs, "en")}
    return [
        Pair(f"mmath/{lang}/{at}", before["question"], after["question"], lang, None, {})
        for lang in langs
        for at, (before, after) in enumerate(zip(rows["en"], rows[lang], strict=True))
    ]


_VERDICT = re.compile(r"\s*^(NONE|MISTAKE:.*)$\s*\Z", re.MULTILINE)
"""What stands behind a translation whose writer was asked to say whether it errs."""


def written(folder: Path, half: int | None, *, mistakes: bool = False) -> list[Pair]:
    """Return the problems of a folder with what was written of them, all or those of even (0) or odd (1) number.

    Args:
        mistakes: whether what errs by its own writer's word is returned, or else the others.
    """
    rows = [json.loads(line) for line in (folder / "source.jsonl").read_text(encoding="utf-8").splitlines()]
    problems = {row["n"]: row for row in rows}
    parallel: list[Pair] = []
    for path in sorted((folder / "answers").glob("*.txt")):
        lang = path.stem.rstrip("0123456789")
        pieces = re.split(r"^### (\d+)[ \t]*$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
        for number, text in zip(map(int, pieces[::2]), pieces[1::2], strict=True):
            verdict = _VERDICT.search(text)
            errs = verdict is not None and verdict[1] != "NONE"
            if half in (None, number % 2) and errs == mistakes:
                row = problems[number]
                translated = _VERDICT.sub("", text).strip()
                parallel.append(Pair(f"{folder.name}/{lang}/{number}", row["problem"], translated, lang, None, {}))
    return parallel


def parallel_problems(name: str, data: Path, corpora: Path | None) -> list[Pair]:
    """Return a set's pairs; ``corpora`` holds the folders msvamp, gsm8ki, gsm8kzh, mmath and written…"""
    if name in ("mgsm", "polymath", "olymmath"):
        return shared(data / "math" / f"{name}.jsonl")
    if corpora is None:
        raise SystemExit(f"{name} is not in the shared data: name the folder that holds {name}/ with --corpora.")
    if name.startswith("written"):
        folder, half, which = (*name.split("/"), "", "")[:3]
        return written(corpora / folder, int(half) if half else None, mistakes=which == "mistakes")
    return {"msvamp": msvamp, "gsm8ki": gsm8ki, "gsm8kzh": gsm8kzh, "mmath": mmath}[name](corpora / name)
