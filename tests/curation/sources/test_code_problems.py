"""Code sources: the schemas of the public data sets, unpacked; nothing in a pickle can run."""

import base64
import json
import os
import pickle
import resource
import zlib
from pathlib import Path

import pytest

from curation.config import to_plain
from curation.config.sources import CodeColumns
from curation.sources.code_problems import code_tables, unpack_text, whole_statement
from curation.sources.rows import BadRowError
from curation.verify.programs.judge import judge_programs
from curation.verify.programs.problem import CodeLang, CodeVerdict, Submission
from curation.verify.programs.tables import build_problem
from curation.verify.programs.tools import Runner

APPS = {
    "tests": [{"path": "input_output", "inputs": "inputs", "outputs": "outputs"}],
    "solutions": [{"path": "solutions"}],
    "function": "input_output.fn_name",
    "starter": "starter_code",
}
TACO = {**APPS, "time_limit": "time_limit", "memory_limit": "memory_limit", "pictures": "picture_num"}
CONTESTS = {
    "parts": {"Input": "input_format", "Note": "note"},
    "examples": {"path": "public"},
    "tests": [{"path": "public", "origin": "public"}, {"path": "generated"}],
    "solutions": [
        {"path": "programs", "code": "src", "language": "lang", "languages": {"2": "cpp", "3": "python"}},
        {"path": "wrong", "right": False},
        {"path": "sent", "code": "src", "language": "lang", "languages": {"Py": "python"}, "verdict": "said"},
    ],
    **{"time_limit": "time_limit", "memory_limit": "bytes", "memory_unit": "bytes"},
    **{"checker": "checker", "interactive": "interaction", "input_file": ["input_file"]},
}


def tables(columns, row):
    """The tables of a row named a."""
    return code_tables("a", [row], CodeColumns(**to_plain(columns)))


def test_contests_with_statements_limits_and_programs_in_parts():
    row = {
        "input_format": "Two integers.",
        "note": None,
        "public": {"input": ["1 2\n"], "output": ["3\n"]},
        "generated": [{"input": "2 2", "output": "4"}],
        "programs": {"lang": [3, 2, 1], "src": ["print(3)", "int main(){}", "print 3"]},
        "wrong": ["print(4)"],
        "sent": [{"src": "a", "lang": "Py", "said": "OK"}, {"src": "b", "lang": "Py", "said": "WRONG_ANSWER"}],
        **{"time_limit": {"seconds": 2, "nanos": 500_000_000}, "bytes": 268_435_456},
        **{"checker": "print(1)", "interaction": None, "input_file": "a.in"},
    }
    found = tables(CONTESTS, row)
    assert found.tests.rows() == [("a", 0, "1 2\n", "3\n", "public"), ("a", 1, "2 2", "4", "given")]
    given, sent = [("python", True), ("cpp", True), ("python", False)], [("python", True), ("python", False)]
    assert found.solutions.select("lang", "right").rows() == [*given, *sent]
    assert found.solutions["label"].to_list()[3:] == ["OK", "WRONG_ANSWER"]
    assert found.other_languages == {"1": 1}
    (judging,) = found.judging.rows(named=True)
    assert (judging["time_limit_s"], judging["memory_mb"], judging["checker_kind"]) == (2.5, 256, "script")
    assert (judging["interactive"], judging["files"], judging["processes"]) == (False, True, False)
    assert code_tables("a", [row], CodeColumns(**to_plain(CONTESTS)), processes=True).judging["processes"].item()
    text = whole_statement("Add two numbers.", row, CodeColumns(**to_plain(CONTESTS)))
    example = "## Example 1\n\nInput:\n```\n1 2\n```\nOutput:\n```\n3\n```"
    assert text == f"Add two numbers.\n\n## Input\n\nTwo integers.\n\n{example}"


def test_apps_and_taco_pack_json_into_text():
    row = {
        "question": "Sum of a list.",
        "solutions": json.dumps(["def f(x): return sum(x)"]),
        "input_output": json.dumps({"fn_name": "f", "inputs": [[[1, 2]], [[]]], "outputs": [3, [0]]}),
        "starter_code": "def f(x):",
        **{"time_limit": "2.0 seconds", "memory_limit": "256.0 megabytes", "picture_num": "1"},
    }
    found = tables(TACO, row)
    assert found.tests.select("input", "output").rows() == [("[1, 2]", "3"), ("[]", "[0]")]
    judging = found.judging.select("time_limit_s", "memory_mb", "function", "starter", "figures").rows()
    assert judging == [(2.0, 256, "f", "def f(x):", True)]
    empty = tables(APPS, {**row, "solutions": "", "input_output": ""})
    assert empty.tests.is_empty()
    assert empty.solutions.is_empty()


@pytest.mark.parametrize(
    ("columns", "row", "words"),
    [
        (APPS, {"input_output": "not json", "solutions": ""}, "text, but neither JSON nor packed JSON"),
        (APPS, {"input_output": {"inputs": ["1"], "outputs": []}}, "as many `inputs` as `outputs`"),
        (APPS, {"input_output": "", "solutions": 7}, "`solutions` does not hold programs"),
        (TACO, {"input_output": "", "solutions": "", "time_limit": "soon"}, "is not a number with a unit"),
        (TACO, {"input_output": "", "solutions": "", "memory_limit": 4_294_967_296}, "set `memory_unit`"),
        (
            TACO,
            {"input_output": "", "solutions": "", "time_limit": {"seconds": 10**400}},
            "is not a number with a unit",
        ),
        (TACO, {"input_output": "", "solutions": "", "time_limit": {"seconds": [2]}}, "is not a number with a unit"),
    ],
)
def test_what_is_packed_otherwise_is_one_sentence(columns, row, words):
    with pytest.raises(BadRowError) as caught:
        tables(columns, row)
    assert words in str(caught.value)


MBPP = {"tests": [{"path": "test_list"}], "solutions": [{"path": "code"}], "starter": "test_setup_code"}
SOLUTIONS = [{"path": "canonical_solution"}]
HUMANEVAL = {"tests": [{"path": "test"}], "solutions": SOLUTIONS, "function": "entry_point", "starter": "prompt"}
PROMPT = 'import math\n\ndef area(r):\n    """Return the area."""\n'


def judged(found, code):
    """The verdict of the sandbox on a program, by the tables of the one problem that was read."""
    (judging,) = found.judging.rows(named=True)
    problem = build_problem("a", found.tests.select("input", "output").rows(), judging)
    with Runner(1) as runner:
        (result,) = judge_programs(runner, [(problem, Submission(CodeLang.PYTHON, code))])
    return result.verdict


def test_asserts_of_mbpp_become_calls_if_json_can_hold_them():
    row = {"code": "def f(x, k):\n    return x[:k]", "test_setup_code": "", "test_list": ["assert f([1, 2], 1) == [1]"]}
    found = tables(MBPP, row)
    assert found.tests.select("input", "output").rows() == [("[1, 2]\n1", "[1]")]
    assert found.judging["function"].to_list() == ["f"]
    assert found.solutions["code"].to_list() == [row["code"]]
    assert judged(found, row["code"]) is CodeVerdict.AC
    assert judged(found, "def f(x, k): return x") is CodeVerdict.WA


@pytest.mark.parametrize("test", ["assert f((1, 2)) == (1, 2)", "assert math.isclose(f(0.5), 0.5)"])
def test_other_asserts_of_mbpp_become_a_test_program(test):
    row = {"code": "def f(x): return x", "test_setup_code": "import math", "test_list": [test]}
    found = tables(MBPP, row)
    assert found.tests.height == 1, "a program is one test"
    packed = json.loads(found.judging["function"][0])
    assert (packed["entry"], packed["program"], packed["setup"]) == ("f", test, "import math")
    assert judged(found, row["code"]) is CodeVerdict.AC
    assert judged(found, "def f(x): return [x]") is CodeVerdict.WA


def test_check_of_humaneval_is_a_test_program_and_its_solution_a_whole_one():
    row = {
        "prompt": PROMPT,
        "entry_point": "area",
        "canonical_solution": "    return math.pi * r * r\n",
        "test": "\n\ndef check(candidate):\n    assert abs(candidate(1) - 3.14159) < 1e-3\n",
    }
    found = tables(HUMANEVAL, row)
    assert found.solutions["code"].to_list() == [PROMPT + row["canonical_solution"]]
    assert judged(found, found.solutions["code"][0]) is CodeVerdict.AC
    assert judged(found, "def area(r): return 3 * r") is CodeVerdict.WA


def test_packed_private_tests_of_livecodebench_are_read():
    content = json.dumps([{"input": "1 2", "output": "3"}])
    packed = base64.b64encode(zlib.compress(pickle.dumps(content))).decode()
    columns = {"tests": [{"path": "public"}, {"path": "private", "origin": "private"}]}
    found = tables(columns, {"public": content, "private": packed})
    assert found.tests.select("input", "origin").rows() == [("1 2", "given"), ("1 2", "private")]


def packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()


def test_pickled_text_is_unpacked() -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        for text in ("", "é\n\u2028😀" * 300, "x" * 70_000):
            assert unpack_text(packed(pickle.dumps(text, protocol))) == text


class Attack:
    """An object whose unpickling makes a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self._path),)


def test_code_in_a_pickle_does_not_run(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds STACK_GLOBAL, not text"):
        unpack_text(packed(pickle.dumps(Attack(tmp_path / "made"))))
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (packed(pickle.dumps([1, 2])), "holds EMPTY_LIST, not text"),
        (packed(b""), "."),
        (packed(b"\x80\x04\x8c\x01a\x8c\x01b."), "holds 2 texts"),
        (packed(b"\x80\x04."), "holds 0 texts"),
        (packed(b"\x80\x02}K\x01K\x02s(K\x03d."), "holds EMPTY_DICT"),
        (packed(b"\x80\x04\x8d" + b"\xff" * 8 + b"a."), "."),  # a text of 2 ** 64 bytes
        (packed(b"L" + b"9" * 5000 + b"L\n."), "."),
        (packed(pickle.dumps("x" * 5000))[:-8], "."),
        ("no base64!", "."),
        (base64.b64encode(b"not compressed").decode(), "."),
    ],
)
def test_what_is_not_packed_so_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        unpack_text(text)


def test_a_bomb_is_refused_and_a_large_memo_index_takes_no_memory() -> None:
    with pytest.raises(ValueError, match="more than 1,000 bytes"):
        unpack_text(packed(b"0" * 1_000_000), limit=1_000)
    # 28 bytes took 1 GB: an unpickler makes room for as many entries as the index says
    text = packed(b"\x80\x02X\x01\x00\x00\x00ar\xff\xff\xff\x03.")
    limit = resource.getrlimit(resource.RLIMIT_AS)
    room = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + (256 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (room, limit[1]))
    try:
        assert unpack_text(text) == "a"
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limit)
