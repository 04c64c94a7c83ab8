"""The program in a response, and what breaks the format."""

from __future__ import annotations

import pytest

from curation.verify.programs.extraction import CodeLang, extract_code


def test_the_first_block_after_the_thoughts() -> None:
    text = (
        "<think>\n```python\nprint('draft')\n```\n</think>\nHere:\n```python\nprint(1)\n```\n```cpp\nint main(){}\n```"
    )
    found = extract_code(text)
    assert (found.lang, found.code) == (CodeLang.PYTHON, "print(1)\n")


@pytest.mark.parametrize(
    ("name", "lang"),
    [
        ("python", CodeLang.PYTHON),
        ("py", CodeLang.PYTHON),
        ("Python3", CodeLang.PYTHON),
        (" python", CodeLang.PYTHON),
        ("cpp", CodeLang.CPP),
        ("c++", CodeLang.CPP),
        ("cc", CodeLang.CPP),
        ("C++", CodeLang.CPP),
        ("cpp title=main.cpp", CodeLang.CPP),
    ],
)
def test_names_of_languages(name: str, lang: CodeLang) -> None:
    assert extract_code(f"```{name}\nx\n```").lang is lang


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("print(1)", "no code block"),
        ("```\nprint(1)\n```", "names no language"),
        ("```java\nclass A {}\n```", "not judged"),
        ("```python\nprint(1)\n", "not closed"),
        ("```python\n\n```", "empty"),
        ("<think>```python\nprint(1)\n```", "never end"),
        ("<think>```python\nprint(1)\n```</think> done", "no code block"),
        ("use `python` here", "no code block"),
        ("", "no code block"),
    ],
)
def test_what_breaks_the_format(text: str, why: str) -> None:
    found = extract_code(text)
    assert found.code is None
    assert why in found.why


def test_a_longer_fence_may_hold_a_shorter_one() -> None:
    assert extract_code("````python\ns = '''\n```\n'''\n````").code == "s = '''\n```\n'''\n"


def test_windows_line_ends() -> None:
    assert extract_code("```python\r\nprint(1)\r\n```\r\n").code == "print(1)\n"
