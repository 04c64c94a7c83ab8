"""The demo's sound problems: a statement, three right programs in Python, one in C++, and wrong ones.

All read a number n and n whole numbers. Everything is hand-written for this project. Expected outputs come from
`Task.solve`, written apart from the programs, which are text here and run in the sandbox only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

READ = "n = int(input())\na = list(map(int, input().split()))\n"
READ_CPP = (
    "#include <bits/stdc++.h>\nusing namespace std;\nint main() {\n    int n;\n    cin >> n;\n"
    "    vector<long long> a(n);\n    for (auto& x : a) cin >> x;\n"
)
LIMITS = (
    "The first line holds a whole number $n$ with $1 \\le n \\le 50$, the second line $n$ whole numbers $a_i$ with "
)
VALUES = "$-1000 \\le a_i \\le 1000$, separated by single spaces."


@dataclass(frozen=True, slots=True)
class Task:
    """A problem. ``solve`` gives the answer here; ``right`` and ``wrong`` are bodies of Python programs behind `READ`,
    ``cpp`` one behind `READ_CPP`."""

    key: str
    ask: str
    solve: Callable[[list[int]], int]
    right: tuple[str, ...]
    wrong: tuple[str, ...]
    cpp: str

    @property
    def statement(self) -> str:
        """Return the whole statement."""
        return f"{self.ask}\n\nInput: {LIMITS}{VALUES}\n\nOutput: one line with the answer."

    def python(self, body: str) -> str:
        """Return a whole Python program with this body."""
        return f"{READ}{body}\n"

    @property
    def cpp_program(self) -> str:
        """Return the whole C++ program."""
        return f"{READ_CPP}    {self.cpp}\n}}\n"

    def answer(self, values: list[int]) -> str:
        """Return the expected output for these values."""
        return f"{self.solve(values)}\n"


def _stretches(a: list[int]) -> list[list[int]]:
    return [a[i:j] for i in range(len(a)) for j in range(i + 1, len(a) + 1)]


def _pairs(a: list[int]) -> list[tuple[int, int]]:
    return [(a[i], a[j]) for j in range(len(a)) for i in range(j)]


def _is_peak(a: list[int], i: int) -> bool:
    return all(a[i] > a[j] for j in (i - 1, i + 1) if 0 <= j < len(a))


def _climbs(a: list[int]) -> bool:
    return all(before < after for before, after in pairwise(a))


TASKS: tuple[Task, ...] = (
    Task(
        "evens",
        "Print the sum of all even numbers among the given ones; it is 0 where none is even.",
        lambda a: sum(x for x in a if x % 2 == 0),
        (
            "print(sum(x for x in a if x % 2 == 0))",
            "t = 0\nfor x in a:\n    if not x & 1:\n        t += x\nprint(t)",
            "print(sum(filter(lambda x: x % 2 == 0, a)))",
        ),
        ("print(sum(x for x in a if x % 2 == 0 and x > 0))", "print(sum(a[::2]))"),
        "long long t = 0; for (auto x : a) if (x % 2 == 0) t += x; cout << t << endl;",
    ),
    Task(
        "spread",
        "Print how far the greatest of the given numbers is from the least one.",
        lambda a: max(a) - min(a),
        ("print(max(a) - min(a))", "a.sort()\nprint(a[-1] - a[0])", "b = sorted(a)\nprint(b[n - 1] - b[0])"),
        ("print(max(a) - abs(min(a)))", "print(a[-1] - a[0])"),
        "cout << *max_element(a.begin(), a.end()) - *min_element(a.begin(), a.end()) << endl;",
    ),
    Task(
        "distinct",
        "Print how many different numbers there are among the given ones.",
        lambda a: len(set(a)),
        (
            "print(len(set(a)))",
            "a.sort()\nprint(1 + sum(a[i] != a[i - 1] for i in range(1, n)))",
            "seen = []\nfor x in a:\n    if x not in seen:\n        seen.append(x)\nprint(len(seen))",
        ),
        ("print(1 + sum(a[i] != a[i - 1] for i in range(1, n)))", "print(n)"),
        "cout << set<long long>(a.begin(), a.end()).size() << endl;",
    ),
    Task(
        "run",
        "Print the length of the longest stretch of neighbouring numbers that are all equal.",
        lambda a: max(len(b) for b in _stretches(a) if len(set(b)) == 1),
        (
            "best = now = 1\nfor i in range(1, n):\n    now = now + 1 if a[i] == a[i - 1] else 1\n"
            "    best = max(best, now)\nprint(best)",
            "from itertools import groupby\nprint(max(len(list(g)) for _, g in groupby(a)))",
            "best = 0\ni = 0\nwhile i < n:\n    j = i\n    while j < n and a[j] == a[i]:\n        j += 1\n"
            "    best = max(best, j - i)\n    i = j\nprint(best)",
        ),
        ("print(max(a.count(x) for x in a))",),
        "int b = 1, c = 1; for (int i = 1; i < n; i++) { c = a[i] == a[i-1] ? c + 1 : 1; b = max(b, c); } "
        "cout << b << endl;",
    ),
    Task(
        "stretch",
        "Choose a stretch of one or more neighbouring numbers whose sum is as great as possible. Print that sum.",
        lambda a: max(map(sum, _stretches(a))),
        (
            "best = now = a[0]\nfor x in a[1:]:\n    now = max(x, now + x)\n    best = max(best, now)\nprint(best)",
            "print(max(sum(a[i:j]) for i in range(n) for j in range(i + 1, n + 1)))",
            "low = s = 0\nbest = -10**9\nfor x in a:\n    s += x\n    best = max(best, s - low)\n"
            "    low = min(low, s)\nprint(best)",
        ),
        ("best = now = 0\nfor x in a:\n    now = max(0, now + x)\n    best = max(best, now)\nprint(best)",),
        "long long b = a[0], c = a[0]; for (int i = 1; i < n; i++) { c = max(a[i], c + a[i]); b = max(b, c); } "
        "cout << b << endl;",
    ),
    Task(
        "inversions",
        "Print the number of pairs $i < j$ for which the number at place $i$ is greater than the one at place $j$.",
        lambda a: sum(x > y for x, y in _pairs(a)),
        (
            "print(sum(a[i] > a[j] for i in range(n) for j in range(i + 1, n)))",
            "t = 0\nfor j in range(n):\n    for i in range(j):\n        t += a[i] > a[j]\nprint(t)",
            "from bisect import bisect_right, insort\ns = []\nt = 0\nfor x in a:\n"
            "    t += len(s) - bisect_right(s, x)\n    insort(s, x)\nprint(t)",
        ),
        ("print(sum(a[i] >= a[j] for i in range(n) for j in range(i + 1, n)))",),
        "int t = 0; for (int i = 0; i < n; i++) for (int j = i + 1; j < n; j++) t += a[i] > a[j]; cout << t << endl;",
    ),
    Task(
        "peaks",
        "A number is a peak where it is greater than each of its neighbours; the first and the last have one neighbour,"
        " and a single number is a peak. Print how many peaks there are.",
        lambda a: sum(_is_peak(a, i) for i in range(len(a))),
        (
            "b = [-10**9] + a + [-10**9]\nprint(sum(b[i - 1] < b[i] > b[i + 1] for i in range(1, n + 1)))",
            "t = 0\nfor i in range(n):\n    t += (i == 0 or a[i] > a[i - 1]) and (i == n - 1 or a[i] > a[i + 1])\n"
            "print(int(t))",
            "print(sum(all(a[i] > a[j] for j in (i - 1, i + 1) if 0 <= j < n) for i in range(n)))",
        ),
        ("print(sum(a[i - 1] < a[i] > a[i + 1] for i in range(1, n - 1)))",),
        "int t = 0; for (int i = 0; i < n; i++) t += (i == 0 || a[i] > a[i-1]) && (i == n - 1 || a[i] > a[i+1]); "
        "cout << t << endl;",
    ),
    Task(
        "squares",
        "Print the sum of the squares of the odd numbers among the given ones.",
        lambda a: sum(x * x for x in a if x % 2),
        (
            "print(sum(x * x for x in a if x % 2))",
            "t = 0\nfor x in a:\n    if x % 2 != 0:\n        t += x ** 2\nprint(t)",
            "print(sum(x * x for x in a) - sum(x * x for x in a if x % 2 == 0))",
        ),
        ("print(sum(x * x for x in a if x % 2 and x > 0))",),
        "long long t = 0; for (auto x : a) if (x % 2 != 0) t += x * x; cout << t << endl;",
    ),
    Task(
        "frequent",
        "Print the number that is given most often; of several such numbers, the smallest one.",
        lambda a: min(a, key=lambda x: (-a.count(x), x)),
        (
            "print(min(a, key=lambda x: (-a.count(x), x)))",
            "from collections import Counter\nc = Counter(a)\nm = max(c.values())\n"
            "print(min(x for x in c if c[x] == m))",
            "a.sort()\nprint(max(a, key=a.count))",
        ),
        ("print(max(a, key=a.count))",),
        "map<long long,int> c; for (auto x : a) c[x]++; long long b = a[0]; int m = 0; "
        "for (auto [x, k] : c) if (k > m) { m = k; b = x; } cout << b << endl;",
    ),
    Task(
        "alternating",
        "Add the first number, subtract the second, add the third, and so on to the end. Print the result.",
        lambda a: sum(a[::2]) - sum(a[1::2]),
        (
            "print(sum(a[::2]) - sum(a[1::2]))",
            "print(sum(x if i % 2 == 0 else -x for i, x in enumerate(a)))",
            "t = 0\nsign = 1\nfor x in a:\n    t += sign * x\n    sign = -sign\nprint(t)",
        ),
        ("print(abs(sum(a[::2]) - sum(a[1::2])))",),
        "long long t = 0; for (int i = 0; i < n; i++) t += i % 2 ? -a[i] : a[i]; cout << t << endl;",
    ),
    Task(
        "pairs",
        "Print the number of pairs $i < j$ whose numbers are equal.",
        lambda a: sum(x == y for x, y in _pairs(a)),
        (
            "print(sum(a[i] == a[j] for i in range(n) for j in range(i)))",
            "print(sum(a.count(x) - 1 for x in a) // 2)",
            "from collections import Counter\nprint(sum(c * (c - 1) // 2 for c in Counter(a).values()))",
        ),
        ("print(n - len(set(a)))",),
        "int t = 0; for (int i = 0; i < n; i++) for (int j = 0; j < i; j++) t += a[i] == a[j]; cout << t << endl;",
    ),
    Task(
        "climb",
        "Print the length of the longest stretch of neighbouring numbers in which each one is greater than the one "
        "before it.",
        lambda a: max(len(b) for b in _stretches(a) if _climbs(b)),
        (
            "best = now = 1\nfor i in range(1, n):\n    now = now + 1 if a[i] > a[i - 1] else 1\n"
            "    best = max(best, now)\nprint(best)",
            "print(max(j - i for i in range(n) for j in range(i + 1, n + 1) "
            "if all(a[k] < a[k + 1] for k in range(i, j - 1))))",
            "t = [1] * n\nfor i in range(1, n):\n    if a[i] > a[i - 1]:\n        t[i] = t[i - 1] + 1\nprint(max(t))",
        ),
        (
            "best = now = 1\nfor i in range(1, n):\n    now = now + 1 if a[i] >= a[i - 1] else 1\n"
            "    best = max(best, now)\nprint(best)",
        ),
        "int b = 1, c = 1; for (int i = 1; i < n; i++) { c = a[i] > a[i-1] ? c + 1 : 1; b = max(b, c); } "
        "cout << b << endl;",
    ),
)
"""The sound problems."""
