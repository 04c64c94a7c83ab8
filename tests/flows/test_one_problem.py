"""The page "One problem from row to gradient" prints what it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.places import ROOT

PAGE = ROOT / "docs" / "one-problem.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
MARK = "=== next block ==="


@pytest.mark.slow
def test_the_page_prints_what_it_shows() -> None:
    text = PAGE.read_text(encoding="utf-8")
    blocks = BLOCK.findall(text)
    assert len(blocks) == text.count("```python") == text.count("```text") > 5
    code = f"\nprint({MARK!r})\n".join(code for code, _ in blocks)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split(f"{MARK}\n") == [shown for _, shown in blocks]
