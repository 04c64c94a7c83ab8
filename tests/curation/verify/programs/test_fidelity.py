# ruff: noqa: E501  programs stand on one line each
"""Every correct way to read and to print is accepted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from curation.verify.programs.extraction import CodeLang
from curation.verify.programs.judge import judge_programs
from curation.verify.programs.problem import CodeProblem, CodeTest, CodeVerdict, ProgramResult, Submission
from curation.verify.programs.tools import Runner

TESTS = tuple(
    CodeTest(text.encode(), answer.encode())
    for text, answer in (
        ("3\n1 2 3\n", "6\n"),
        ("3\n1 2 3", "6"),
        ("1\r\n5\r\n", "5\n"),
        ("2\n-1   1  \n\n", "0\n"),
    )
)
SUM = CodeProblem("sum", TESTS, memory_mb=400)

PYTHON = {
    "input": "n = int(input())\nprint(sum(map(int, input().split())))",
    "for line in stdin": "import sys\nlines = [line for line in sys.stdin]\nprint(sum(map(int, lines[1].split())))",
    "stdin.readline": "import sys\nsys.stdin.readline()\nprint(sum(map(int, sys.stdin.readline().split())))",
    "stdin.read": "import sys\nprint(sum(map(int, sys.stdin.read().split()[1:])))",
    "stdin.readlines": "import sys\nprint(sum(map(int, sys.stdin.readlines()[1].split())))",
    "buffer.readline": "import sys\nread = sys.stdin.buffer.readline\nread()\nprint(sum(map(int, read().split())))",
    "buffer.read": "import sys\nprint(sum(map(int, sys.stdin.buffer.read().split()[1:])))",
    "iterating the buffer": "import sys\n_, line, *_ = sys.stdin.buffer\nprint(sum(map(int, line.split())))",
    "os.read": "import os\nprint(sum(map(int, os.read(0, 1 << 20).split()[1:])))",
    "os.read of fstat": "import os\nprint(sum(map(int, os.read(0, os.fstat(0).st_size).split()[1:])))",
    "open(0)": "print(sum(map(int, open(0).read().split()[1:])))",
    "open(0, 'rb')": "print(sum(map(int, open(0, 'rb').read().split()[1:])))",
    "fileinput": "import fileinput\nlines = list(fileinput.input())\nprint(sum(map(int, lines[1].split())))",
    "iter of input": "n, line = int(input()), next(iter(input, None))\nprint(sum(map(int, line.split())))",
    "io.BytesIO": "import io, os\ninput = io.BytesIO(os.read(0, 1 << 20)).readline\ninput()\nprint(sum(map(int, input().split())))",
    "exhausted input": (
        "lines = []\ntry:\n    while True:\n        lines.append(input())\nexcept EOFError:\n    pass\n"
        "print(sum(map(int, lines[1].split())))"
    ),
    "a thread with a deep stack": (
        "import sys, threading\nsys.setrecursionlimit(1 << 20)\nthreading.stack_size(1 << 27)\n"
        "def down(n): return 0 if n == 0 else down(n - 1)\n"
        "def main():\n    down(20000)\n    input()\n    print(sum(map(int, input().split())))\n"
        "thread = threading.Thread(target=main)\nthread.start()\nthread.join()"
    ),
    "main guard": "def main():\n    input()\n    print(sum(map(int, input().split())))\nif __name__ == '__main__':\n    main()",
    "stdout.write": "import sys\nsys.stdin.readline()\nsys.stdout.write(str(sum(map(int, input().split()))))",
    "buffer.write": "import sys\ninput()\nsys.stdout.buffer.write(b'%d' % sum(map(int, input().split())))",
    "os.write": "import os\ninput()\nos.write(1, str(sum(map(int, input().split()))).encode())",
    "exit(0)": "input()\nprint(sum(map(int, input().split())))\nexit(0)",
    "sys.exit": "import sys\ninput()\nprint(sum(map(int, input().split())))\nsys.exit()",
    "redirected print": "import sys\ninput()\nprint(sum(map(int, input().split())), file=sys.stdout, flush=True)",
    "atexit": "import atexit, io\nout = io.StringIO()\natexit.register(lambda: print(out.getvalue()))\ninput()\n"
    "out.write(str(sum(map(int, input().split()))))",
    "numbers on standard error": "import sys\ninput()\nprint(7, file=sys.stderr)\nprint(sum(map(int, input().split())))",
    "dataclasses and typing": (
        "from dataclasses import dataclass\nfrom typing import List\n@dataclass\nclass Row:\n    values: List[int]\n"
        "input()\nprint(sum(Row(list(map(int, input().split()))).values))"
    ),
}

HEAD = "#include <bits/stdc++.h>\nusing namespace std;\n"
CPP = {
    "cin": HEAD + "int main() { int n, a, s = 0; cin >> n; while (n--) { cin >> a; s += a; } cout << s << endl; }",
    "scanf": "#include <cstdio>\nint main() { int n, a, s = 0; scanf(\"%d\", &n); while (n--) { scanf(\"%d\", &a); s += a; } "
    'printf("%d", s); return 0; }',
    "getline": HEAD + "int main() { string l; getline(cin, l); getline(cin, l); stringstream in(l); int a, s = 0; "
    'while (in >> a) s += a; cout << s << "\\n"; }',
    "untied cin": HEAD + "int main() { ios::sync_with_stdio(false); cin.tie(nullptr); int n, a, s = 0; cin >> n; "
    "while (cin >> a) s += a; cout << s; }",
    "fread": HEAD + "static char b[1 << 16]; int main() { size_t k = fread(b, 1, sizeof b - 1, stdin); b[k] = 0; "
    "istringstream in(b); int n, a, s = 0; in >> n; while (in >> a) s += a; cout << s; }",
    "getchar": HEAD + "int main() { int c, s = 0, x = 0, g = 1, k = -1, d = 0; do { c = getchar(); if (c == '-') g = -1; "
    "else if (isdigit(c)) { x = 10 * x + c - 48; d = 1; } else { if (d) { if (k++ >= 0) s += g * x; } x = 0; g = 1; d = 0; } } "
    'while (c != EOF); printf("%d\\n", s); }',
    "read(0)": HEAD + "#include <unistd.h>\nint main() { char b[4096]; ssize_t k = read(0, b, 4095); b[k] = 0; stringstream in(b); "
    "int n, a, s = 0; in >> n; while (in >> a) s += a; cout << s; }",
    "istream_iterator": HEAD + "int main() { vector<int> v{istream_iterator<int>(cin), {}}; "
    "cout << accumulate(v.begin() + 1, v.end(), 0); }",
    "C++20": HEAD + "#include <ranges>\nint main() { int n; cin >> n; auto v = views::istream<int>(cin); int s = 0; "
    "for (int a : v) s += a; cout << s; }",
    "exit(0)": HEAD + "int main() { int n, a, s = 0; cin >> n; while (cin >> a) s += a; cout << s << endl; exit(0); }",
    "a thread": HEAD + "int main() { int n, a, s = 0; thread t([&] { cin >> n; while (cin >> a) s += a; }); t.join(); cout << s; }",
    "freopen is not needed": HEAD + "int main() { cin.exceptions(ios::badbit); int n, a, s = 0; cin >> n; "
    "for (int i = 0; i < n && cin >> a; i++) s += a; cout << s << string(3, ' ') << '\\n'; }",
}  # fmt: skip


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner(2) as runner:
        yield runner


def verdict(runner: Runner, problem: CodeProblem, lang: CodeLang, code: str) -> ProgramResult:
    (result,) = judge_programs(runner, [(problem, Submission(lang, code))])
    return result


@pytest.mark.parametrize("way", PYTHON)
def test_python_reads_and_prints(runner: Runner, way: str) -> None:
    result = verdict(runner, SUM, CodeLang.PYTHON, PYTHON[way])
    assert result.verdict is CodeVerdict.AC, result


@pytest.mark.parametrize("way", CPP)
def test_cpp_reads_and_prints(runner: Runner, way: str) -> None:
    result = verdict(runner, SUM, CodeLang.CPP, CPP[way])
    assert result.verdict is CodeVerdict.AC, result


def test_trailing_spaces_and_new_lines(runner: Runner) -> None:
    problem = CodeProblem("two", (CodeTest(b"", b"1 2\n"),))
    for code in (
        "print('1 2 ')",
        "print('1 2\\n\\n')",
        "print('1 2', end='')",
        "print(1); print(2)",
        "print('\\t1  2')",
    ):
        assert verdict(runner, problem, CodeLang.PYTHON, code).verdict is CodeVerdict.AC, code
    for code in ("print(12)", "print('1 2 3')", "print(1)", "pass", "print('1 2\\0')"):
        assert verdict(runner, problem, CodeLang.PYTHON, code).verdict is CodeVerdict.WA, code


def test_ten_megabytes_in_and_out(runner: Runner) -> None:
    text = b"\n".join(b"%d" % number for number in range(1_400_000)) + b"\n"
    assert len(text) > 10_000_000
    problem = CodeProblem("copy", (CodeTest(text, text),), cpu_s=10.0)
    for lang, code in (
        (CodeLang.PYTHON, "import sys\nsys.stdout.write(sys.stdin.read())"),
        (CodeLang.CPP, HEAD + 'int main() { int a; while (scanf("%d", &a) == 1) printf("%d ", a); }'),
    ):
        result = verdict(runner, problem, lang, code)
        assert result.verdict is CodeVerdict.AC, result


def test_nul_and_invalid_utf_8_in_output(runner: Runner) -> None:
    problem = CodeProblem("bytes", (CodeTest(b"\xff\x00\n", b"\xff\x00\n"),))
    copy = "import sys\nsys.stdout.buffer.write(sys.stdin.buffer.read())"
    assert verdict(runner, problem, CodeLang.PYTHON, copy).verdict is CodeVerdict.AC
    other = "import sys\nsys.stdout.buffer.write(b'\\xfe\\x00')"
    assert verdict(runner, problem, CodeLang.PYTHON, other).verdict is CodeVerdict.WA
