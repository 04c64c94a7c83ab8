"""Runs a generator's scorer in the sandbox: a file's `score(row, answer)`, or a reasoning-gym task's.

Right answers score true or at least 1. Invariant: a failure is never a wrong answer.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from curation.plugins import Plugin

if TYPE_CHECKING:
    from curation.verify.sandbox import Limits, Sandbox

SCORE = "score"
"""Name of the function in a generator's file."""

BY_VERIFIER, BY_GENERATOR = "verifier", "generator"
"""Values of a row's `judged_by`."""

_PROGRAM = """
import json, sys
job, out = json.load(sys.stdin), sys.stdout
sys.stdout = sys.stderr
scope = {{"__name__": "generator"}}
exec(compile({text!r}, {name!r}, "exec"), scope)
score = scope[{score!r}](job["row"], job["answer"])
print(job["token"], None if score is None else bool(score >= 1), file=out)
"""

_TASK_PROGRAM = """
import hashlib, importlib.util, json, sys, types
job, out = json.load(sys.stdin), sys.stdout
sys.stdout = sys.stderr
module = job["module"]
for end in (at for at, sign in enumerate(module) if sign == "."):  # their __init__ would import all tasks
    package = types.ModuleType(module[:end])
    package.__path__ = importlib.util.find_spec(module[:end]).submodule_search_locations
    sys.modules[module[:end]] = package
import reasoning_gym.coaching  # imports the factory, which cannot be imported first
importlib.import_module(module)
from reasoning_gym.factory import create_dataset
dataset = create_dataset(job["task"], size=1, seed=job["seed"], **job["parameters"])
entry = dataset[0]
if hashlib.blake2b(entry["question"].encode(), digest_size=16).hexdigest() != job["digest"]:
    sys.exit("the regenerated question differs")
score = dataset.score_answer(job["answer"], entry)
print(job["token"], bool(score >= 1), file=out)
"""


@dataclass(frozen=True, slots=True)
class TaskScorer:
    """The scorer of a reasoning-gym task, with what regenerates its row.

    Args:
        parameters: as JSON.
        digest: of the question; the answer may differ by process.
    """

    module: str
    task: str
    parameters: str
    seed: int
    digest: str

    @property
    def name(self) -> str:
        """Return `reasoning_gym:countdown`."""
        return f"reasoning_gym:{self.task}"


def task_scorer(dataset: Any, item: Mapping[str, Any], task: str, parameters: Mapping[str, Any], seed: int) -> str:
    """Return the `TaskScorer` of a data set's first item as JSON."""
    digest = hashlib.blake2b(item["question"].encode(), digest_size=16).hexdigest()
    return json.dumps(asdict(TaskScorer(type(dataset).__module__, task, json.dumps(parameters), seed, digest)))


def scorer_of(meta: str | None) -> str | None:
    """Return the scorer in a generated row's `meta`: a function in its generator's file, or a task's scorer as JSON."""
    if meta is None or '"judged_by"' not in meta:
        return None
    fields = json.loads(meta)
    is_generated = {"level", "seed"} <= fields.keys() and fields["judged_by"] == BY_GENERATOR
    return fields.get("scorer") if is_generated else None


def require_scorer(scorer: str | None, problem: str) -> None:
    """Raise `ConfigError` if a scorer needs reasoning-gym and it is not installed."""
    from curation.extras import require_extra

    if scorer is not None and scorer.startswith("{"):
        require_extra("procedural", f"problem {problem}, which its task's own scorer judges,")


def is_scorer(value: Any) -> bool:
    """Return whether an object is a function score(row, answer)."""
    return inspect.isfunction(value) and [*inspect.signature(value).parameters] == ["row", "answer"]


@lru_cache(maxsize=4096)
def scored(plugin: Plugin, statement: str | None, reference: str, answer: str) -> bool | str | None:
    """Return whether an answer is right, None in doubt, or the failure."""
    from curation.verify.programs.tools import wants_numpy
    from curation.verify.sandbox import Limits

    text, name, score = plugin.path.read_text(encoding="utf-8"), plugin.path.name, plugin.value.__name__
    job = {"row": {"statement": statement, "answer": reference}, "answer": answer}
    program = _PROGRAM.format(text=text, name=name, score=score)
    limits = Limits(cpu_s=2.0, memory_mb=512)
    return _run_scorer(f"{name}: {score}", program, job, limits, numpy=wants_numpy(text))


@lru_cache(maxsize=4096)
def scored_by_task(scorer: TaskScorer, answer: str) -> bool | str | None:
    """Return whether an answer is right by its task's scorer, or the failure."""
    from curation.extras import has_extra
    from curation.verify.sandbox import Limits

    if not has_extra("procedural"):
        return f"{scorer.name}: reasoning-gym is not installed: pip install 'goldilocks-rl[procedural]'"
    job = {**asdict(scorer), "parameters": json.loads(scorer.parameters), "answer": answer}
    return _run_scorer(scorer.name, _TASK_PROGRAM, job, Limits(cpu_s=10.0, memory_mb=1024), tasks=True)


@cache
def load_tasks() -> None:
    """Start the sandbox of tasks, so that no limit counts its slow import of sympy."""
    from curation.verify.sandbox import Limits

    list(_sandbox().run_python("", [b""], Limits(), tasks=True))


def _run_scorer(
    name: str, program: str, job: Mapping[str, Any], limits: Limits, *, numpy: bool = False, tasks: bool = False
) -> bool | str | None:
    """Return a program's verdict or failure; the token is secret from an answer that the scorer executes."""
    from curation.verify.programs.running import failure_of

    token = secrets.token_hex(16)
    content = json.dumps({**job, "token": token}).encode()
    (ran,) = _sandbox().run_python(program, [content], limits, numpy=numpy, tasks=tasks)
    if (failure := failure_of(ran)) is not None:
        return f"{name}: {failure[1]}"
    verdicts = {f"{token} {verdict}\n".encode(): verdict for verdict in (True, False, None)}
    return verdicts.get(ran.stdout, f"{name}: it printed something other than a verdict")


@cache
def _sandbox() -> Sandbox:
    from curation.verify.sandbox import Sandbox

    return Sandbox(workers=1)
