"""Translations: what a reader alone, and the exact invariants alone, find of mistakes, and what they take of true ones.

Three sets, all of problems in the shared data, named by row:

    planted    translations of MGSM and PolyMath, broken by rule (`planted.jsonl`, 5 of each kind and language)
    careless   problems of GSM8K that a model translated with one natural mistake each
    true       problems of GSM8K that a model translated as the product asks it to

Each pair is put before the reader once, without any word of what the invariants hold against it.

    python -m tests.gates.translations     per kind: what the reader and the exact invariants refuse
"""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

from curation.languages.names import NAMES
from curation.prompts import Prompt
from curation.records import Domain, PromptRequest, problem_id
from curation.translation.invariants import ProblemText, broken
from curation.translation.questions import READING, READING_VOTE, TRANSLATE, read_both, read_translation
from curation.verify.math_judge import MathJudge
from tests.gates.base import Limit, Measured, counted, gate, share, shared_rows
from tests.gates.stored import Asked, answers_to, prompts, rendered

LANGUAGES = ("de", "es", "fr", "ru", "zh")
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


class Pair(NamedTuple):
    """A problem and its translation."""

    original: str
    translated: str
    target: str
    answer: str | None


class Case(NamedTuple):
    """A pair, and how its translation was made."""

    kind: str
    pair: Pair

    @property
    def request(self) -> PromptRequest:
        """Return what the reader is asked."""
        return read_both(ProblemText(self.pair.original), ProblemText(self.pair.translated), self.pair.target)


@cache
def planted() -> list[Case]:
    """Return broken translations: `planted.jsonl` has which problem, and what replaces a part of it: texts, slices."""
    problems = {row["id"]: row for name in ("mgsm", "polymath") for row in shared_rows("math", f"{name}.jsonl")}
    cases = []
    for line in Path(__file__).with_name("planted.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        problem, (name, part, number) = problems[row["id"]], row["id"].split("/")
        english = problems[f"{name}/{part.replace(problem['lang'], 'en', 1)}/{number}"]
        text = problem["problem"]
        parts = [
            part if isinstance(part, str) else problems[part[0]]["problem"][slice(*part[1:])] for part in row["text"]
        ]
        changed = text[: row["start"]] + "".join(parts) + text[row["end"] :]
        cases.append(Case(row["kind"], Pair(english["problem"], changed, problem["lang"], english["answer"])))
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
            cases.append(Case(kind, Pair(request.statement, translated, target, None)))
    return cases


@prompts("translations-read")
def read_prompts() -> Asked:
    """Return what the reader is asked of all three sets."""
    return [(READING, case.request) for case in [*planted(), *written()]]


def cases_of(which: str) -> list[Case]:
    """Return the cases of a set."""
    return planted() if which == "planted" else [case for case in written() if case.kind == which]


@cache
def refused_by_reader(which: str) -> list[tuple[Case, bool]]:
    """Return cases with whether the reader calls both texts different; a vote that cannot be read refuses."""
    cases = cases_of(which)
    texts = [rendered(READING, case.request) for case in cases]
    votes = [READING_VOTE.read(some[0]) for some in answers_to("translations-read", texts)]
    return [(case, vote != "same") for case, vote in zip(cases, votes, strict=True)]


@cache
def refused_by_invariants(which: str) -> list[tuple[Case, bool]]:
    """Return cases with whether the translation breaks an invariant."""
    found = []
    with MathJudge(workers=1) as judge:
        for case in cases_of(which):
            texts = (ProblemText(text, case.pair.answer) for text in (case.pair.original, case.pair.translated))
            found.append((case, bool(broken(*texts, case.pair.target, judge))))
    return found


def refused(which: str) -> list[tuple[Case, bool]]:
    """Return cases with whether the reader or an invariant refuses them."""
    both = zip(refused_by_reader(which), refused_by_invariants(which), strict=True)
    return [(case, read or is_broken) for (case, read), (_, is_broken) in both]


@gate("mistakes-refused", Limit(">=", 118))
def mistakes_refused() -> Measured:
    """Careless translations that the reader or an invariant refuses."""
    found = refused("careless")
    return counted(sum(is_refused for _, is_refused in found), len(found))


@gate("true-accepted", Limit(">=", 97, "%"))
def true_accepted() -> Measured:
    """True translations that neither the reader nor an invariant refuses, in the language with the fewest."""
    kept, count = Counter[str](), Counter[str]()
    for case, is_refused in refused("true"):
        kept[case.pair.target] += not is_refused
        count[case.pair.target] += 1
    worst = min(count, key=lambda lang: kept[lang] / count[lang])
    note = ", ".join(f"{lang} {kept[lang]} of {count[lang]}" for lang in sorted(count))
    return share(kept[worst], count[worst], note)


@gate("planted-refused", Limit(">=", 93, "%"))
def planted_refused() -> Measured:
    """Planted mistakes that the reader or an invariant refuses."""
    found = refused("planted")
    return share(sum(is_refused for _, is_refused in found), len(found))


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
