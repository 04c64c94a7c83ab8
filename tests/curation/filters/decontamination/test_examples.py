"""Examples of programs are read in the forms in which ports write them; what cannot be read is none."""

from __future__ import annotations

import pytest

from curation.filters.decontamination.examples import read_examples

FORMS = {
    'def near(xs, d):\n    """\n    >>> near([1.5, 2.5], 0.7)\n    False\n    """': (([1.5, 2.5], 0.7), False),
    'def swap(a, b):\n    """\n    swap([7, 8], [5]) => "YES"\n    """': (([7, 8], [5]), "YES"),
    "def f(x):\n    # f('Hey') gives 'eHy'\n    pass": (("Hey",), "eHy"),
    "def f(x, y):\n    # f((1, 2), {3}) == None\n    pass": (([1, 2], [3]), None),
    "function sum(xs) {}\nconsole.log(sum([1, 2])); // Outputs: 3": (([1, 2],), 3),
    "/**\n * @example\n * // returns {total: 3, times: 2}\n * sum([1, 2]);\n */\nfunction sum(xs) {}": (
        ([1, 2],),
        {"total": 3, "times": 2},
    ),
    '#include <stdio.h>\nint sum(int *xs, int n) {\n}\nint xs[] = {1, 2};\nprintf("%d", sum(xs, 2)); // 3': (
        ([1, 2],),
        3,
    ),
    "void grow(int xs[], int n) {\n}\nint arr[] = {3, 1};\ngrow(arr, n); // Output: 4 12 20": (([3, 1],), [4, 12, 20]),
    "def top(xs, k):\n  '''\n  Input: xs = [2, -1, 6], k = 2\n  Output: [2, 6]\n  '''": (([2, -1, 6], 2), [2, 6]),
    'For input_str = "abcd", chars = "bd", the output should be ("ac", False)': (("abcd", "bd"), ["ac", False]),
    "assert is_not_prime(35) == True": ((35,), True),
    "Add two numbers.\n\nSample Input 1\n\n1 2\n\nSample Output 1\n\n3\n\nNote\nnothing": (("1 2\n",), "3\n"),
}


@pytest.mark.parametrize("text", FORMS, ids=range(len(FORMS)))
def test_an_example_is_read(text: str) -> None:
    (example,) = [example for example in read_examples(text) if example.is_told]
    assert (example.args, example.expected) == FORMS[text]


def test_a_call_whose_value_is_not_told_has_its_arguments() -> None:
    (example,) = read_examples("def f(x):\n    pass\nprint(f([1, 2]))")
    assert (example.name, example.args, example.is_told) == ("f", ([1, 2],), False)


@pytest.mark.parametrize(
    "text",
    ["def f(x):\n    return f(x - 1) + 1", "Is f(x) = 3 a function?", "int n = 6;\nint output[n];", "", "f(1, 2"],
)
def test_code_and_prose_are_no_examples(text: str) -> None:
    assert read_examples(text) == []
