"""The program in a response, and what breaks the format."""

from __future__ import annotations

import time

import pytest

from curation.verify.programs.extraction import CodeBlock, CodeLang, code_blocks, extract_code

NAIVE, FINAL, CPP_TOO = "```python\nprint(1)\n```\n", "```python\nprint(2)\n```\n", "```cpp\nint main(){}\n```\n"


@pytest.mark.parametrize(
    ("text", "wanted", "code"),
    [
        (NAIVE + FINAL, None, "print(2)\n"),
        (f"<think>x</think>{NAIVE}{FINAL}", None, "print(1)\n"),  # the paper's form
        (f"<think>x</think>```\n3 4\n```\n{NAIVE}{FINAL}", None, "print(2)\n"),  # is not
        (f"```text\n3 4\n```\n{FINAL}```\n7\n```", CodeLang.PYTHON, "print(2)\n"),
        (NAIVE + FINAL + CPP_TOO, CodeLang.PYTHON, "print(2)\n"),
        (NAIVE + CPP_TOO + FINAL, CodeLang.CPP, "int main(){}\n"),
        (CPP_TOO + FINAL, None, "print(2)\n"),
        (FINAL + "```python\n\n```", None, "print(2)\n"),
        (FINAL + "```python\nprint(3)", None, "print(2)\n"),  # cut short
        ("```\n#include <cstdio>\nint main() {}\n```", CodeLang.CPP, "#include <cstdio>\nint main() {}\n"),
        ("```\nn = int(input())\n```", CodeLang.PYTHON, "n = int(input())\n"),
        (FINAL + "```\nprint(3)\n```", CodeLang.PYTHON, "print(2)\n"),  # the one that names its language
        ("```\nSo:\n" + FINAL, None, "print(2)\n"),  # a stray fence
        ("import sys\nprint(2)\n```\nDone.", None, "import sys\nprint(2)\n"),  # the prompt opened the block
        ("```c++14\nint main(){}\n```", None, "int main(){}\n"),
    ],
)
def test_the_block_that_counts(text: str, wanted: CodeLang | None, code: str) -> None:
    assert extract_code(text, wanted).code == code


def test_long_texts_take_linear_time() -> None:
    start = time.process_time()
    for text in ("```\n" * 20_000, "```\n" + "if :" * 50_000, "```\n" + "a, " * 50_000, "#" * 200_000 + "\n```"):
        extract_code(text, finished=True)
    assert time.process_time() - start < 1


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
        ("```\n1 2\n```", "looks like no program"),
        ("```\n1 2", "not closed"),
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


@pytest.mark.parametrize(
    "text",
    [
        "1. First read:\n\n   ```python\n   if 1:\n       print(1)\n   ```\n\n2. Done.",
        "- ```python\n  if 1:\n      print(1)\n  ```",
        "* a\n  10. b\n\n      ```python\n      if 1:\n          print(1)\n      ```",
        "-\t```python\n\tif 1:\n\t    print(1)\n\t```",
        "  ```python\n  if 1:\n      print(1)\n```",  # the fences need not stand alike
        "1. So:\n   ```python\nif 1:\n    print(1)\n   ```",  # nor the code
    ],
)
def test_a_block_in_a_list_loses_the_indentation_of_its_fence(text: str) -> None:
    found = extract_code(text)
    assert (found.lang, found.code) == (CodeLang.PYTHON, "if 1:\n    print(1)\n")


def test_a_fence_in_a_string_of_the_code_ends_no_block() -> None:
    code = 'def f():\n    """Show.\n\n    ```\n    f()\n    ```\n    """\n'
    assert extract_code(f"```python\n{code}```").code == code
    in_list = "".join(f"   {line}\n" if line else "\n" for line in code.splitlines())
    assert extract_code(f"1. So:\n\n   ```python\n{in_list}   ```").code == code


def test_the_end_of_a_finished_response_closes_an_open_block() -> None:
    assert extract_code("So:\n```python\nprint(1)\n", finished=True).code == "print(1)\n"
    assert extract_code("So:\n```python\nprint(1)", finished=True).code == "print(1)"
    assert extract_code("- So:\n  ```python\n  print(1)", finished=True).code == "print(1)"
    assert "not closed" in extract_code("So:\n```python\nprint(1)").why
    assert "empty" in extract_code("So:\n```python", finished=True).why
    assert "never end" in extract_code("<think>```python\nprint(1)\n```", finished=True).why


def test_all_blocks_with_their_names() -> None:
    text = "<think>```a\n1\n```</think>```text\n2\n```\n\n```\n3\n```\n```{.Python}\n\n```\n```cpp\n4"
    assert code_blocks(text) == [CodeBlock("text", "2\n"), CodeBlock("", "3\n")]
    assert code_blocks(text, finished=True)[-1] == CodeBlock("cpp", "4", is_closed=False)
    assert extract_code(text).why == "the code block is not closed"  # and no other holds a program
    assert code_blocks("<think>```a\n1\n```") == []
