"""Texts that break off: nothing in them asks, whether a mark ends them or not."""

from __future__ import annotations

import pytest

from curation.config import StatementSettings
from curation.filters.statements import measure
from tests.curation.filters.statements.test_filtering import problems

BROKEN = {
    "en": "Natalia sold clips to 48 of her friends in April, and then she sold half as many clips in",
    "de": "Dax ging zu seiner Farm, um ein paar Äpfel zu pflücken, und fand halb so viele Käfer wie Ameisen",
    "fr": "Elle doit donner 1 bol par jour pendant 180 jours. Ensuite, elle devra lui donner 2 bols. Si un sac",
    "ru": "В понедельник Сью съела в 4 раза больше печенья, чем ее сестра. Ее сестра съела 5 кусочков",
    "zh": "史蒂夫住的地方离学校 3 英里，而且他骑自行车的速度为每分钟 440 英尺。蒂姆住的地方离学校",
    "sw": "Mary ni mdogo kwa Joan kwa miaka miwili. Joan amemshinda Jessa na miaka mitano. Iwapo Jessa",
}
WHOLE = {
    "en": (
        "Find the value of $x$ if $x+3=5$ and $x$ is positive",
        "The sum of two numbers is 12. The larger is",
        "Reduce the following radical: $\\sqrt[12]{x^{6} y^{9}}$",
        "A number is 5 less than 12. How many is that (in dozens)",
        "280/4+360",
    ),
    "zh": (
        "一个数的一半是 12，这个数是多少",
        "解$x$：$2^{2x} = 256$。",
        "简化 $(u+4)(u-1)$",
        "若 $a=3$，则 $a+1$ 的值为",
    ),
    "th": ("เทียนเล่มหนึ่งจุดแล้วจะละลายชั่วโมงละ 2 เซนติเมตร ตั้งแต่ 13.00 น. ถึง 17.00 น. เทียนจะสั้นลงกี่เซนติเมตร",),
    "ko": (r"행렬 $A$가 주어졌습니다. $|A|$를 구하시오",),
}


def findings(statement: str, lang: str) -> set[str]:
    """Return the broken-off rules that find something, as the first finding of the row."""
    scores = measure(problems({"statement": statement, "answer": "12", "lang": lang}), StatementSettings()).scores
    return set(scores["rule"].drop_nulls()) & {"broken_off", "no_request"}


@pytest.mark.parametrize("lang", BROKEN)
def test_a_text_that_stops_in_the_middle_is_seen(lang: str) -> None:
    table = measure(problems({"statement": BROKEN[lang], "answer": "12", "lang": lang}), StatementSettings()).scores
    assert table["rule"].item() in ("no_task", "cut_off", "broken_off", "no_request")
    assert table["score"].item() > 0.5


@pytest.mark.parametrize("lang", WHOLE)
def test_a_text_that_asks_without_a_mark_is_whole(lang: str) -> None:
    for statement in WHOLE[lang]:
        assert findings(statement, lang) == set(), statement


def test_a_text_whose_marks_are_whole_and_that_asks_nothing_is_seen() -> None:
    assert findings("Tom has 3 apples when he comes home. He eats one where nobody looks.", "en") == {"no_request"}
    assert findings("Tom, who has 3 apples, meets Ann who has 4.", "en") == {"no_request"}
    assert findings("Tom has 3 apples and Ann 4. To whom belong most", "en") == set()


def test_a_question_whose_options_were_taken_away_may_end_where_they_stood() -> None:
    row = {"statement": "If $a=3$, the perimeter of the square is increased by", "answer": "B", "lang": "en"}
    opened = measure(problems({**row, "choices": ["A) 3", "B) 12", "C) 9"]}), StatementSettings()).scores
    assert opened["rule"].item() not in ("broken_off", "no_request")
