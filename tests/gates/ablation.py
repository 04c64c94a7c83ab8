"""Which verdicts change if a module of `curation/verify/answers` is switched off: a measurement, no gate.

    python -m tests.gates.ablation                     every module in turn, as a table
    python -m tests.gates.ablation units words         only these
    python -m tests.gates.ablation --functions units   each function of the module alone

A module is off if its ways of proving equality and its readers answer "does not apply" wherever they are called:
`None`, `False`, nothing read, the text as it was, or the module's own error. Modules that only define what the others
compute with (`NOT_SWITCHED`) are not in the table. The pairs are all trusted ones of the shared data, the near misses
and rewritings of the gates, and the tables of pairs in the tests, of which a question's rows have a statement.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

from curation.records import Outcome
from curation.verify import answers
from curation.verify.answers import forms, question, samevalue, tokens, words
from tests.curation.verify.answers.corpus import table
from tests.curation.verify.answers.endless import EndlessError, ending_within
from tests.gates.answer_pairs import NEAR_MISS, Pair, drawn_pairs, is_right, ours, trusted_pairs
from tests.places import ROOT

ROOM = "curation.verify.answers"
MAX_CPU_S = 10.0
"""CPU seconds of one pair; none takes a tenth of it with everything on. What needs more counts as not accepted."""

Off = Callable[..., Any]


def _returns(value: Any) -> Off:
    return lambda *_, **__: value


def _argument(at: int) -> Off:
    """Return a function that returns its argument as it was."""
    return lambda *given, **_: given[at]


def _raises(error: Callable[[], Exception]) -> Off:
    def off(*_: Any, **__: Any) -> Any:
        raise error()

    return off


NOTHING, NO, UNREAD = _returns(None), _returns(False), _raises(partial(tokens.AnswerParseError, "switched off"))
SAME_TEXT = _argument(0)


def _only_identical(left: Any, right: Any, *_: Any) -> samevalue.Equivalence:
    return samevalue.Equivalence.PROVED if left == right else samevalue.Equivalence.UNPROVED


SWITCHES: dict[str, dict[str, Off]] = {
    "asked": {"compare_as_asked": lambda one, two, lang, rule, asked, compare: compare(one, two, lang, rule, asked)},
    "balls": {"rational_value": NOTHING, "real_ball": NOTHING, "Evaluation.value": _raises(lambda: _undecided())},
    "labels": {
        "left_name": NOTHING,
        "is_label": NO,
        "labels_clash": NO,
        "with_argument_of": _argument(1),
        "join_items": lambda items, _: forms.Sequence(tuple(items)) if len(items) > 1 else items[0],
        "with_modulus_each": _argument(0),
        "is_condition": NO,
    },
    "matching": {
        "Matcher._match_infinity": NO,
        "Matcher._match_vectors": NO,
        "Matcher._match_sequences": NO,
        "Matcher._match_matrices": NO,
        "Matcher._match_regions": NOTHING,
    },
    "matrices": {"read_matrix": UNREAD, "determinant": UNREAD, "components": NOTHING},
    "plain": {"quick_compare": NOTHING, "parse_plain_number": NOTHING},
    "policy": {"compare_rounded": _returns((False, False)), "rounds_to": NO},
    "quantities": {
        "parse_value": lambda given: forms.Value(_expression(given), source=frozenset(token.at for token in given)),
        "parse_compound": NOTHING,
        "parse_number_in_base": NOTHING,
        "number_variants": lambda text, _: [text],
    },
    "values": {
        "Values._conversions": _returns([]),
        "Values._match_in_unit": NOTHING,
        "Values._match_computed": NO,
        "Values._match_rounded": NO,
        "Values._match_approximation": NO,
        "Values._match_residues": NO,
        "Values._match_base": NO,
        "Values._rounded_coefficients": NO,
        "Families.same_with_parameters": NO,
        "is_piecewise": NO,
    },
    "grammar": {
        "parse_expression": UNREAD,
        **{
            f"ExpressionParser.{rule}": UNREAD
            for rule in ("function", "command", "big_operator", "in_base", "word", "styled")
        },
        **{f"ExpressionParser.{rule}": NOTHING for rule in ("mixed_number", "call_of", "combination")},
    },
    "samevalue": {
        "compare_expressions": _only_identical,
        "agree_within_rounding": NO,
        "values_at_trial_point": NOTHING,
        "constant_value": NOTHING,
        "trial_points": lambda *_: iter(()),
    },
    "question": {
        "read_question": _returns(question.NOTHING_ASKED),
        "QuestionWords.matches": lambda *_: iter(()),
        "QuestionWords.has": NO,
    },
    "reading": {"parse_readings": lambda raw, _: (forms.Reading(words.words(raw)),)},
    "references": {"reference_defect": NOTHING},
    "regions": {"is_region": NO, "parse_region": _raises(lambda: _not_a_region()), "unknowns": _returns(frozenset())},
    "relations": {"Relations.match_relations": NO, "Relations.proportional": NO},
    "spans": {
        "left_out": lambda _, form: forms.Reading(form),
        "trim_tokens": _argument(0),
        "cut_tail": _argument(0),
        "declares_names": NO,
        "cut_if": lambda token: [token],
    },
    "symbolic": {"evaluate_symbolically": NOTHING},
    "text": {"normalise_latex": SAME_TEXT, "strip_wrappers": SAME_TEXT},
    "tiers": {"_compare_as_words": NOTHING, "compare_with_sentence": _argument(2), "named_option": NOTHING},
    "units": {
        "normalise_unit": SAME_TEXT,
        "is_unit": NO,
        "is_known": lambda unit: unit in ("", "%", "deg"),
        "is_counted_thing": NO,
        "conversion_factor": NOTHING,
        "is_power_of": NO,
    },
    "words": {
        "parse_number_words": NOTHING,
        "parse_choice": NOTHING,
        "parse_boolean": NOTHING,
        "split_boolean": NOTHING,
        "is_remark": NO,
        "parse_time": NOTHING,
        "parse_date": NOTHING,
        "parse_word_list": NOTHING,
        "parse_choice_letters": NOTHING,
    },
}
"""By module: its functions, and what takes their place. A private one is named if it is the module's only way there."""

NOT_SWITCHED = ("expr", "forms", "tokens")


def _expression(given: Any) -> Any:
    return importlib.import_module(f"{ROOM}.grammar").parse_expression(given)


def _undecided() -> Exception:
    return importlib.import_module(f"{ROOM}.balls").Undecided()  # type: ignore[no-any-return]


def _not_a_region() -> Exception:
    return importlib.import_module(f"{ROOM}.regions").NotARegion()  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Asked:
    """A pair, how it is compared, and whether it is the same answer."""

    reference: str
    answer: str
    equal: bool
    lang: str = "en"
    statement: str | None = None
    whole: bool = True
    """Both are read as responses may be, not as bare answers."""


def pairs() -> dict[str, list[Asked]]:
    """Return all pairs by where they come from."""
    near, rewritten = drawn_pairs()
    tables = [
        Asked(
            row["gold"],
            row["pred"],
            row["verdict"] == "correct",
            row.get("lang", "en"),
            row.get("statement"),
            whole=row.get("read") == "texts",
        )
        for row in table("pairs")
    ]
    drawn = {"trusted": trusted_pairs(), "near misses": near, "rewritings": rewritten}
    return {
        **{name: [Asked(one.reference, one.answer, _is_equal(one)) for one in some] for name, some in drawn.items()},
        "tests": tables,
    }


def _is_equal(pair: Pair) -> bool:
    """Return a pair's label; a near miss that is accepted today may be an identity."""
    return pair.equal or (pair.kind == NEAR_MISS and ours(pair.reference, pair.answer) and is_right(pair, True))


def verdict(asked: Asked) -> bool | None:
    """Return whether a pair is accepted; None if judging it raised an error or came to no end."""
    compare = answers.compare_texts if asked.whole else answers.compare
    try:
        with ending_within(MAX_CPU_S, asked.answer):
            found = compare(asked.reference, asked.answer, lang=asked.lang, statement=asked.statement)
    except (Exception, EndlessError):  # noqa: BLE001 - a module that is off may break its callers
        return None
    return found.outcome is Outcome.CORRECT


def _modules() -> list[ModuleType]:
    return [module for name, module in list(sys.modules.items()) if name.startswith("curation.verify")]


def _forget() -> None:
    """Empty the caches of the verifier."""
    for module in _modules():
        for value in list(vars(module).values()):
            if hasattr(value, "cache_clear"):
                value.cache_clear()


@contextlib.contextmanager
def switched_off(module: str, functions: Sequence[str]) -> Iterator[None]:
    """Replace functions of a module wherever they are imported.

    Raises:
        AttributeError: the module has no such function any more.
    """
    home = importlib.import_module(f"{ROOM}.{module}")
    places: list[tuple[Any, str, Any, Off]] = []
    for function in functions:
        owner, _, name = function.rpartition(".")
        off = SWITCHES[module][function]
        if owner:
            places.append((getattr(home, owner), name, vars(getattr(home, owner))[name], off))
            continue
        original = getattr(home, name)
        for other in _modules():
            places += [(other, key, original, off) for key, value in vars(other).items() if value is original]
    try:
        for place, key, _, off in places:
            setattr(place, key, off)
        _forget()
        yield
    finally:
        for place, key, original, _ in places:
            setattr(place, key, original)
        _forget()


@dataclass(slots=True)
class Change:
    """What is lost and gained with something off, by where the pairs come from, with errors and CPU seconds."""

    name: str
    lines: int
    lost: dict[str, int]
    gained: dict[str, int]
    errors: int
    cpu_s: float

    def row(self) -> str:
        """Return it as a row of the table."""
        cells = [f"−{self.lost[name]} +{self.gained[name]}".replace("−0 +0", "0") for name in self.lost]
        shown = [
            f"`{self.name}`",
            f"{self.lines:,}" if self.lines else "",
            *cells,
            str(self.errors),
            f"{self.cpu_s:.1f}",
        ]
        return f"| {' | '.join(shown)} |"


def judged(asked: dict[str, list[Asked]]) -> tuple[dict[str, list[bool | None]], float]:
    """Return the verdicts on all pairs, and the CPU seconds that they took."""
    started = time.process_time()
    found = {name: [verdict(one) for one in some] for name, some in asked.items()}
    return found, time.process_time() - started


def change(
    module: str, functions: Sequence[str], asked: dict[str, list[Asked]], usual: dict[str, list[bool | None]]
) -> Change:
    """Return what changes with functions of a module off."""
    with switched_off(module, functions):
        found, cpu_s = judged(asked)
    lost, gained, errors = {}, {}, 0
    for name, some in asked.items():
        rows = [
            (before == one.equal, after == one.equal)
            for one, before, after in zip(some, usual[name], found[name], strict=True)
        ]
        lost[name] = sum(before and not after for before, after in rows)
        gained[name] = sum(after and not before for before, after in rows)
        errors += sum(one is None for one in found[name])
    whole = set(functions) == set(SWITCHES[module])
    lines = (ROOT / f"{ROOM.replace('.', '/')}/{module}.py").read_text(encoding="utf-8").count("\n") if whole else 0
    return Change(module if whole else f"{module}.{functions[0]}", lines, lost, gained, errors, cpu_s)


def main() -> None:
    """Read the command line and print a row at a time."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.gates.ablation", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=", ".join(SWITCHES))
    parser.add_argument("--functions", action="store_true", help="each function of a module alone")
    parsed = parser.parse_args()
    if unknown := set(parsed.modules) - set(SWITCHES):
        sys.exit(f"{', '.join(sorted(unknown))}: no such module; they are {', '.join(SWITCHES)}")
    answers.load()
    asked = pairs()
    usual, cpu_s = judged(asked)
    columns = ["off", "lines", *(f"{name} ({len(some):,})" for name, some in asked.items()), "errors", "CPU s"]
    print(f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}")
    right = [
        str(sum(verdict == one.equal for one, verdict in zip(some, usual[name], strict=True)))
        for name, some in asked.items()
    ]
    print(f"| nothing: right | | {' | '.join(right)} | | {cpu_s:.1f} |", flush=True)
    for module in parsed.modules or SWITCHES:
        names = list(SWITCHES[module])
        for functions in [[name] for name in names] if parsed.functions else [names]:
            print(change(module, functions, asked, usual).row(), flush=True)


if __name__ == "__main__":
    main()
