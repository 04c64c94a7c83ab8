"""Translations: what a reader alone, and the exact invariants alone, find of mistakes, and what they take of true ones.

Three sets, all of problems in the shared data, named by row:

    planted    translations of MGSM and PolyMath, broken by rule (`DRAWN` of each kind and language)
    careless   problems of GSM8K that a model translated with one natural mistake each
    true       problems of GSM8K that a model translated as the product asks it to

Each pair is put before the reader once, without any word of what the rules hold against it.

    python -m tests.gates.translations     per kind: what the reader, the exact invariants and today's rules refuse
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from curation.prompts import Prompt
from curation.prompts.reading import READING, reading_request
from curation.prompts.translating import NAMES, TRANSLATE, read_reply
from curation.records import Domain, PromptRequest, problem_id
from curation.translation import CheckedText, check_translation
from curation.translation.numerals import in_digits, plain_digits
from curation.translation.reader import VOTE, WEIGHED
from curation.verify.math_judge import MathJudge
from tests.benchmarks.bench_translation import CORRUPTIONS, KINDS, broken
from tests.benchmarks.translation_sets import Pair, parallel_problems
from tests.gates.base import Limit, Measured, gate, shared, shared_rows, wilson
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
    def request(self) -> PromptRequest:
        """Return what the reader is asked."""
        return reading_request(self.pair.original, self.pair.translated, self.pair.target)


@cache
def planted() -> list[Case]:
    """Return broken translations: `DRAWN` of each kind and language, in an order by hash."""
    shared("math", "mgsm.jsonl"), shared("math", "polymath.jsonl")
    pairs = [pair for name in ("mgsm", "polymath") for pair in parallel_problems(name, shared(), None)]
    cases = []
    for kind in [*KINDS, *CORRUPTIONS]:
        chance, made = random.Random(f"{kind} gates"), Counter[str]()
        for pair in sorted(pairs, key=lambda pair: problem_id(f"{kind} {pair.id}")):
            bad = broken(kind, pair, chance) if made[pair.target] < DRAWN else None
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
            translated = read_reply(texts[0])[0] or ""
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
    votes = [VOTE.read(some[0]) for some in answers_to("translations-read", texts)]
    return [(case, vote != "same") for case, vote in zip(cases, votes, strict=True)]


@cache
def broken_rules(which: str) -> list[tuple[Case, frozenset[str]]]:
    """Return cases with the invariants that they break; `numbers in words` where the digits agree."""
    cases = planted() if which == "planted" else [case for case in written() if case.kind == which]
    found = []
    with MathJudge(workers=1) as judge:
        for case in cases:
            pair = case.pair
            both = CheckedText(pair.original, pair.answer), CheckedText(pair.translated, pair.answer)
            names = {one.invariant for one in check_translation(*both, pair.target, judge)}
            if "numbers" in names and digits(pair.original, "en") == digits(pair.translated, pair.target):
                names = names - {"numbers"} | {"numbers in words"}
            found.append((case, frozenset(names)))
    return found


def digits(text: str, lang: str) -> Counter[object]:
    """Return the values of a text's numbers in digits."""
    return Counter(token.values for token in in_digits(plain_digits(text), lang))


def is_exact(names: frozenset[str]) -> bool:
    """Return whether one of the invariants weighs no words."""
    return bool(names - WEIGHED - {"numbers in words"})


def _count(found: Sequence[tuple[Case, bool]], note: str = "") -> Measured:
    hits = sum(refused for _, refused in found)
    return Measured(hits, len(found), wilson(hits, len(found), scale=len(found)), note)


@gate("mistakes-refused", Limit(">=", 118))
def mistakes_refused() -> Measured:
    """Careless translations that the reader calls different."""
    return _count(refused_by_reader("careless"))


@gate("true-accepted", Limit(">=", 97, "%"))
def true_accepted() -> Measured:
    """True translations that the reader calls the same, in the language with the fewest."""
    kept, count = Counter[str](), Counter[str]()
    for case, refused in refused_by_reader("true"):
        kept[case.pair.target] += not refused
        count[case.pair.target] += 1
    worst = min(count, key=lambda lang: kept[lang] / count[lang])
    note = ", ".join(f"{lang} {kept[lang]} of {count[lang]}" for lang in sorted(count))
    interval = wilson(kept[worst], count[worst], scale=100)
    return Measured(100 * kept[worst] / count[worst], interval=interval, note=note)


@gate("planted-refused", Limit(">=", 94, "%"))
def planted_refused() -> Measured:
    """Planted mistakes that the reader or an exact invariant refuses."""
    read, rules = refused_by_reader("planted"), broken_rules("planted")
    hits = sum(refused or is_exact(names) for (_, refused), (_, names) in zip(read, rules, strict=True))
    return Measured(100 * hits / len(read), interval=wilson(hits, len(read), scale=100))


def main() -> None:
    """Print what refuses how many of each kind."""
    print("| kind | pairs | reader alone | exact invariants alone | both | today's rules |")
    print("|---|---|---|---|---|---|")
    for which in ("planted", "careless", "true"):
        read, rules = refused_by_reader(which), broken_rules(which)
        for kind in [*dict.fromkeys(case.kind for case, _ in read), *(["all planted"] if which == "planted" else [])]:
            rows = [
                (refused, is_exact(names), bool(names))
                for (case, refused), (_, names) in zip(read, rules, strict=True)
                if kind in (case.kind, "all planted")
            ]
            reader, exact, today = (sum(column) for column in zip(*rows, strict=True))
            both = sum(refused or is_broken for refused, is_broken, _ in rows)
            print(f"| {kind} | {len(rows)} | {reader} | {exact} | {both} | {today} |")


if __name__ == "__main__":
    main()
