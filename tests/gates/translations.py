"""Translations: what a reader alone, and the exact invariants alone, find of mistakes, and what they take of true ones.

Three sets, all of problems in the shared data, named by row:

    planted    translations of MGSM and PolyMath, broken by rule (`DRAWN` of each kind and language)
    careless   problems of GSM8K that a model translated with one natural mistake each
    true       problems of GSM8K that a model translated as the product asks it to

Each pair is put before the reader once, without any word of what the invariants hold against it.

    python -m tests.gates.translations     per kind: what the reader and the exact invariants refuse
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from curation.languages.names import LANGUAGES as PAPER
from curation.languages.names import NAMES
from curation.prompts import Prompt
from curation.records import Domain, PromptRequest, problem_id
from curation.translation.invariants import ProblemText, broken
from curation.translation.questions import READING, READING_VOTE, TRANSLATE, read_both, read_translation
from curation.verify.math_judge import MathJudge
from tests.gates.base import Limit, Measured, gate, shared, shared_rows, wilson
from tests.gates.corruptions import CORRUPTIONS, Pair
from tests.gates.stored import Asked, answers_to, prompts, rendered

LANGUAGES = ("de", "es", "fr", "ru", "zh")
DRAWN = 5
CARELESS, TRUE = 24, 60
"""Problems per language."""
CARELESS_SYSTEM = """\
You write test material for a program that checks translations of problems. Translate the given problem into the \
named language as a careless translator would: fluent and complete, with exactly one natural mistake that changes \
what is asked or what follows from the text. Natural mistakes come from misreading: who does something, what a number \
counts, each or together, the whole or the rest, more by a number or times that number, before or after, at first or \
in the end, what is left out, a condition or a negation that is lost, another quantity asked for. All numbers in \
digits stay as they are. Vary the mistake with the problem.

Write the translation between <translation> and </translation>, then one line 'MISTAKE: ' with what is now different."""
CARELESS_PROMPT = Prompt(
    "careless@1",
    CARELESS_SYSTEM,
    lambda request: f"Language: {NAMES[request.details['target']]}\n\nThe problem:\n\n{request.statement}",
)


@dataclass(frozen=True, slots=True)
class Case:
    """A pair, and how its translation was made."""

    kind: str
    pair: Pair

    @property
    def texts(self) -> tuple[ProblemText, ProblemText]:
        """Return the original and the translation."""
        return ProblemText(self.pair.original, self.pair.answer), ProblemText(self.pair.translated, self.pair.answer)

    @property
    def request(self) -> PromptRequest:
        """Return what the reader is asked."""
        return read_both(ProblemText(self.pair.original), ProblemText(self.pair.translated), self.pair.target)


def parallel_problems(path: Path) -> list[Pair]:
    """Return the parallel problems of a file whose ids are set/lang_level/number or set/lang/number."""
    by_place: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        _, part, number = row["id"].split("/")
        by_place.setdefault((part.partition("_")[2], number), {})[row["lang"]] = row
    pairs: list[Pair] = []
    for rows in (rows for rows in by_place.values() if "en" in rows):
        texts = {lang: row["problem"] for lang, row in rows.items()}
        there = (lang for lang in PAPER[1:] if lang in rows)
        pairs += [Pair(rows[lang]["id"], texts["en"], texts[lang], lang, rows["en"]["answer"], texts) for lang in there]
    return pairs


@cache
def planted() -> list[Case]:
    """Return broken translations: `DRAWN` of each kind and language, in an order by hash."""
    pairs = [pair for name in ("mgsm", "polymath") for pair in parallel_problems(shared("math", f"{name}.jsonl"))]
    cases = []
    for kind, corrupted in CORRUPTIONS.items():
        chance, made = random.Random(f"{kind} gates"), Counter[str]()
        for pair in sorted(pairs, key=lambda pair: problem_id(f"{kind} {pair.id}")):
            bad = corrupted(pair, chance) if made[pair.target] < DRAWN else None
            if bad is not None and bad != pair.translated:
                made[pair.target] += 1
                cases.append(Case(kind, pair._replace(translated=bad)))
    return cases


def _requests(count: int, skip: int) -> list[PromptRequest]:
    """Return requests to translate GSM8K's problems, `count` a language, others in each language."""
    rows = sorted(shared_rows("math", "gsm8k.jsonl"), key=lambda row: problem_id(row["id"]))
    chosen = [row["problem"] for row in rows[skip : skip + count * len(LANGUAGES)]]
    return [
        PromptRequest(problem_id(text), text, Domain.MATH, "en", {"target": LANGUAGES[at % len(LANGUAGES)]})
        for at, text in enumerate(chosen)
    ]


@prompts("translations-careless")
def careless_prompts() -> Asked:
    """Return what asks for translations with a mistake."""
    return [(CARELESS_PROMPT, request) for request in _requests(CARELESS, 0)]


@prompts("translations-true")
def true_prompts() -> Asked:
    """Return what asks for translations, as the product does."""
    return [(TRANSLATE, request) for request in _requests(TRUE, CARELESS * len(LANGUAGES))]


@cache
def written() -> list[Case]:
    """Return the translations that a model wrote."""
    cases = []
    for kind, asked in (("careless", careless_prompts()), ("true", true_prompts())):
        replies = answers_to(f"translations-{kind}", [rendered(*one) for one in asked])
        for (_, request), texts in zip(asked, replies, strict=True):
            reply = read_translation(texts[0])
            translated = reply.statement if reply is not None else ""
            target = request.details["target"]
            pair = Pair(f"{kind}/{request.id}", request.statement, translated, target, None, {})
            cases.append(Case(kind, pair))
    return cases


@prompts("translations-read")
def read_prompts() -> Asked:
    """Return what the reader is asked of all three sets."""
    return [(READING, case.request) for case in [*planted(), *written()]]


@cache
def refused_by_reader(which: str) -> list[tuple[Case, bool]]:
    """Return cases with whether the reader calls both texts different; a vote that cannot be read refuses."""
    cases = planted() if which == "planted" else [case for case in written() if case.kind == which]
    texts = [rendered(READING, case.request) for case in cases]
    votes = [READING_VOTE.read(some[0]) for some in answers_to("translations-read", texts)]
    return [(case, vote != "same") for case, vote in zip(cases, votes, strict=True)]


@cache
def refused_by_invariants(which: str) -> list[tuple[Case, bool]]:
    """Return cases with whether the translation breaks an invariant."""
    cases = planted() if which == "planted" else [case for case in written() if case.kind == which]
    with MathJudge(workers=1) as judge:
        return [(case, bool(broken(*case.texts, case.pair.target, judge))) for case in cases]


def refused(which: str) -> list[tuple[Case, bool]]:
    """Return cases with whether the reader or an invariant refuses them."""
    both = zip(refused_by_reader(which), refused_by_invariants(which), strict=True)
    return [(case, read or is_broken) for (case, read), (_, is_broken) in both]


def _count(found: Sequence[tuple[Case, bool]], note: str = "") -> Measured:
    hits = sum(is_refused for _, is_refused in found)
    return Measured(hits, len(found), wilson(hits, len(found), scale=len(found)), note)


@gate("mistakes-refused", Limit(">=", 118))
def mistakes_refused() -> Measured:
    """Careless translations that the reader or an invariant refuses."""
    return _count(refused("careless"))


@gate("true-accepted", Limit(">=", 97, "%"))
def true_accepted() -> Measured:
    """True translations that neither the reader nor an invariant refuses, in the language with the fewest."""
    kept, count = Counter[str](), Counter[str]()
    for case, is_refused in refused("true"):
        kept[case.pair.target] += not is_refused
        count[case.pair.target] += 1
    worst = min(count, key=lambda lang: kept[lang] / count[lang])
    note = ", ".join(f"{lang} {kept[lang]} of {count[lang]}" for lang in sorted(count))
    interval = wilson(kept[worst], count[worst], scale=100)
    return Measured(100 * kept[worst] / count[worst], interval=interval, note=note)


@gate("planted-refused", Limit(">=", 93, "%"))
def planted_refused() -> Measured:
    """Planted mistakes that the reader or an invariant refuses."""
    found = refused("planted")
    hits = sum(is_refused for _, is_refused in found)
    return Measured(100 * hits / len(found), interval=wilson(hits, len(found), scale=100))


def main() -> None:
    """Print what refuses how many of each kind."""
    print("| kind | pairs | reader alone | exact invariants alone | both |")
    print("|---|---|---|---|---|")
    for which in ("planted", "careless", "true"):
        found = [refused_by_reader(which), refused_by_invariants(which), refused(which)]
        kinds = [*dict.fromkeys(case.kind for case, _ in found[0]), *(["all planted"] if which == "planted" else [])]
        for kind in kinds:
            rows = [[hit for case, hit in cases if kind in (case.kind, "all planted")] for cases in found]
            print(f"| {kind} | {len(rows[0])} | {' | '.join(str(sum(row)) for row in rows)} |")


if __name__ == "__main__":
    main()
