"""Whose word is taken for it that an input is allowed."""

import pytest

from curation.programs.validation import GivenInput, Vouching, cut_inputs, spoiled_inputs, tidy_text, vouch
from curation.verify.programs.problem import Validator, ValidatorLang
from curation.verify.programs.tools import Runner

GRAMMAR = "INT(1, 9, n) NEWLINE REP(n, SPACE) INT(0, 99) END NEWLINE EOF"
GIVEN = ["3\n1 2 3\n", "1\n5\n", "2\n7 7\n", "4\n1 2 3 4\n", "5\n1 2 3 4 5\n"]
MODEL = """import sys
lines = sys.stdin.read().split("\\n")
assert lines[-1] == "" and len(lines) == 3
values = list(map(int, lines[1].split(" ")))
assert len(values) == int(lines[0]) <= 9 and all(0 <= value < 100 for value in values)
"""


def ctd(text: str) -> Validator:
    return Validator(ValidatorLang.CHECKTESTDATA, {"n.ctd": text}, ("n.ctd",))


def model(code: str) -> Validator:
    return Validator(ValidatorLang.PYTHON, {"v.py": code}, ("v.py",), accepts=0)


def asked(runner: Runner, package: list[Validator], by_model: list[Validator], texts: list[str]) -> Vouching:
    given = [GivenInput(index, text, index < 2) for index, text in enumerate(texts)]
    return vouch(runner, package, by_model, given)


def test_a_package_s_validator_vouches_and_drops_the_given_input_that_it_refuses(runner: Runner) -> None:
    found = asked(runner, [ctd(GRAMMAR)], [], [*GIVEN, "4\n1 2 3"])
    assert found.by == "package"
    assert set(found.refused) == {5}
    assert "expected" in found.refused[5]
    assert found.check(runner, ["2\n0 99\n", "2\n0 100\n", "2\n0\n"]) == [True, False, False]


def test_one_that_refuses_too_many_given_inputs_is_broken_itself(runner: Runner) -> None:
    found = asked(runner, [ctd("INT(1, 3, n) NEWLINE REP(n, SPACE) INT(0, 5) END NEWLINE")], [], GIVEN)
    assert found == Vouching(aside=found.aside)
    assert found.aside == ("the validator n.ctd of the package is set aside: it refuses 3 of 5 given inputs",)


def test_a_package_s_validator_may_refuse_one_of_two_inputs(runner: Runner) -> None:
    few = [GIVEN[0], "2\n1\n"]
    assert dict(asked(runner, [ctd(GRAMMAR)], [], few).refused).keys() == {1}
    assert asked(runner, [ctd(GRAMMAR)], [], few[1:]).by == ""
    assert asked(runner, [], [model(MODEL)], few).by == ""


def test_one_that_lets_everything_pass_is_none(runner: Runner) -> None:
    found = asked(runner, [model("pass")], [model("import sys\nsys.stdin.read()")], GIVEN)
    assert found.by == ""
    assert [words.split(": ")[1].split(" of ")[0].split()[-1].isdigit() for words in found.aside] == [True, True]


def test_white_space_that_a_data_set_lost_is_no_fault(runner: Runner) -> None:
    texts = [text.rstrip("\n") if number % 2 else text.replace("\n", "\r\n") for number, text in enumerate(GIVEN)]
    found = asked(runner, [ctd(GRAMMAR)], [], texts)
    assert (found.by, dict(found.refused)) == ("package", {})
    assert tidy_text("1 \r\n2") == "1\n2\n"


def test_a_model_s_validator_is_proved_on_examples_and_on_spoiled_inputs(runner: Runner) -> None:
    assert asked(runner, [], [model(MODEL)], GIVEN).by == "model"
    assert asked(runner, [ctd(GRAMMAR)], [model(MODEL)], GIVEN).by == "package"
    strict = asked(runner, [], [model(f"{MODEL}assert lines[0] != '3'\n")], [*GIVEN, *["2\n1 1\n"] * 4])
    assert strict.aside == ("the validator v.py of the model is set aside: it refuses an example of the statement",)
    lenient = asked(runner, [], [model("int(input())")], GIVEN)
    assert lenient.by == ""
    assert "spoiled inputs pass" in lenient.aside[0]
    crashing = asked(runner, [], [model("this is no Python")], GIVEN)
    assert crashing.by == ""


@pytest.mark.slow
def test_an_input_on_which_a_validator_fails_is_neither_refused_nor_proved(runner: Runner) -> None:
    code = f"{MODEL}if lines[0] == '4': print('x' * (1 << 28))\n"
    texts = [*GIVEN, *[f"2\n{i} {i}\n" for i in range(20)]]
    given = [GivenInput(index, text, example=False) for index, text in enumerate(texts)]
    found = vouch(runner, [model(code)], [], given)
    assert (found.by, found.undecided, dict(found.refused)) == ("package", {3}, {})


def test_spoiled_inputs_are_near_the_given_ones_and_never_one_of_them() -> None:
    spoiled = spoiled_inputs(GIVEN)
    assert not set(spoiled) & set(GIVEN)
    assert {"", "1\n", "1\nx\n", f"1\n{'9' * 40}\n", "1\n5\n17 x\n"} <= set(spoiled)


def test_what_ends_with_the_file_may_be_allowed_without_its_last_line(runner: Runner) -> None:
    pairs = ["10 12\n71293 72784\n5 123456\n", "8 9\n"]
    assert not {"10 12\n71293 72784\n", "10 12\n71293 7\n"} & set(spoiled_inputs(pairs))
    loop = "for line in sys.stdin:\n    a, b = line.split(' ')\n    assert 0 < int(a) < 10**9 > int(b)\n"
    assert asked(runner, [], [model(f"import sys\n{loop}assert a\n")], pairs).by == "model"
    assert "2\n1 2\n" in spoiled_inputs(["2\n1 2\n3 4\n"]), "a number counts its lines"


LONG = "90\n" + " ".join(map(str, range(100, 190)))


@pytest.mark.parametrize(
    ("others", "last", "is_cut"),
    [
        (["1\n7\n"], f"{LONG}...\n", True),
        (["1\n7\n"], f"{LONG}…", True),
        (["1\n7\n"], f"{LONG}\n", False),
        (["1\n7\n"], "2\n1 5...\n", False),  # too short to have been cut
        (["2 2\n#.\n..\n"], "9 30\n" + 9 * f"{'#' * 27}...\n", False),  # a drawing
    ],
)
def test_an_input_that_the_source_cut_off_has_its_mark(others: list[str], last: str, is_cut: bool) -> None:
    found = cut_inputs(dict(enumerate([*others, last])))
    assert list(found) == ([len(others)] if is_cut else [])
    assert all("the source cut it off" in words for words in found.values())
