"""Test programs: what a model is asked, and the programs found in its answer."""

from curation.questions.test_programs import COUNT, TestPrograms, programs_in, validators_in
from curation.questions.test_programs import PROMPT as TESTING
from curation.records import Domain, PromptRequest


def test_programs_of_a_response() -> None:
    said = "<think>```python\nno\n```</think>\n```python\nprint(1)\n```\nand\n```py\nassert input()\n```\n"
    assert programs_in(said) == TestPrograms("print(1)\n", "assert input()\n")
    assert programs_in("```python\nprint(1)\n```") == TestPrograms("print(1)\n", None)
    assert programs_in("no code") is None
    (validator,) = validators_in([said, said, "no code"])
    assert (validator.sources, validator.accepts) == ({"validator1.py": "assert input()\n"}, 0)
    assert programs_in("<think>```python\nprint(1)\n```") is None  # a draft
    assert programs_in("- One:\n  ```python\n  print(1)\n  ```") == TestPrograms("print(1)\n", None)


def test_the_prompt_holds_the_statement_and_the_count() -> None:
    asked = PromptRequest("p", "Add {count} numbers.", Domain.CODE, "en", {COUNT: "5"})
    text = TESTING.messages(asked)[-1]["content"]
    assert "Add {count} numbers." in text
    assert "1 <= k <= 5" in text
