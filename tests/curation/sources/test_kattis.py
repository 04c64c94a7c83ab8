"""Problem packages are read as they are, and what cannot be used is named."""

from pathlib import Path

import pytest

from curation.records import SourceError
from curation.sources.kattis import MEMORY_MB, find_packages, read_package
from curation.sources.kattis_statement import needs_image, statement_text
from curation.verify.programs.problem import CheckerKind, CodeLang, CodeVerdict, ValidatorLang

TEX = r"""\problemname{Two \emph{Sums}}
% a comment that says 50\% nothing
\newcommand{\most}{10^5}
\illustration{0.3}{pic.jpg}{A picture of \href{http://x}{sums}}
``Add'' the numbers\ldots{} It costs 5\% of $n \% 7$, \textbf{at most \emph{once}}.
\section*{Input}
\begin{itemize}
  \item One line with $1 \le n \le \most$.
  \item Then $n$~numbers.
\end{itemize}
\begin{Output}
Print \texttt{YES} or \texttt{NO}.
\end{Output}
"""


def package(folder: Path, yaml: str = "name: Sum\nlicense: cc by-sa\n", tex: str = TEX) -> Path:
    files = {
        "problem.yaml": yaml,
        "problem_statement/problem.en.tex": tex,
        "data/sample/1.in": "1 2\n",
        "data/sample/1.ans": "3\n",
        "data/secret/group/02.in": "5 7\n",
        "data/secret/group/02.ans": "12\n",
        "data/secret/03.in": "0 0\n",
        "submissions/accepted/a.py": "print(sum(map(int, input().split())))\n",
        "submissions/accepted/A.java": "class A {}\n",
        "submissions/accepted/old.py": "print raw_input()\n",
        "submissions/wrong_answer/b.cpp": "#include <iostream>\nint main() { std::cout << 3; }\n",
        "submissions/time_limit_exceeded/c.py": "while True: pass\n",
        "submissions/mixed/d.py": "# @EXPECTED_RESULTS@: WRONG-ANSWER, TIMELIMIT\nprint(3)\n",
        "submissions/notes/e.py": "print(3)\n",
        "submissions/accepted/many/main.py": "import other\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_a_package_is_read(tmp_path: Path) -> None:
    found = read_package(package(tmp_path / "sums"))
    assert (found.name, found.title, found.license, found.samples) == ("sums", "Sum", "cc by-sa", 1)
    assert [(test.name, test.input, test.output) for test in found.problem.tests] == [
        ("sample/1", b"1 2\n", b"3\n"),
        ("secret/group/02", b"5 7\n", b"12\n"),
    ]
    assert found.reasons == {}
    assert (found.has_time_limit, found.problem.refused) == (False, None)
    programs = {one.name: one for one in found.submissions}
    assert programs["accepted/a.py"].accepted
    assert programs["wrong_answer/b.cpp"].lang is CodeLang.CPP
    assert programs["wrong_answer/b.cpp"].rejected
    assert programs["mixed/d.py"].expected == {CodeVerdict.WA, CodeVerdict.TLE}
    for name, why in (
        ("accepted/A.java", ".java is not judged"),
        ("accepted/old.py", "Python 2"),
        ("notes/e.py", "states no verdict"),
        ("accepted/many", "several files"),
    ):
        assert programs[name].lang is None
        assert why in (programs[name].skipped or "")


def test_the_statement_as_text() -> None:
    assert statement_text(TEX) == (
        '"Add" the numbers… It costs 5% of $n \\% 7$, at most once.\n\nInput\n\n'
        "- One line with $1 \\le n \\le 10^5$.\n- Then $n$ numbers.\n\nOutput\n\nPrint YES or NO."
    )
    assert statement_text("## Input\n\n![x](a.png)One **line**.", markdown=True) == "Input\n\nOne **line**."
    assert not needs_image(TEX)
    raw = 'Erd\\H{o}s, pur\\\'eed, Malm\\"{o}, na\\"\\i ve, Gar\\c{c}on, \\AA rhus, $\\hat{o} \\o$'
    assert statement_text(raw) == "Erd\\H{o}s, puréed, Malmö, naï ve, Garçon, Århus, $\\hat{o} \\o$"
    assert not needs_image("% \\includegraphics{a.png}\ntext")
    assert needs_image("\\includegraphics[width=2cm]{a.png}")


@pytest.mark.parametrize(
    ("yaml", "reason"),
    [
        ("validation: custom interactive", "interactive"),
        ("problem_format_version: 2025-09\ntype: [pass-fail, multi-pass]", "multi_pass"),
        ("type: scoring", "scoring"),
        ("validation: custom", "checker"),
    ],
)
def test_what_cannot_be_judged_is_refused_with_its_reason(tmp_path: Path, yaml: str, reason: str) -> None:
    found = read_package(package(tmp_path / "sums", yaml))
    assert reason in found.reasons
    assert found.problem.refused is not None


def test_limits_and_flags(tmp_path: Path) -> None:
    here = package(tmp_path / "sums", "limits:\n  memory: 512\nvalidator_flags: float_tolerance 1e-6\n")
    found = read_package(here)
    assert (found.problem.memory_mb, found.problem.comparison.relative) == (512, 1e-6)
    assert read_package(package(tmp_path / "odd", "limits:\n  memory: .inf\n")).problem.memory_mb == MEMORY_MB
    (here / ".timelimit").write_text("2\n")
    assert (read_package(here).has_time_limit, read_package(here).problem.cpu_s) == (True, 2.0)
    newer = "problem_format_version: 2023-07-draft\nname:\n  en: Sum\nlimits: {time_limit: 1.5}\n"
    (here / "problem.yaml").write_text(newer)
    assert (read_package(here).problem.cpu_s, read_package(here).title) == (1.5, "Sum")


def test_checkers_are_read_with_their_headers(tmp_path: Path) -> None:
    here = package(tmp_path / "sums", "validation: custom\nvalidator_flags: hard\n")
    room = here / "output_validators" / "validator"
    room.mkdir(parents=True)
    (room / "validate.cpp").write_text('#include "validate.h"\n')
    (room / "validate.h").write_text("#include <cstdio>\n")
    checker = read_package(here).problem.checker
    assert checker is not None
    assert (checker.kind, checker.lang) == (CheckerKind.KATTIS, CodeLang.CPP)
    assert (checker.main, checker.args) == (("validate.cpp",), ("hard",))
    assert set(checker.sources) == {"validate.cpp", "validate.h"}
    (room / "build").write_text("make\n")
    assert "script of its own" in read_package(here).reasons["checker"]


def test_input_validators_in_python_cpp_and_checktestdata_are_read(tmp_path: Path) -> None:
    here = package(tmp_path / "sums")
    assert read_package(here).validators == ()
    room = here / "input_format_validators"
    (room / "b").mkdir(parents=True)
    (room / "a.ctd").write_text("INT(0, 10) NEWLINE\n")
    (room / "b" / "valid.py").write_text("import limits\n")
    (room / "b" / "limits.py").write_text("MOST = 10\n")
    (here / "data" / "testdata.yaml").write_text("input_validator_flags: --most 10\n")
    grammar, found = read_package(here).validators
    assert (grammar.lang, grammar.sources) == (ValidatorLang.CHECKTESTDATA, {"a.ctd": "INT(0, 10) NEWLINE\n"})
    assert (found.lang, found.args) == (ValidatorLang.PYTHON, ("--most", "10"))
    assert set(found.sources) == {"valid.py", "limits.py"}


def test_pictures_missing_statements_and_folders_that_are_no_packages(tmp_path: Path) -> None:
    here = package(tmp_path / "deep" / "sums", tex="\\includegraphics{a.png}")
    assert "image" in read_package(here).reasons
    (here / "problem_statement" / "problem.en.tex").unlink()
    assert "no_statement" in read_package(here).reasons
    assert list(find_packages(tmp_path)) == [here]
    (here / "problem.yaml").write_text("name: [")
    with pytest.raises(SourceError, match=r"problem\.yaml"):
        read_package(here)
