"""Read files of words into `Language` and `Neighbour`."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from curation.languages.vocabulary.answers import Answers
from curation.languages.vocabulary.choices import Choices
from curation.languages.vocabulary.parts import (
    Dates,
    Duplicates,
    Identification,
    Numerals,
    Prompts,
    Units,
)
from curation.languages.vocabulary.questions import Questions
from curation.languages.vocabulary.statements import Statements
from curation.records import ConfigError

FOLDER = Path(__file__).resolve().parent.parent / "data"
SCRIPTS = ("latin", "cyrillic", "han")

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """All known words and rules of one language."""

    code: str
    """ISO 639-1; the file's name."""
    name: str
    """In English, for people."""
    position: int
    """Place among the languages, from 1: in this order their alternatives are joined."""
    script: str
    """latin, cyrillic or han."""
    decimal_comma: bool
    """Whether 1,5 is three halves; then a comma or point before three digits can mean either."""
    identification: Identification
    numerals: Numerals
    dates: Dates
    units: Units
    prompts: Prompts
    duplicates: Duplicates
    statements: Statements
    choices: Choices
    answers: Answers
    questions: Questions

    @property
    def spaced(self) -> bool:
        """Return whether words are separated; in Chinese, expressions have no boundaries."""
        return self.script != "han"


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """A language that is only identified, and read in answers."""

    code: str
    """ISO 639-1; the file's name."""
    name: str
    """In English, for people."""
    tasks: tuple[str, ...]
    """As `Identification.tasks`."""
    yes: tuple[str, ...]
    """As `Answers.yes`."""
    no: tuple[str, ...]
    """As `Answers.no`."""
    cues: tuple[str, ...]
    """As `Answers.cues`."""


@cache
def languages() -> tuple[Language, ...]:
    """Return every language with a file, by position.

    Raises:
        ConfigError: a field is missing, unknown or of another type, or positions are wrong.
    """
    ordered = sorted((read(path, Language) for path in FOLDER.glob("*.toml")), key=lambda lang: lang.position)
    if [lang.position for lang in ordered] != list(range(1, len(ordered) + 1)):
        listed = ", ".join(f"{lang.code} {lang.position}" for lang in ordered)
        raise ConfigError(
            f"the languages' positions are not 1 to {len(ordered)}, each once ({listed}); mend the files."
        )
    return tuple(ordered)


@cache
def neighbours() -> tuple[Neighbour, ...]:
    """Return the languages with few known words, by code."""
    return tuple(read(path, Neighbour) for path in sorted((FOLDER / "neighbours").glob("*.toml")))


@cache
def language(code: str) -> Language:
    """Return the language of an ISO 639-1 code.

    Raises:
        KeyError: it has no file.
    """
    return {lang.code: lang for lang in languages()}[code]


def has_decimal_comma(code: str) -> bool | None:
    """Return whether 1,5 is three halves in a language; None without a file."""
    return next((lang.decimal_comma for lang in languages() if lang.code == code), None)


def every(pick: Callable[[Language], Iterable[str]]) -> tuple[str, ...]:
    """Return what ``pick`` takes of each language, by position."""
    return tuple(item for lang in languages() for item in pick(lang))


def one_of(pick: Callable[[Language], Iterable[str]], *, spaced: bool | None = None) -> str:
    """Join what ``pick`` takes into an expression's alternatives, without brackets.

    Args:
        spaced: only languages with (True) or without (False) separated words.
    """
    selected = (lang for lang in languages() if spaced is None or lang.spaced is spaced)
    return "|".join(dict.fromkeys(item for lang in selected for item in pick(lang)))


def read(path: Path, kind: type[T]) -> T:
    """Read a file into a `Language` or a `Neighbour`.

    Raises:
        ConfigError: a field is missing, unknown, or of another type.
    """
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    built = _table({"code": path.stem, **table}, kind, path.name)
    script = getattr(built, "script", SCRIPTS[0])
    if script not in SCRIPTS:
        raise ConfigError(f"{path.name}: script is {script!r}; write one of {', '.join(SCRIPTS)}.")
    return built


def _built(value: Any, kind: Any, where: str) -> Any:
    """Return a TOML value as a field's type."""
    if isinstance(kind, type) and is_dataclass(kind) and isinstance(value, dict):
        return _table(value, kind, where)
    if type(value) is kind:
        return value
    inner = get_args(kind)
    if get_origin(kind) is tuple and isinstance(value, list):
        return tuple(_built(item, inner[0], where) for item in value)
    if get_origin(kind) is dict and isinstance(value, dict):
        return {key: _built(item, inner[1], f"{where}, {key}") for key, item in value.items()}
    if kind is float and type(value) is int:
        return float(value)
    raise ConfigError(f"{where}: {value!r} is not of the type that belongs here ({kind}); correct it.")


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _table(table: dict[str, Any], kind: type[T], where: str) -> T:
    """Return a TOML table as its class."""
    described: type = kind
    hints = _hints(described)
    for name in hints:
        if name not in table:
            raise ConfigError(f"{where}: {name} is missing; write it, empty where the language has none.")
    for name in table:
        if name not in hints:
            raise ConfigError(f"{where}: {name} is no field; take it out, or correct its name.")
    return kind(**{name: _built(table[name], hints[name], f"{where}, {name}") for name in hints})
