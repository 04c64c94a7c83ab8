"""What a reader finds of translations that ask something else, and what it takes of true ones.

    python -m tests.benchmarks.bench_translation_reader [DATA] --corpora FOLDER --sets written_mist_zh,…
        [--accepted 40] [--planted 2] [--kinds "negation lost;…"] [--langs de,zh] [--seed 0]
        (--write-prompts FILE [--ask alone|told] | --answers FILE… [--reads 1] [--told 2] [--show])

Cases are pairs of `translation_sets`: true ones, mistakes (of a set whose writer was asked to err at times), and
planted ones, ``--planted`` a kind and language of each set. Of true ones that the rules accept ``--accepted`` a set and
language are taken, all by default, and of refused ones all.

``--write-prompts`` writes what the product would ask of them, in the order of a hash, under the system prompt, which
stands once; nothing tells what a case is. What the rules accept is asked "alone", mistakes always. Where rules that
weigh words refuse, it is asked "told" their suspicion; so are units and numbers, which no reader overrules, to see what
one would do there. ``x.answers.txt`` answers ``x.txt``: behind each ``### n`` a vote on the n-th; ``x.answers2.txt``
holds second votes. Votes go through the product's own policy of recorded attempts and its `Reader`.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from curation.config import RecordedPolicy, TranslationSettings  # noqa: E402
from curation.policies.failure_budget import FailureBudget  # noqa: E402
from curation.prompts.reading import READING, reading_request  # noqa: E402
from curation.records import Policy, PromptRequest  # noqa: E402
from curation.translation import CheckedText, Violation, check_translation, reasons  # noqa: E402
from curation.translation.reader import Reader, Reading, overrulable  # noqa: E402
from curation.verify.math_judge import MathJudge  # noqa: E402
from flows.run.policies import open_policy  # noqa: E402
from tests.benchmarks.bench_translation import KINDS, broken  # noqa: E402
from tests.benchmarks.translation_sets import Pair, parallel_problems  # noqa: E402

TRUE, MISTAKE = "true", "mistake"
ALSO_ASKED = frozenset({"units", "numbers", "entities", "polarity", "comparisons", "order", "sentences"})
HEAD = """\
Below are the instructions of a program that compares translations, then {count} pairs that it would put before you \
one at a time, each behind a line '### NUMBER'. They have nothing to do with one another: judge each by itself, from \
what stands there alone, look nothing up, read no other file and run nothing. Answer every one in order: the line '### \
NUMBER', then your reply in the form that the instructions ask for. Write the answers into {answers}, appending after \
every ten or so; when all are there, make the empty file {answers}.done.

The instructions:

"""


@dataclass(frozen=True, slots=True)
class Case:
    """A pair, what it is, and what the rules say of it."""

    kind: str
    pair: Pair
    violations: tuple[Violation, ...]

    @property
    def texts(self) -> tuple[CheckedText, CheckedText]:
        return CheckedText(self.pair.original), CheckedText(self.pair.translated)

    @property
    def weighed(self) -> tuple[Violation, ...]:
        """Return what a reader may overrule."""
        return overrulable(self.violations, *self.texts, "en", self.pair.target)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the invariants that it broke."""
        return tuple(dict.fromkeys(one.invariant for one in self.violations))

    @property
    def also_asked(self) -> bool:
        """Return whether what the rules say is put before the reader."""
        return bool(self.violations) and {one.invariant for one in self.violations} <= ALSO_ASKED

    def requests(self) -> Iterator[PromptRequest]:
        """Yield what is asked: without the rules' word where they accept it (of mistakes always), with it where not."""
        both = self.pair.original, self.pair.translated, self.pair.target
        if not self.violations or self.kind == MISTAKE:
            yield reading_request(*both)
        if self.also_asked:
            yield reading_request(*both, reasons(self.weighed or self.violations))


def _order(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8, salt=b"reader").hexdigest()


def cases_of(pairs: Sequence[Pair], is_wrong: bool, accepted: int, judge: MathJudge) -> Iterator[Case]:
    """Yield a set's cases: all that are mistakes or refused, of the others ``accepted`` a language."""
    taken: Counter[str] = Counter()
    for pair in sorted(pairs, key=lambda pair: _order(pair.id)):
        texts = CheckedText(pair.original, pair.answer), CheckedText(pair.translated, pair.answer)
        case = Case(MISTAKE if is_wrong else TRUE, pair, tuple(check_translation(*texts, pair.target, judge)))
        if case.kind == TRUE and not case.violations:
            taken[pair.target] += 1
            if taken[pair.target] > accepted:
                continue
        yield case


def planted_cases(
    pairs: Sequence[Pair], kinds: Sequence[str], count: int, seed: int, judge: MathJudge
) -> Iterator[Case]:
    """Yield ``count`` broken pairs of each kind and language."""
    for kind in kinds:
        made: Counter[str] = Counter()
        chance = random.Random(f"{kind} reader {seed}")
        for pair in sorted(pairs, key=lambda pair: _order(f"{kind} {pair.id}")):
            bad = broken(kind, pair, chance) if made[pair.target] < count else None
            if bad is None or bad == pair.translated:
                continue
            made[pair.target] += 1
            texts = CheckedText(pair.original, pair.answer), CheckedText(bad, pair.answer)
            violations = tuple(check_translation(*texts, pair.target, judge))
            yield Case(kind, pair._replace(translated=bad), violations)


def write_prompts(cases: Sequence[Case], path: Path, which: str | None) -> None:
    """Write the distinct prompts of the cases, numbered from 1, in an order that tells nothing."""
    requests = {
        request.id: request
        for case in cases
        for request in case.requests()
        if which in (None, "told" if "\n<suspicion " in request.statement else "alone")
    }
    ordered = sorted(requests.values(), key=lambda request: _order(request.id))
    pieces = [f"### {number}\n{request.statement}\n" for number, request in enumerate(ordered, 1)]
    answers = path.with_name(f"{path.stem}.answers.txt")
    text = HEAD.format(count=len(ordered), answers=answers) + READING.system + "\n\nThe pairs:\n\n" + "\n".join(pieces)
    path.write_text(text, encoding="utf-8")
    print(f"{len(ordered)} prompts: {path}")


_NUMBERED = re.compile(r"^### (\d+)[ \t]*$", re.MULTILINE)


def numbered(path: Path) -> dict[int, str]:
    """Return what stands behind each ``### n`` of a file."""
    pieces = _NUMBERED.split(path.read_text(encoding="utf-8"))[1:]
    return {int(number): text.strip() for number, text in zip(pieces[::2], pieces[1::2], strict=True)}


def attempts_of(files: Sequence[Path], scratch: Path) -> RecordedPolicy:
    """Return the settings of a policy with the votes of the files; ``x.txt`` is asked, ``x.answers.txt`` answers it.

    A further vote is ``x.answers2.txt``.
    """
    lines = []
    for file in files:
        name, answers = re.subn(r"\.answers\d*\.txt$", ".txt", file.name)
        if not answers:
            sys.exit(f"{file} is no file of answers; name x.answers.txt, which answers x.txt")
        asked = numbered(file.with_name(name))
        lines += [json.dumps({"problem": asked[number], "text": text}) for number, text in numbered(file).items()]
    path = scratch / "votes.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    columns = {"problem": "problem", "text": "text"}
    given = {"kind": "recorded", "name": "reader@recorded", "path": str(path.absolute()), "columns": columns}
    return RecordedPolicy.model_validate(given)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the votes say of a case: as if the rules had accepted it, and with their suspicion."""

    case: Case
    alone: Reading | None
    suspected: Reading | None

    @property
    def refused_by_rules(self) -> bool:
        return bool(self.case.violations)

    @property
    def vetoed(self) -> bool:
        return self.alone is not None and self.alone.refused

    @property
    def overruled(self) -> bool:
        return bool(self.case.weighed) and self.all_same

    @property
    def stands(self) -> bool:
        """Return whether the product accepts it, with veto and overruling."""
        return self.overruled if self.refused_by_rules else not self.vetoed

    @property
    def all_same(self) -> bool:
        """Return whether all votes that were told a suspicion call both texts the same."""
        return self.suspected is not None and bool(self.suspected.overruled)


async def outcomes(cases: Sequence[Case], policy: Policy, reads: int, told: int, threshold: float) -> list[Outcome]:
    """Return what the votes say of every case."""
    found = []
    async with policy:
        budget = FailureBudget(1.0, len(cases), "")
        reader = Reader(policy, reads, threshold, overrule=True, budget=budget)
        overruling = Reader(policy, told, threshold, overrule=True, budget=budget)
        for case in cases:
            alone = None
            if not case.violations or case.kind == MISTAKE:
                alone, _ = await reader.review(*case.texts, ("en", case.pair.target), ())
            suspected = None
            if case.also_asked:
                request = list(case.requests())[-1]
                suspected = await overruling.read(request, tuple(one.invariant for one in case.violations))
            found.append(Outcome(case, alone, suspected))
    return found


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The outcomes of one kind."""

    found: Sequence[Outcome]
    kind: str

    def parted(self) -> tuple[list[Outcome], list[Outcome]]:
        """Return those that the rules accept, and those that they refuse."""
        mine = [one for one in self.found if one.case.kind == self.kind]
        return [one for one in mine if not one.refused_by_rules], [one for one in mine if one.refused_by_rules]


def interval(hits: int, count: int) -> str:
    """Return a share with its 95 % interval by Wilson."""
    if not count:
        return "none"
    share, z = hits / count, 1.96
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z * ((share * (1 - share) + z * z / (4 * count)) / count) ** 0.5 / (1 + z * z / count)
    return f"{hits} of {count} ({share:.1%}; {max(0, middle - half):.1%} to {min(1, middle + half):.1%})"


def report(found: Sequence[Outcome]) -> None:
    """Print mistakes refused and true ones accepted, by language, and planted ones by kind."""
    for lang in [None, *sorted({one.case.pair.target for one in found})]:
        here = [one for one in found if lang in (None, one.case.pair.target)]
        print(f"{lang or 'all languages'}:")
        true_ones(Outcomes(here, TRUE))
        mistakes(Outcomes(here, MISTAKE))
    for kind in dict.fromkeys(one.case.kind for one in found if one.case.kind not in (TRUE, MISTAKE)):
        planted(kind, [one for one in found if one.case.kind == kind])
    votes = Counter(
        "undecided" if not reading.decided else "decided"
        for one in found
        for reading in (one.alone, one.suspected)
        if reading is not None
    )
    print(f"translations read: {dict(votes)}")


def show(found: Sequence[Outcome]) -> None:
    """Print the cases that a reader's word leaves wrong, with the votes' differences."""
    for one in found:
        case, asks_same = one.case, one.case.kind == TRUE
        for name, reading in (("alone", one.alone), ("suspected", one.suspected)):
            if reading is None or (reading.decided and (reading.different == 0) == asks_same):
                continue
            print(f"\n{case.kind} {case.pair.id} {name}: {reading}\n  rules: {reasons(case.violations)}")
            print(f"  {case.pair.original}\n  {case.pair.translated}")


def true_ones(found: Outcomes) -> None:
    """Print what of true ones is accepted; accepted ones may be a sample, whose share of vetoes counts for all."""
    accepted, refused = found.parted()
    read = [one for one in accepted if one.alone is not None and one.alone.decided]
    if not accepted and not refused:
        return
    print(f"  true, accepted by the rules, vetoed: {interval(sum(one.vetoed for one in read), len(read))}")
    soft = [one for one in refused if one.case.weighed]
    print(f"  true, refused: {len(refused)}, overrulable {len(soft)}, overruled {sum(one.overruled for one in soft)}")
    for name, count in Counter(name for one in refused for name in one.case.names).items():
        of = [one for one in refused if name in one.case.names and one.suspected is not None]
        print(f"    {name} {count}: asked {len(of)}, all votes the same {sum(one.all_same for one in of)}")


def mistakes(found: Outcomes) -> None:
    """Print what of mistakes is refused, by whom."""
    accepted, refused = found.parted()
    both = [*accepted, *refused]
    if not both:
        return
    print(f"  mistakes refused by the rules: {interval(len(refused), len(both))}")
    print(f"  mistakes refused by the reader: {interval(sum(one.vetoed for one in both), len(both))}")
    print(f"  by rules or veto: {interval(len(refused) + sum(one.vetoed for one in accepted), len(both))}")
    print(f"  by rules, veto, overruling: {interval(sum(not one.stands for one in both), len(both))}")


def planted(kind: str, found: Sequence[Outcome]) -> None:
    """Print what of planted ones is refused, and what a reader would overrule."""
    missed = [one for one in found if not one.refused_by_rules]
    asked = [one for one in found if one.suspected is not None and one.suspected.decided]
    soft = [one for one in asked if one.case.weighed]
    vetoed = sum(one.vetoed for one in missed)
    print(
        f"{kind}: {len(found)}, missed by the rules {len(missed)}, vetoed of these {vetoed}; "
        f"refused and asked {len(asked)}, all votes the same {sum(one.all_same for one in asked)}, "
        f"of which overrulable {sum(one.overruled for one in soft)} of {len(soft)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", default=os.environ.get("GOLDILOCKS_DATA", ROOT.parent / "shared" / "data"))
    parser.add_argument("--corpora", type=Path)
    parser.add_argument("--sets", required=True)
    parser.add_argument("--langs")
    parser.add_argument("--accepted", type=int, default=1_000_000)
    parser.add_argument("--planted", type=int, default=0, metavar="N")
    parser.add_argument("--no-true", action="store_true", help="planted ones alone")
    parser.add_argument("--kinds", help="of planted ones, parted by semicolons; all by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threshold", type=float, default=TranslationSettings().reader_threshold)
    parser.add_argument("--write-prompts", type=Path, metavar="FILE")
    parser.add_argument("--ask", choices=("alone", "told"), help="prompts without a suspicion alone, or with one")
    parser.add_argument("--answers", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--reads", type=int, default=1, help="votes on what the rules accept")
    parser.add_argument("--told", type=int, default=2, help="votes on what they refuse")
    parser.add_argument("--show", action="store_true", help="what a reader got wrong: development data alone")
    parsed = parser.parse_args()
    cases: list[Case] = []
    with MathJudge(workers=1) as judge:
        for name in parsed.sets.split(","):
            pairs = parallel_problems(name, Path(parsed.data), parsed.corpora)
            pairs = [pair for pair in pairs if not parsed.langs or pair.target in parsed.langs.split(",")]
            if not parsed.no_true:
                cases += cases_of(pairs, name.endswith("mistakes"), parsed.accepted, judge)
            if parsed.planted:
                kinds = parsed.kinds.split(";") if parsed.kinds else list(KINDS)
                cases += planted_cases(pairs, kinds, parsed.planted, parsed.seed, judge)
    if parsed.write_prompts:
        write_prompts(cases, parsed.write_prompts, parsed.ask)
    if parsed.answers:
        with TemporaryDirectory() as scratch:
            settings = attempts_of(parsed.answers, Path(scratch))
            policy = open_policy(settings, Path(scratch), READING)
            found = asyncio.run(outcomes(cases, policy, parsed.reads, parsed.told, parsed.threshold))
        report(found)
        if parsed.show:
            show(found)


if __name__ == "__main__":
    main()
