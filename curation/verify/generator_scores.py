"""Runs a generator's `score(row, answer)` in the sandbox; right answers score true or at least 1.

Invariant: a failure is never a wrong answer.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from curation.plugins import Plugin

if TYPE_CHECKING:
    from curation.verify.sandbox import Sandbox

SCORE = "score"
"""Name of the function in a generator's file."""

_PROGRAM = """
import json, sys
job, out = json.load(sys.stdin), sys.stdout
sys.stdout = sys.stderr
scope = {{"__name__": "generator"}}
exec(compile({text!r}, {name!r}, "exec"), scope)
found = scope[{score!r}](job["row"], job["answer"])
json.dump(None if found is None else bool(found >= 1), out)
"""


def is_scorer(value: Any) -> bool:
    """Return whether an object is a function of `row` and `answer`."""
    return inspect.isfunction(value) and [*inspect.signature(value).parameters] == ["row", "answer"]


@lru_cache(maxsize=4096)
def scored(plugin: Plugin, statement: str | None, reference: str, answer: str) -> bool | str | None:
    """Return whether an answer is right, None in doubt, or the failure."""
    from curation.verify.programs.running import failure_of
    from curation.verify.programs.tools import wants_numpy
    from curation.verify.sandbox import Limits

    text, name = plugin.path.read_text(encoding="utf-8"), plugin.path.name
    row: Mapping[str, str | None] = {"statement": statement, "answer": reference}
    program = _PROGRAM.format(text=text, name=name, score=plugin.value.__name__)
    job = json.dumps({"row": row, "answer": answer}).encode()
    (ran,) = _sandbox().run_python(program, [job], Limits(cpu_s=2.0, memory_mb=512), numpy=wants_numpy(text))
    if (failure := failure_of(ran)) is not None:
        return f"{name}: {plugin.value.__name__}: {failure[1]}"
    found: bool | None = json.loads(ran.stdout)
    return found


@cache
def _sandbox() -> Sandbox:
    """Return the process's sandbox."""
    from curation.verify.sandbox import Sandbox

    return Sandbox(workers=1)
