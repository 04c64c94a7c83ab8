"""The prompts for solving: the paper's ingredients in their order, and the form of the final answer."""

import pytest

from curation.config import LiveModel
from curation.prompts import PLAIN, SOLVE, plain_text, prompt_of
from curation.prompts.solving import BOXED, FENCED
from curation.records import Domain, PromptRequest


def asked(domain: Domain = Domain.MATH, lang: str = "en", **details: str) -> PromptRequest:
    return PromptRequest("1", "Find {x} in $2^{3} = x$.", domain, lang, details)


def test_the_system_prompt_holds_the_ingredients_in_their_order() -> None:
    told = [
        "user gives you a task",
        "inner monologue, until you have derived the final answer",
        "summary that stands on its own: succinct, yet with every critical step",
        "Markdown and LaTeX",
        "in the language of the task",
        "<think>",
        "scratch paper",
        "as casual as you like",
        "as much room as you need",
        "until you are confident of the answer",
        "</think>",
        "clear final answer",
        "Problem:",
    ]
    text = " ".join(SOLVE.system.split())
    assert [ingredient for ingredient in told if ingredient not in text] == []
    assert sorted(told, key=text.index) == told
    assert text.endswith("Problem:")
    assert "boxed" not in text  # in the paper it stands elsewhere; here, behind the problem


@pytest.mark.parametrize("lang", ["en", "fr", "es", "it", "de", "zh", "ru"])
def test_the_form_of_the_answer_is_told_in_the_problems_language(lang: str) -> None:
    system, user = SOLVE.messages(asked(lang=lang))
    assert (system["role"], user["role"]) == ("system", "user")
    assert user["content"] == f"Find {{x}} in $2^{{3}} = x$.\n\n{BOXED[lang]}"
    assert "\\boxed{}" in BOXED[lang]
    program = SOLVE.user(asked(Domain.CODE, lang, language="cpp"))
    assert "```cpp" in program
    assert "boxed" not in program
    assert "Markdown" in program
    assert len(set(BOXED.values())) == len(set(FENCED.values())) == 7


def test_the_plain_prompt_is_the_statement() -> None:
    messages = PLAIN.messages(asked())
    assert messages == [{"role": "user", "content": asked().statement}]
    assert plain_text(messages) == asked().statement + "\n"
    assert plain_text(SOLVE.messages(asked())) == f"{SOLVE.system}\n\n{SOLVE.user(asked())}\n"


def test_worked_examples_are_earlier_turns_in_the_words_of_the_prompt() -> None:
    example = {"statement": "What is 1 + 1?", "response": r"\boxed{2}"}
    shown = prompt_of(LiveModel.model_validate({"model": "m", "thinking": "none", "examples": (example,)}))
    system, *turns = shown.messages(asked())
    assert system["content"] == shown.system
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]
    assert turns[0]["content"] == turns[2]["content"].replace(asked().statement, "What is 1 + 1?")
    assert turns[1]["content"] == r"\boxed{2}"


def test_the_prompt_names_the_models_own_tags() -> None:
    own = prompt_of(LiveModel(model="m", thinking="[THINK]"))
    assert own.version == "solve@1 [THINK] [/THINK]"
    assert own.system.replace("[THINK]", "<think>").replace("[/THINK]", "</think>") == SOLVE.system
    assert prompt_of(LiveModel(model="m", thinking="[THINK]", prompt="plain")) is PLAIN
    assert prompt_of(LiveModel(model="m", thinking="<think>")) is SOLVE
