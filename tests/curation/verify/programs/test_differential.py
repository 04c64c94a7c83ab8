"""Programs of many styles end and print in every box as they do outside.

The truth is a run with a bare interpreter, or of what the machine's g++ makes; nothing is expected by hand. A C++
program is compiled once, in the box, unless the box refuses it or takes it for one of another standard. A busy machine,
and programs that others wrote, are for the gates `programs/foreign-programs` and `-busy`, every style on every rung for
`programs/styles`. A row of ``styles.jsonl`` may have what the program needs: processes, modes and owners that it can
set, or namespaces.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from curation.records import VerifierError
from curation.verify.programs.judge import judge_programs
from curation.verify.programs.problem import CodeLang, CodeProblem, CodeTest, CodeVerdict, Submission
from curation.verify.programs.tools import Program, Runner
from curation.verify.sandbox import Ending, Limits
from tests.curation.verify.programs.differential import Bare, Seen, differences
from tests.curation.verify.programs.foreign_styles import Style
from tests.places import IS_WHOLE

RUNGS = ("namespaces", "user-namespace", "landlock")
ROWS = [json.loads(line) for line in Path(__file__).with_name("styles.jsonl").read_text("utf-8").splitlines()]
STYLES = {
    f"{row['lang']}: {row['name']}": Style(
        CodeLang(row["lang"]), row["code"], row.get("stdin", ""), row.get("standard", 20)
    )
    for row in ROWS
}
NEEDS = {f"{row['lang']}: {row['name']}": {*row.get("needs", ())} for row in ROWS}
QUICK = [f"{row['lang']}: {row['name']}" for row in ROWS if row.get("quick")]


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Bare:
    return Bare(tmp_path_factory.mktemp("bare"))


@pytest.fixture(scope="module")
def runner(request: pytest.FixtureRequest) -> Iterator[Runner]:
    """One slot on one rung."""
    with Runner(1, rung=request.param) as runner:
        try:
            runner.open()
        except VerifierError as why:
            pytest.skip(f"{why}")
        yield runner


def corpus(runner: Runner) -> dict[str, Style]:
    """Return the styles that need nothing which the box states that it lacks."""
    box = runner.box
    lacking = {"namespaces"} if box.rung == "landlock" else set()
    lacking |= (set() if box.forks else {"processes"}) | (set() if box.owns else {"modes"})
    assert box.forks or "programs cannot start processes" in box.description
    assert box.owns or "modes, times and owners of files cannot be changed" in box.description
    return {name: style for name, style in STYLES.items() if not NEEDS[name] & lacking}


@pytest.mark.slow
def test_what_a_weaker_rung_cannot_do_is_told_with_the_verdict() -> None:
    tests = (CodeTest(b"", b"3"),)
    with Runner(1, rung="landlock") as runner:
        try:
            runner.open()
        except VerifierError as why:
            pytest.skip(f"{why}")
        jobs = [
            (
                CodeProblem(name, tests, processes=name == "fork and wait"),
                Submission(CodeLang.CPP, STYLES[f"cpp: {name}"].code),
            )
            for name in ("fork and wait", "tmpfile", "fs::permissions")
        ]
        owns = runner.box.owns
        forked, filed, shut = judge_programs(runner, jobs)
    assert forked.verdict is CodeVerdict.WA
    assert forked.how.endswith("; it may need child processes, which rung 'landlock' does not allow here")
    assert filed.verdict is CodeVerdict.RTE
    assert filed.how.endswith("; it may need files in /tmp, which rung 'landlock' does not allow")
    assert shut.verdict is CodeVerdict.WA
    assert owns or "; it may need to change modes or times of files" in shut.how


@pytest.mark.slow
@pytest.mark.parametrize("runner", [None], indirect=True, ids=["strongest"])
def test_what_is_easily_got_wrong_is_as_outside(runner: Runner, bare: Bare) -> None:
    known = corpus(runner)
    assert len(QUICK) == 20
    assert len(STYLES) >= 350
    quick = {name: known[name] for name in QUICK if name in known}
    assert differences(runner, truth(runner, bare, quick)) == {}


def truth(runner: Runner, bare: Bare, styles: dict[str, Style]) -> dict[str, tuple[Style, Seen]]:
    """Return what becomes of programs outside."""
    found = {}
    for name, style in styles.items():
        program = runner.prepare(Submission(style.lang, style.code))
        is_same = isinstance(program, Program) and program.standard == f"gnu++{style.standard}"
        found[name] = style, bare.run(style, program.artifact if is_same else None)
    return found


THREADS = {
    CodeLang.PYTHON: """
import ctypes, sys, threading
libc, attributes, size = ctypes.CDLL(None), ctypes.create_string_buffer(128), ctypes.c_size_t()
libc.pthread_getattr_default_np(attributes)
libc.pthread_attr_getstacksize(attributes, ctypes.byref(size))
barrier = threading.Barrier(64)
threads = [threading.Thread(target=barrier.wait) for _ in range(64)]
for thread in threads: thread.start()
for thread in threads: thread.join()
sys.setrecursionlimit(10**6)
def f(n): return 0 if n == 0 else max(map(f, [n - 1])) + 1
print(size.value >> 20, f(200000))
""",
    CodeLang.CPP: """
#include <pthread.h>
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>
int f(int n) { volatile char a[1024] = {1}; return n == 0 ? 0 : f(n - 1) + a[0]; }
int main() {
    pthread_attr_t attributes; size_t size; std::atomic<int> ready{0}; std::vector<std::thread> threads;
    pthread_getattr_default_np(&attributes), pthread_attr_getstacksize(&attributes, &size);
    for (int i = 0; i < 64; i++) threads.emplace_back([&] { ready++; while (ready < 64) std::this_thread::yield(); });
    for (auto &thread : threads) thread.join();
    std::printf("%zu %d", size >> 20, f(200000));
}""",
}
"""Says the size of a thread's stack, has 64 threads at once, and recurs in the main one over some 200 MiB."""


@pytest.mark.parametrize("lang", CodeLang)
@pytest.mark.parametrize(
    "runner",
    [pytest.param(rung, marks=pytest.mark.slow if rung != RUNGS[0] else ()) for rung in RUNGS],
    indirect=True,
)
def test_threads_have_stacks_as_outside_and_the_main_one_what_memory_there_is(runner: Runner, lang: CodeLang) -> None:
    program = runner.prepare(Submission(lang, THREADS[lang]))
    assert isinstance(program, Program)
    (ran,) = runner.run(program, [b""], Limits(cpu_s=8.0, memory_mb=256))
    assert (ran.ending, ran.stdout.split()) == (Ending.EXITED, [b"8", b"200000"]), ran
    assert ran.memory_mb > 100


@pytest.mark.slow
@pytest.mark.parametrize("runner", RUNGS, indirect=True)
def test_no_style_is_judged_otherwise_than_outside(runner: Runner, bare: Bare) -> None:
    """Some styles on each rung, others on another; all on every rung for the gate `programs/styles`."""
    known, part = corpus(runner), RUNGS.index(runner.box.rung)
    some = [*known] if IS_WHOLE else [*known][part :: (12, 40, 40)[part]]
    assert differences(runner, truth(runner, bare, {name: known[name] for name in some})) == {}
