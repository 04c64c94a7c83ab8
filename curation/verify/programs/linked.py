"""Judges C++ functions by a separately compiled test program, linked with them.

Tests pass if they write a secret word, new per judge process; a submission could forge it by searching its memory, but
stays in the sandbox.
"""

from __future__ import annotations

import hashlib
import re
import secrets

from curation.verify.programs.problem import CaseRun, CodeProblem, CodeVerdict, Submission
from curation.verify.programs.running import failure_of
from curation.verify.programs.toolchain import CPP_FLAGS
from curation.verify.programs.tools import Program, Runner, Unready, ready
from curation.verify.sandbox import Limits

_SECRET = secrets.token_bytes(32)
_MAIN = re.compile(r"\bint\s+main\s*\(\s*(?:void)?\s*\)")
_BOOST_ANY = b"""#pragma once
#include <any>
namespace boost { using std::any; using std::any_cast; using bad_any_cast = std::bad_any_cast; }
"""
"""Replaces the one Boost header that HumanEval-X uses where Boost is not installed."""


def run_linked(runner: Runner, problem: CodeProblem, submission: Submission) -> list[CaseRun] | Unready:
    """Link and run the test program; BROKEN if it does not end with ``main``."""
    tests = problem.function
    assert tests is not None
    assert tests.program is not None
    word = hashlib.blake2b(submission.code.encode("utf-8", "surrogateescape"), key=_SECRET, digest_size=16).digest()
    unit = _test_unit(prototype(tests.setup), tests.program, word)
    if unit is None:
        return Unready(CodeVerdict.BROKEN, "the C++ test program does not end with its main function")
    sources = {
        "tests.cpp": unit.encode(),
        "solution.cpp": submission.code.encode("utf-8", "surrogateescape"),
        "boost/any.hpp": _BOOST_ANY,
    }
    flags = (*CPP_FLAGS, "-idirafter", ".", "-Wl,-z,muldefs")
    libraries = ("-lcrypto",) if "openssl/" in submission.code else ()
    program = ready(runner.cpp(sources, ("tests.cpp", "solution.cpp", *libraries), flags), submission.code)
    if not isinstance(program, Program):
        return program
    limits = Limits(cpu_s=problem.cpu_s, memory_mb=problem.memory_mb, output_bytes=16 << 20)
    (ran,) = runner.run(program, [b""], limits, processes=problem.processes)
    outcome = failure_of(ran)
    if outcome is None:
        passed = ran.stdout.endswith(word.hex().encode())
        outcome = (CodeVerdict.AC, "") if passed else (CodeVerdict.RTE, "it ended the process before the tests had")
    elif b"Assertion" in ran.stderr and b"tests.cpp" in ran.stderr:
        outcome = CodeVerdict.WA, ran.stderr[:300].decode("utf-8", "replace").strip()
    return [CaseRun(0, outcome[0], ran.cpu_s, ran.wall_s, ran.memory_mb, outcome[1])]


def prototype(declaration: str) -> str:
    r"""Return a C++ prompt with its open last function as a declaration.

    Example: ``prototype("#include<string>\nint f(int x){\n")`` is ``"#include<string>\nint f(int x);\n"``
    """
    depth, opened = 0, None
    for place, letter in enumerate(declaration):
        if letter == "{":
            opened = place if depth == 0 else opened
            depth += 1
        elif letter == "}":
            depth -= 1
    return declaration if depth <= 0 or opened is None else f"{declaration[:opened].rstrip()};\n"


def _test_unit(declaration: str, program: str, word: bytes) -> str | None:
    """Return the tests as a function with a ``main`` that writes the word."""
    text = program.rstrip()
    if not _MAIN.search(text) or not text.endswith("}"):
        return None
    text = _MAIN.sub("static int goldilocks_tests()", text[:-1], count=1) + "\nreturn 0;\n}\n"
    mask = hashlib.blake2b(word, digest_size=16).digest()
    hidden = ",".join(str(byte ^ mask_byte) for byte, mask_byte in zip(word, mask, strict=True))
    return f"""{declaration}
{text}
#include <unistd.h>
#include <cstdio>
int main() {{
    int code = goldilocks_tests();
    fflush(stdout);
    if (code == 0) {{
        static const volatile unsigned char hidden[] = {{{hidden}}};
        static const volatile unsigned char mask[] = {{{",".join(map(str, mask))}}};
        char word[33];
        for (int i = 0; i < 16; i++) snprintf(word + 2 * i, 3, "%02x", hidden[i] ^ mask[i]);
        if (write(1, word, 32) != 32) code = 1;
    }}
    _exit(code);
}}
"""
