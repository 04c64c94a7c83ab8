"""What programs say in words: names and docstrings, without code and examples; prose as it stands."""

import polars as pl

from curation.filters.decontamination.programs import program_text, program_texts

PYTHON = '''from typing import List

def has_close_elements(numbers: List[float], threshold: float) -> bool:
    """ Check if in given list of numbers, are any two numbers closer to each other than
    given threshold.
    >>> has_close_elements([1.0, 2.0, 3.0], 0.5)
    False
    """
    for number in numbers:  # compares all
        pass
'''
JAVASCRIPT = """Here's how it can be translated to JavaScript:

```javascript
function nearElements(list) {
    /*
     * Tells whether two numbers of a list are nearer than a limit.
     * Examples:
     * nearElements([1, 2]) -> false
     */
    return false;
}
```
It loops over the list.
"""


def test_docstrings_without_their_examples() -> None:
    said = "has close elements. Check if in given list of numbers, are any two numbers closer to each other than given"
    assert program_text(PYTHON) == f"{said} threshold."


def test_block_comments_of_other_languages() -> None:
    assert program_text(JAVASCRIPT) == "near elements. Tells whether two numbers of a list are nearer than a limit."


def test_prose_and_code_that_says_nothing_stay_and_so_do_nulls() -> None:
    prose = "Write a function to find the shared elements of two lists.\nassert f((3, 4)) == 3"
    for text in (prose, "", "def f(x):\n    return x"):
        assert program_text(text) == text
    assert program_texts(pl.Series("s", [None, PYTHON, "a"])).to_list() == [None, program_text(PYTHON), "a"]
