"""The program in a response, and what breaks the format.

A row of ``blocks.jsonl`` has a ``text``, the language ``wanted`` of it and whether it is ``finished``, and its ``code``
with the ``lang``, or null and words of ``why`` there is none.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from curation.verify.programs.extraction import CodeBlock, code_blocks, extract_code
from curation.verify.programs.problem import CodeLang, CodeVerdict, Submission, Unready

ROWS = [json.loads(line) for line in Path(__file__).with_name("blocks.jsonl").read_text("utf-8").splitlines()]


def test_the_block_that_counts() -> None:
    for row in ROWS:
        wanted = CodeLang(row["wanted"]) if "wanted" in row else None
        found = extract_code(row["text"], wanted, finished=row.get("finished", False))
        if row["code"] is None:
            assert isinstance(found, Unready), row
            assert row.get("why", "") in found.how, row
        else:
            assert isinstance(found, Submission), row
            assert (found.code, found.lang) == (row["code"], row.get("lang", found.lang)), row


def test_long_texts_take_linear_time() -> None:
    start = time.process_time()
    for text in ("```\n" * 20_000, "```\n" + "if :" * 50_000, "```\n" + "a, " * 50_000, "#" * 200_000 + "\n```"):
        extract_code(text, finished=True)
    assert time.process_time() - start < 1


def test_all_blocks_with_their_names() -> None:
    text = "<think>```a\n1\n```</think>```text\n2\n```\n\n```\n3\n```\n```{.Python}\n\n```\n```cpp\n4"
    assert code_blocks(text) == [CodeBlock("text", "2\n"), CodeBlock("", "3\n")]
    assert code_blocks(text, finished=True)[-1] == CodeBlock("cpp", "4", is_closed=False)
    assert extract_code(text) == Unready(CodeVerdict.NA, "the code block is not closed")  # no other holds a program
    assert code_blocks("<think>```a\n1\n```") == []
