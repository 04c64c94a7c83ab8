"""Test programs: what a model is asked, and the programs found in its answer."""

from curation.questions.test_programs import TestPrograms, programs_in, validators_in


def test_programs_of_a_response() -> None:
    said = "<think>```python\nno\n```</think>\n```python\nprint(1)\n```\nand\n```py\nassert input()\n```\n"
    assert programs_in(said) == TestPrograms("print(1)\n", "assert input()\n")
    assert programs_in("```python\nprint(1)\n```") == TestPrograms("print(1)\n", None)
    assert programs_in("no code") is None
    (validator,) = validators_in([said, said, "no code"])
    assert (validator.sources, validator.accepts) == ({"validator1.py": "assert input()\n"}, 0)
    assert programs_in("<think>```python\nprint(1)\n```") is None  # a draft
    assert programs_in("- One:\n  ```python\n  print(1)\n  ```") == TestPrograms("print(1)\n", None)
