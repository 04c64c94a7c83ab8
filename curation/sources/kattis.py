"""Problem packages of the Kattis format, legacy and newer.

Invariants: nothing of a package is executed, and nothing outside its folder is read; what cannot be used has its
reason (``refused``, ``skipped``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curation.records import SourceError, VerifierError
from curation.sources.kattis_statement import needs_image, statement_text
from curation.verify.programs.comparison import Comparison, comparison_of_flags
from curation.verify.programs.problem import (
    Checker,
    CheckerKind,
    CodeLang,
    CodeProblem,
    CodeTest,
    CodeVerdict,
    Validator,
    ValidatorLang,
)

MAX_TIME_LIMIT_S = 20.0
"""CPU seconds to measure accepted submissions of packages without limit."""
MEMORY_MB = 2048
"""Default limit: BAPCtools' 2048, not problemtools' 1024, since much Python is written for PyPy, with smaller lists."""
_STATEMENTS = ("problem.en.tex", "problem.tex", "problem.en.md", "problem.md")
_CPP = frozenset({".cpp", ".cc", ".cxx", ".c++"})
_PYTHON = frozenset({".py", ".py3"})
_GRAMMAR = ".ctd"
_NO_PROGRAMS = frozenset({"", ".md", ".txt", ".pdf", ".tex", ".yaml", ".yml", ".json", ".in", ".ans"} | {".h", ".hpp"})
"""Endings of files next to input validators that are not programs."""
_HEADERS = frozenset({".h", ".hpp", ".hh"})
_PYTHON_2 = re.compile(r"^#!.*(?:python2|pypy\s*$)|^\s*print\s+[\"'\w]|\braw_input\(|\bxrange\(", re.MULTILINE)
_EXPECTED = re.compile(r"@EXPECTED_RESULTS@:\s*([\w, \-]+)")
_VERDICTS = {
    "accepted": frozenset({CodeVerdict.AC}),
    "wrong_answer": frozenset({CodeVerdict.WA}),
    "time_limit_exceeded": frozenset({CodeVerdict.TLE}),
    "run_time_error": frozenset({CodeVerdict.RTE}),
    "rejected": frozenset(CodeVerdict) - {CodeVerdict.AC, CodeVerdict.NA, CodeVerdict.BROKEN},
}
_KINDS = {"interactive": "interactive", "multi-pass": "multi_pass", "scor": "scoring", "submit-answer": "scoring"}
_UNJUDGED = ("interactive", "multi_pass", "scoring", "checker")
_WORDS = {
    **{"CORRECT": CodeVerdict.AC, "ACCEPTED": CodeVerdict.AC, "WRONG_ANSWER": CodeVerdict.WA},
    **{"NO_OUTPUT": CodeVerdict.WA, "TIMELIMIT": CodeVerdict.TLE, "TIME_LIMIT_EXCEEDED": CodeVerdict.TLE},
    **{"RUN_ERROR": CodeVerdict.RTE, "RUN_TIME_ERROR": CodeVerdict.RTE, "COMPILER_ERROR": CodeVerdict.CE},
}


@dataclass(frozen=True, slots=True)
class PackagedSubmission:
    """A package's program with ``expected`` verdicts, or why it is ``skipped``."""

    name: str
    lang: CodeLang | None
    code: str
    expected: frozenset[CodeVerdict]
    skipped: str | None

    @property
    def accepted(self) -> bool:
        """Return whether it is known to be right."""
        return self.expected == {CodeVerdict.AC}

    @property
    def rejected(self) -> bool:
        """Return whether it is known to be wrong."""
        return bool(self.expected) and CodeVerdict.AC not in self.expected


@dataclass(frozen=True, slots=True)
class Package:
    """A problem package; ``reasons`` state why it cannot be used."""

    path: Path
    name: str
    title: str
    statement: str
    license: str | None
    source: str | None
    problem: CodeProblem
    validators: tuple[Validator, ...]
    samples: int
    submissions: tuple[PackagedSubmission, ...]
    has_time_limit: bool
    reasons: Mapping[str, str]


def find_packages(folder: Path) -> Iterator[Path]:
    """Yield package folders at any depth, sorted; none within another."""
    if (folder / "problem.yaml").is_file() and (folder / "data").is_dir():
        yield folder
        return
    for inner in sorted(path for path in folder.iterdir() if path.is_dir() and not path.is_symlink()):
        if not inner.name.startswith("."):
            yield from find_packages(inner)


def read_package(path: Path) -> Package:
    """Return a package with its tests in memory.

    Raises:
        SourceError: the folder is no package.
    """
    metadata = _yaml(path / "problem.yaml")
    candidates = (path / folder / name for folder in ("problem_statement", "statement") for name in _STATEMENTS)
    statement_file = next((file for file in candidates if file.is_file()), None)
    raw = _text(statement_file) if statement_file is not None else ""
    tests, samples = _tests(path)
    reasons: dict[str, str] = {}
    if statement_file is None:
        reasons["no_statement"] = "no TeX or Markdown statement in English or without a language"
    elif needs_image(raw):
        reasons["image"] = "the statement shows a picture"
    if not tests:
        reasons["no_tests"] = "data/sample and data/secret hold no input with its answer"
    kind = f"{metadata.get('validation', '')} {metadata.get('type', '')}".lower()
    reasons |= {word: f"problem.yaml: it is {keyword}" for keyword, word in _KINDS.items() if keyword in kind}
    comparison, checker, refused = _judging(path, metadata)
    if refused is not None:
        reasons["checker"] = refused
    unjudged = next((reasons[word] for word in _UNJUDGED if word in reasons), None)
    limits = table if isinstance(table := metadata.get("limits"), dict) else {}
    time_limit = _own_time_limit(path, limits)
    problem = CodeProblem(
        path.name,
        tests,
        cpu_s=time_limit if time_limit is not None else MAX_TIME_LIMIT_S,
        memory_mb=int(_number(limits.get("memory")) or MEMORY_MB),
        comparison=comparison,
        checker=checker,
        refused=unjudged,
    )
    return Package(
        path=path,
        name=path.name,
        title=_title(metadata, raw, path.name),
        statement=statement_text(raw, markdown=statement_file is not None and statement_file.suffix == ".md"),
        license=_words(metadata.get("license")),
        source=_words(metadata.get("source")),
        problem=problem,
        validators=tuple(_validators(path)),
        samples=samples,
        submissions=tuple(_submission(file) for file in sorted((path / "submissions").glob("*/[!.]*"))),
        has_time_limit=time_limit is not None,
        reasons=reasons,
    )


def _yaml(path: Path) -> dict[str, Any]:
    import yaml

    try:
        content = yaml.safe_load(_text(path))
    except (OSError, yaml.YAMLError) as error:
        raise SourceError(f"{path} cannot be read as a problem.yaml: {str(error).splitlines()[0]}") from error
    if content is not None and not isinstance(content, dict):
        raise SourceError(f"{path} holds {type(content).__name__}, not a mapping of names to values")
    return content or {}


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "surrogateescape").replace("\r\n", "\n")


def _words(value: object) -> str | None:
    if isinstance(value, dict):
        value = value.get("name") or value.get("en")
    if isinstance(value, list):
        return ", ".join(filter(None, map(_words, value))) or None
    return str(value) if value else None


def _number(value: object) -> float | None:
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _title(metadata: Mapping[str, Any], raw: str, name: str) -> str:
    match = re.search(r"\\problemname\{((?:[^{}]|\{[^{}]*\})+)\}", raw)
    title = _words(metadata.get("name"))
    return title or (match[1] if match and "\\problemyamlname" not in match[1] else name)


def _own_time_limit(path: Path, limits: Mapping[str, Any]) -> float | None:
    own = _number(limits.get("time_limit"))
    if own is None and (path / ".timelimit").is_file():
        own = _number(_text(path / ".timelimit").strip())
    ini = path / "domjudge-problem.ini"
    if own is None and ini.is_file():
        match = re.search(r"^\s*timelimit\s*=\s*['\"]?([\d.]+)", _text(ini), re.MULTILINE)
        own = _number(match[1]) if match else None
    return own if own is not None and own > 0 else None


def _tests(path: Path) -> tuple[tuple[CodeTest, ...], int]:
    """Return the answered tests, samples first, and the samples' number."""
    tests: list[CodeTest] = []
    data = path / "data"
    for file in (file for kind in ("sample", "secret") for file in sorted((data / kind).rglob("*.in"))):
        answer = file.with_suffix(".ans")
        if answer.is_file() and file.is_file():
            name = file.relative_to(data).with_suffix("").as_posix()
            tests.append(CodeTest(file.read_bytes(), answer.read_bytes(), name))
    return tuple(tests), sum(test.name.startswith("sample/") for test in tests)


def _judging(path: Path, metadata: Mapping[str, Any]) -> tuple[Comparison, Checker | None, str | None]:
    """Return comparison, checker if any, and why outputs cannot be judged."""
    flags = " ".join(str(metadata.get("validator_flags") or "").split()) or _flags(path, "output_validator")
    folder = next((path / name for name in ("output_validator", "output_validators") if (path / name).is_dir()), None)
    legacy = str(metadata.get("problem_format_version", "legacy")).startswith("legacy")
    if "custom" in str(metadata.get("validation", "")) or (not legacy and folder is not None):
        checker = _program(folder, tuple(flags.split())) if folder is not None else "it names a checker but has none"
        return Comparison(), *((None, checker) if isinstance(checker, str) else (checker, None))
    try:
        return comparison_of_flags(flags), None, None
    except VerifierError as error:
        return Comparison(), None, str(error)


def _flags(path: Path, program: str) -> str:
    for file, key in (("testdata.yaml", f"{program}_flags"), ("test_group.yaml", f"{program}_args")):
        for folder in (path / "data", path / "data" / "secret"):
            value = _yaml(folder / file).get(key) if (folder / file).is_file() else None
            if isinstance(value, list) and value:
                return " ".join(map(str, value))
            if isinstance(value, str) and value:
                return value
    return ""


def _validators(path: Path) -> Iterator[Validator]:
    """Yield input validators, all of which must pass; unsupported ones have reasons."""
    flags = tuple(_flags(path, "input_validator").split())
    for name in ("input_validators", "input_format_validators"):
        for entry in sorted((path / name).iterdir()) if (path / name).is_dir() else ():
            files = [entry] if entry.is_file() else sorted(entry.iterdir())
            grammars = [file for file in files if file.suffix == _GRAMMAR and file.is_file()]
            for grammar in grammars:
                yield Validator(ValidatorLang.CHECKTESTDATA, {grammar.name: _text(grammar)}, (grammar.name,))
            program = _program(entry, flags)
            if isinstance(program, Checker):
                lang = ValidatorLang(program.lang.value)
                yield Validator(lang, program.sources, program.main, program.args)
            elif not grammars and any(file.suffix not in _NO_PROGRAMS and file.name[0] != "." for file in files):
                endings = sorted({file.suffix or file.name for file in files if file.is_file()})
                why = f"{' and '.join(endings)} is neither Python, C++ nor checktestdata"
                yield Validator(ValidatorLang.OTHER, {entry.name: why}, (entry.name,))


def _program(path: Path, flags: tuple[str, ...]) -> Checker | str:
    """Return a file's, a folder's or its only folder's checker, or why it cannot be used."""
    entries = [path] if path.is_file() else sorted(path.glob("[!.]*"))
    folders, files = [entry for entry in entries if entry.is_dir()], [entry for entry in entries if entry.is_file()]
    if folders and not any(file.suffix in _CPP | _PYTHON for file in files):
        if len(folders) > 1:
            return f"it has {len(folders)} checkers"
        files = [entry for entry in sorted(folders[0].iterdir()) if entry.is_file()]
    if any(file.name in {"build", "run"} for file in files):
        return "its checker is built by a script of its own"
    cpp = [file.name for file in files if file.suffix in _CPP]
    python = [file.name for file in files if file.suffix in _PYTHON]
    sources = {file.name: _text(file) for file in files if file.suffix in _CPP | _PYTHON | _HEADERS}
    if cpp and not python:
        return Checker(CheckerKind.KATTIS, CodeLang.CPP, sources, tuple(cpp), flags)
    if python and not cpp:
        main = next((name for name in python if Path(name).stem in {"validate", "validator", "main"}), python[0])
        return Checker(CheckerKind.KATTIS, CodeLang.PYTHON, sources, (main,), flags)
    return "its checker is neither C++ nor Python"


def _submission(file: Path) -> PackagedSubmission:
    folder = file.parent.name
    name, expected = f"{folder}/{file.name}", _VERDICTS.get(folder, frozenset())
    if not file.is_file():
        return PackagedSubmission(name, None, "", expected, "it consists of several files")
    code = _text(file)
    header = _EXPECTED.search(code)
    if header is not None:
        verdicts = {_WORDS.get(word.strip().upper().replace("-", "_")) for word in header[1].split(",")}
        expected = frozenset(word for word in verdicts if word is not None) or expected
    lang = CodeLang.CPP if file.suffix in _CPP else CodeLang.PYTHON if file.suffix in _PYTHON else None
    skipped = None if lang is not None else f"{file.suffix or 'a file without ending'} is not judged"
    if lang is CodeLang.PYTHON and _PYTHON_2.search(code):
        lang, skipped = None, "it is Python 2"
    if lang is not None and not expected:
        lang, skipped = None, f"the folder {folder} states no verdict"
    return PackagedSubmission(name, lang, code, expected, skipped)
