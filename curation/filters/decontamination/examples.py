r"""The examples of a program's statement: which arguments, and what is said to come back.

A port of a task keeps its behaviour, so its examples hold for the original too, in whatever language they stand:

    >>> near([1.5, 2.5], 0.7)           Python's prompt, the value on the next line
    near([1.5, 2.5], 0.7) => False      also ==, ->, "returns", "gives", `// prints 0`, `# Output: False`
    printf("%d\n", total(arr, n));      C: arrays by their names, lengths left out
    Input: nums = [2, 6], k = 1         names with values, "Output: [6]" behind them
    assert near([1.5, 2.5], 0.7) == False
    Sample Input 1, lines, Sample Output 1, lines     of a program that reads and prints

Values are read as Python, JSON or C writes them; what cannot be read is no example. Nothing is run here.

Invariant: the examples of a text depend on the text alone, in its order, each once.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

MOST, LOOKED_AT = 24, 200
"""Examples of one text that are read, and calls that are looked at for them."""

READ, LETTERS = 12_000, 4_000
"""Letters of a text that are read, and letters within which a bracket or a quote must close."""

FUNCTION = re.compile(
    r"\b(?:def|function)\s+([A-Za-z_]\w*)\s*\("
    r"|^\s*(?:const|let|var)\s+([A-Za-z_]\w*)\s*=\s*(?:async\s*)?(?:function\b|\([^)]*\)\s*=>)"
    r"|^[ \t]*(?:[A-Za-z_][\w<>:,]*[\s*&]+){1,4}([A-Za-z_]\w*)\s*\([^;{}]{0,400}\)\s*\{",
    re.MULTILINE,
)
HELPERS = frozenset({"main", "compare", "cmp", "if", "for", "while", "switch", "return"})
"""Names of functions that say nothing about the task."""

_CALLED = re.compile(r"(?:>>>\s*|assert\s+(?:\w+\()?\s*|console\.log\(\s*)([A-Za-z_]\w*)\s*\(")
_TOLD = re.compile(
    r"[\s)\];*\"'`]*"
    r"(?:(?:[-=]+>|={1,3}|➞|→|//|#|/\*|:|,|the\b|it\b|will\b|would\b|should\b|must\b|be\b|us\b|"
    r"return(?:s|ed|ing)?\b|gives?\b|is\b|yields?\b|equals?\b|evaluates? to\b|"
    r"(?:console )?(?:log|output|print|result|answer|value)s?\b|"
    r"expect(?:ed|s)?\b|a?ctual\b|to\b|array|list|string|\.\.\.|approx(?:imately)?\b|in\b)[\s*]*)*",
    re.IGNORECASE,
)
_BEFORE = re.compile(r"(?:returns?|outputs?|prints?|expect(?:ed|s)?)\b[^\n:{\[]*:?\s*(?=\S)", re.IGNORECASE)
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]*\()")
_WORD = re.compile(r"(?:True|False|None|true|false|null|undefined|NULL|nil)\b")
_WORDS = {"true": True, "True": True, "false": False, "False": False}
_NAMED = re.compile(
    r"(?P<name>[A-Za-z_]\w*)(?:\s*\[\s*\w*\s*\])*\s*=\s*(?=[\[({\"'\d\-+TFtfN.])(?!=)"
)  # of `int arr[] = {1, 2}`, `k = 3`
_LENGTH = re.compile(
    r"(?i)(?:sizeof.*|.*\.(?:length|size\(\))|strlen\(.*|\w*(?:size|len|length|count)\w*|n\d*|\w+_?n\d*)"
)
_GIVEN = re.compile(r"(?i)\b(?:input|given|with|where|when)\b|\bfor\s+\w+\s*=?$")
"""What stands before names with values, where these are an example and no code."""
_OUTPUT = re.compile(
    r"(?i)\b(?:output|result|answer|returns?)\b[^\n:=\[({]{0,30}?(?::|=|\bbe\b|\bis\b|\breturns?\b)\s*"
)
_NUMBERS = re.compile(r"-?\d+(?:\.\d+)?(?:\s+-?\d+(?:\.\d+)?)+\s*(?:\*/)?$")
_SAMPLE = re.compile(
    r"^[\W_]*(?:(?:sample|example)\s+)?input\b[^\n]{0,12}\n(?P<given>.*?)\n"
    r"[\W_]*(?:(?:sample|example)\s+)?output\b[^\n]{0,12}\n\s*(?P<told>.*?)(?=\n```|\n\s*\n|\n[\W_]*(?:sample|example|input)\b|\Z)",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_QUOTES = "\"'`"
_OPEN, _CLOSE = "([{", ")]}"


@dataclass(frozen=True, slots=True)
class Example:
    """Arguments, and what is expected; ``is_told`` is false where the text does not say. What a program reads has
    no ``name``.

    Example: ``Example("near", ([1.5, 2.5], 0.7), False, True)``
    """

    name: str
    args: tuple[object, ...]
    expected: object = None
    is_told: bool = False


def function_names(text: str) -> list[str]:
    """Return the names of the functions that a text defines, in order, without helpers."""
    names = [name for match in FUNCTION.finditer(text) for name in match.groups() if name]
    return [name for name in dict.fromkeys(names) if name not in HELPERS]


def read_examples(text: str) -> list[Example]:
    """Return the examples of a text, `MOST` at most, as far as they stand in its first `READ` letters."""
    text = text[:READ]
    names = dict.fromkeys((*function_names(text), *(name for name in _CALLED.findall(text) if name not in HELPERS)))
    found: dict[str, Example] = {}
    if names:
        calls = re.compile(rf"(?<![\w.])({'|'.join(map(re.escape, names))})\s*\(")
        for call in islice(calls.finditer(text), LOOKED_AT):
            if (example := _example(text, call)) is not None:
                _add(found, example)
    for example in (*_by_names(text), *(() if names else _read_and_printed(text))):
        _add(found, example)
    return list(found.values())[:MOST]


def _add(found: dict[str, Example], example: Example) -> None:
    key = f"{example.name} {example.args!r}"
    if key not in found or (example.is_told and not found[key].is_told):
        found[key] = example


def _example(text: str, call: re.Match[str]) -> Example | None:
    end = _closing(text, call.end() - 1)
    if end is None or (args := _arguments(text, call.end(), end)) is None:
        return None
    told = _told(text, end + 1)
    if told is None:
        line = text.rfind("\n", 0, call.start())
        before = text[text.rfind("\n", 0, max(0, line)) + 1 : max(0, line)]
        if re.match(r"\s*(?://|#|\*|/\*)", before) and (match := _BEFORE.search(before)):
            told = _value(before, match.end())
    if told is None:
        return Example(call[1], args)
    return Example(call[1], args, told[0], True)


def _told(text: str, start: int) -> tuple[object, int] | None:
    """Return the value that a text says right behind a call: on its line, or alone on the next one."""
    stop = text.find("\n", start)
    stop = len(text) if stop < 0 else stop
    marker = _TOLD.match(text, start, stop)
    at = marker.end() if marker else start
    said = text[start:at]
    if re.search(r"\w|[=>:➞→/#]", said):  # something announces a value
        at -= len(said) - len(said.rstrip(_QUOTES)) if said.rstrip().endswith(tuple(_QUOTES)) else 0
        if numbers := _NUMBERS.match(text, at, stop):  # as C prints a list
            return [ast.literal_eval(number) for number in numbers[0].split() if number != "*/"], stop
        if (value := _value(text, at)) is not None:
            return value
        if re.search(r"//|#", said):
            word = re.match(r"[A-Za-z][\w ]{0,40}$", text[at:stop].strip())
            return (word[0], stop) if word else None
    if text[start:stop].strip(" );,'\"`"):
        return None
    following = re.compile(r"\n[\s*#/]*(?:(?:expected\s+)?(?:output|returns?)\s*:?\s*)?", re.IGNORECASE)
    match = following.match(text, stop)
    return _value(text, match.end()) if match else None


def _by_names(text: str) -> Iterator[Example]:
    """Yield examples of the form ``nums = [2, 6], k = 1 … Output: [6]``."""
    names = function_names(text)
    values = [(match, value) for match in _NAMED.finditer(text) if (value := _value(text, match.end())) is not None]
    at = 0
    while at < len(values):
        last = at
        begin = values[at][0].start()
        if not _GIVEN.search(text, text.rfind("\n", 0, begin) + 1, values[at][0].end("name")):
            at += 1
            continue
        while last + 1 < len(values) and re.fullmatch(
            r"[\s,;]*(?:and|with)?[\s,]*", text[values[last][1][1] : values[last + 1][0].start()]
        ):
            last += 1
        end = values[last][1][1]
        output = _OUTPUT.search(text, end, end + 60)
        if output and (told := _value(text, output.end())) is not None:
            args = tuple(value for _, (value, _) in values[at : last + 1])
            yield Example(names[0] if names else "?", args, told[0], True)
        at = last + 1


def _read_and_printed(text: str) -> Iterator[Example]:
    """Yield what a program is given on standard input and should print, as contests show it."""
    for match in _SAMPLE.finditer(text):
        given, told = (match[part].strip("\n `") for part in ("given", "told"))
        if given and told:
            yield Example("", (given + "\n",), told + "\n", True)


def _arguments(text: str, start: int, end: int) -> tuple[object, ...] | None:
    """Return the values between two places; None where one cannot be read, or there is none."""
    values: list[object] = []
    for part in _split(text[start:end]):
        read = _value(part, 0)
        if read is not None and not part[read[1] :].strip():
            values.append(read[0])
            continue
        named = _looked_up(text, start, part)
        if named is not None:
            values.append(named)
        elif values and _LENGTH.fullmatch(part):
            continue
        else:
            return None
    if _is_c(text):
        values = [value for at, value in enumerate(values) if not _is_length(values, at)]
    return tuple(values) if values else None


def _looked_up(text: str, start: int, name: str) -> object:
    """Return the list or text that a name was given last before a place; None where it was given none."""
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        return None
    given = re.compile(rf"\b{name}(?:\s*\[\s*\w*\s*\])*\s*=\s*(?!=)")
    matches = list(given.finditer(text, 0, start))
    if not matches:
        return None
    read = _value(text, matches[-1].end())
    return read[0] if read is not None and isinstance(read[0], (list, str)) else None


def _is_c(text: str) -> bool:
    return "#include" in text or re.search(r"```(?:c|cpp|c\+\+)\s", text, re.IGNORECASE) is not None


def _is_length(values: list[object], at: int) -> bool:
    before = values[at - 1] if at else None
    return isinstance(before, list) and values[at] == len(before) and not isinstance(values[at], bool)


def _split(text: str) -> list[str]:
    """Return what stands between the commas of a text outside of brackets and quotes."""
    parts, depth, start, at = [], 0, 0, 0
    while at < len(text):
        char = text[at]
        if char in _QUOTES:
            at = _unquoted(text, at)
        depth += (char in _OPEN) - (char in _CLOSE)
        if char == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
        at += 1
    return [part for part in (*parts, text[start:].strip()) if part]


def _unquoted(text: str, at: int) -> int:
    """Return the place of the quote that ends the one at a place, or the text's end."""
    quote, at, stop = text[at], at + 1, min(len(text), at + LETTERS)
    while at < stop and text[at] != quote:
        at += 2 if text[at] == "\\" else 1
    return at if at < stop else len(text)


def _closing(text: str, at: int) -> int | None:
    """Return where the bracket at a place closes; None where it does not, within `LETTERS`."""
    depth, stop = 0, min(len(text), at + LETTERS)
    while at < stop:
        char = text[at]
        if char in _QUOTES:
            at = _unquoted(text, at)
        depth += (char in _OPEN) - (char in _CLOSE)
        if depth == 0:
            return at
        at += 1
    return None


def _value(text: str, at: int) -> tuple[object, int] | None:
    """Return the value that begins at a place, and where it ends; None where there is none."""
    while at < len(text) and text[at] in " \t":
        at += 1
    if at >= len(text):
        return None
    if text[at] in _QUOTES:
        quote = _unquoted(text, at)
        return (_literal(text[at : quote + 1], str), quote + 1) if quote < len(text) else None
    if text[at] in _OPEN:
        end = _closing(text, at)
        if end is None:
            return None
        read = _literal(text[at : end + 1], None)
        return (read, end + 1) if read is not None else None
    if match := _WORD.match(text, at):
        return _WORDS.get(match[0]), match.end()
    if match := _NUMBER.match(text, at):
        number = match[0].rstrip(".") if match.end() == len(text) or text[match.end()].isspace() else match[0]
        return _literal(number, None), match.end()
    return None


def _literal(text: str, otherwise: type[str] | None) -> object:
    """Return a literal of Python, JSON or C as plain data; tuples and C's braces are lists, objects of names dicts."""
    plain = re.sub(r"\btrue\b", "True", re.sub(r"\bfalse\b", "False", re.sub(r"\b(?:null|undefined)\b", "None", text)))
    if plain.startswith("`"):
        plain = json.dumps(plain[1:-1])
    for form in (
        plain,
        re.sub(r"([{,]\s*)([A-Za-z_]\w*)\s*:", r'\1"\2":', plain),
        plain.replace("{", "[").replace("}", "]"),
    ):
        try:
            value: object = ast.literal_eval(re.sub(r"(?<![\w.])0+(?=\d)", "", form))
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            continue
        if form is plain and isinstance(value, (set, frozenset)):
            continue  # C's braces are in order
        return as_data(value)
    return text[1:-1] if otherwise is str else None


def as_data(value: object) -> object:
    """Return a value as JSON has it: tuples and sets as lists."""
    if isinstance(value, (list, tuple)):
        return [as_data(part) for part in value]
    if isinstance(value, (set, frozenset)):
        return sorted((as_data(part) for part in value), key=repr)
    if isinstance(value, Mapping):
        return {str(key): as_data(part) for key, part in value.items()}
    return value if isinstance(value, (bool, int, float, str)) or value is None else repr(value)
