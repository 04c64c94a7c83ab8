"""The format filter: nothing lost, rules with their reasons, figures as code, clutter taken out, language tags."""

import json
import random
from pathlib import Path

import polars as pl
import pytest

from curation.config import StatementSettings
from curation.filters.statements.cleaning import clean_text, has_debris
from curation.filters.statements.filtering import classify, filter_statements
from curation.filters.statements.rules import RULES, another_language
from curation.records import DROPPED, PROBLEM, DropReason
from tests.curation.tables import check_table, frame
from tests.places import SHARED_DATA


def problems(*rows: dict[str, object]) -> pl.DataFrame:
    """Rows in the `PROBLEM` schema with the given columns filled in."""
    numbered = ({"id": str(index), "row": index, **row} for index, row in enumerate(rows))
    return frame(PROBLEM, *numbered, group="g", domain="math", lang="en", source="test", weight=1.0)


OPEN = {"statement": "What is $2 + 2$?", "answer": "4"}
PROOF = {"statement": "Prove that $2$ is prime.", "answer": None}
CHOICE = {"statement": "What is $2 + 2$?", "answer": "B", "choices": ["A. 3", "B. 4", "C. 5"]}
WHICH = {"statement": "Which of these is prime?", "answer": "A", "choices": ["A. 7", "B. 8", "C. 9"]}
DIRTY = {"statement": "Compute $7 \\cdot 8$.\n\\end{problem}\n\\noindent", "answer": "56\\\\\n\\noindent"}


def test_rows_are_kept_or_dropped_in_order_and_originals_are_kept_if_something_was_rewritten() -> None:
    kept, dropped = filter_statements(problems(OPEN, PROOF, CHOICE, WHICH, DIRTY))
    assert (kept.schema, dropped.schema) == (PROBLEM, DROPPED)
    assert dropped.select("id", "stage", "reason", "evidence").rows() == [
        ("1", "statements", DropReason.PROOF, "proof: Prove that"),
        ("3", "statements", DropReason.MULTIPLE_CHOICE, "multiple_choice: 7"),
    ]
    assert kept["id"].to_list() == ["0", "2", "4"]
    assert kept["statement"].to_list() == ["What is $2 + 2$?", "What is $2 + 2$?", "Compute $7 \\cdot 8$."]
    assert kept["answer"].to_list() == ["4", "4", "56"]
    assert kept["raw_statement"].to_list() == [None, None, DIRTY["statement"]]
    assert kept["raw_answer"].to_list() == [None, "B", DIRTY["answer"]]
    assert kept["choices"].to_list() == [None, None, None]


def test_a_dropped_row_is_handed_on_as_it_came() -> None:
    row = {"statement": "Prove that $7$ is prime.\n\\end{problem}", "answer": "QED\\\\", "choices": ["A. 1", "B. 2"]}
    rows = problems(row)
    _, dropped = filter_statements(rows, StatementSettings(disabled=("multiple_choice",)))
    assert dropped.select(PROBLEM.names()).equals(rows)


def test_what_an_earlier_stage_kept_as_the_original_stays() -> None:
    kept, _ = filter_statements(problems({**DIRTY, "raw_statement": "the first", "raw_answer": None}))
    assert kept["raw_statement"].to_list() == ["the first"]
    assert kept["raw_answer"].to_list() == [DIRTY["answer"]]


WORDS = (
    "Prove that", "Find $x$", "(a)", "(b)", "(A) 1", "(B) 2", "(C) 3", "which of the following", "如图", "求",
    "证明", "（1）", "（2）", "?", "\\begin{", "Answer: 4", "A.", "B.", "____", "$", "\\noindent", "the", "yes",
    "①", "②", "③", "\n", "图", "докажите", "\ufffd", "\x00", "é🙂",
)  # fmt: skip


def test_whatever_comes_in_is_kept_or_dropped() -> None:
    rows = problems(*drawn_rows(500))
    (kept, dropped), again = filter_statements(rows), filter_statements(rows)
    assert kept.equals(again[0])
    assert dropped.equals(again[1])
    assert sorted([*kept["row"], *dropped["row"]]) == list(range(rows.height))
    assert kept["row"].is_sorted()
    assert dropped["row"].is_sorted()
    assert dropped["reason"].null_count() == dropped["evidence"].null_count() == 0
    assert set(dropped["reason"]) <= set(DropReason)
    assert kept["choices"].null_count() + sum(c == [] for c in kept["choices"].to_list()) == kept.height


def drawn_rows(count: int) -> list[dict[str, object]]:
    draw = random.Random(1)

    def text() -> str | None:
        return " ".join(draw.choices(WORDS, k=draw.randrange(10))) if draw.random() < 0.9 else None

    return [
        {
            "statement": text(),
            "answer": draw.choice(["A", "(B)", "B, C", "2", "①", "yes", "about 3", text()]),
            "choices": draw.choice([None, None, [text() for _ in range(draw.randrange(5))]]),
            "lang": draw.choice([None, "en", "zh", "ru", "xx"]),
            "meta": draw.choice([None, "{}", '{"rubric": 1}']),
        }
        for _ in range(count)
    ]


def test_each_row_leaves_for_its_reason_or_stays() -> None:
    names = ("about", "lang", "statement", "answer", "reason")  # without a reason a row is kept
    rows = pl.read_ndjson(Path(__file__).with_name("rows.jsonl"), schema=dict.fromkeys(names, pl.String))
    found = classify(rows.select("lang", "statement", "answer"))["reason"]
    assert rows.with_columns(found=found).filter(pl.col("found").ne_missing(pl.col("reason"))).to_dicts() == []


def test_every_rule_has_a_name_of_its_own_and_rules_and_languages_can_be_switched_off() -> None:
    names = [rule.name for rule in RULES]
    assert len(names) == len(set(names))
    row = pl.DataFrame({"statement": ["Prove that 2 is prime."], "answer": ["4"]})
    settings = StatementSettings(disabled=("proof", "missing_answer"))
    assert classify(row)["rule"].to_list() == ["proof"]
    assert classify(row, settings)["rule"].to_list() == [None]
    row = pl.DataFrame({"statement": ["Combien font $2 + 2$ ?"] * 2, "answer": ["4"] * 2, "lang": ["fr", None]})
    reasons = classify(row, StatementSettings(languages=("en", "zh")))["reason"].to_list()
    assert reasons == [DropReason.WRONG_LANGUAGE, None]


def test_classify_gives_one_line_per_row_in_order() -> None:
    statements = ["Prove that $2$ is prime.", "What is $2+2$?\\\\"]
    rows = pl.DataFrame({"id": [7, 8], "statement": statements, "answer": [None, "4"]})
    lines = classify(rows)
    assert lines.columns == ["id", "keep", "reason", "evidence", "statement", "answer", "rule"]
    assert lines.rows() == [
        ("7", False, "proof", "Prove that", "Prove that $2$ is prime.", None, "proof"),
        ("8", True, None, None, "What is $2+2$?", "4", None),
    ]
    assert classify(rows.drop("id", "answer"))["id"].to_list() == ["0", "1"]
    assert classify(pl.DataFrame(schema=PROBLEM)).is_empty()


ASY = '[asy]\ndraw((0,0)--(3,0)--(3,4)--cycle);\nlabel("$(A)$ find also?", (1,1), S);\n[/asy]'
CODE = {
    "asymptote": ASY,
    "tikz": "\\begin{tikzpicture}\\draw (0,0) -- (3,0) -- (3,4) -- cycle;\\end{tikzpicture}",
    "tabular": "\\begin{tabular}{|c|c|}\\hline Stem & Leaf \\\\ 5 & 2 3 5 \\\\ \\hline\\end{tabular}",
    "svg": '<svg width="9" height="9"><path d="M0 0 L3 0 L3 4 Z"/></svg>',
    "asymptote (environment)": ASY.replace("[asy]", "\\begin{asy}").replace("[/asy]", "\\end{asy}"),
    "tikz (diagram)": "\\begin{tikzcd} A \\arrow[r] & B \\arrow[d] \\\\ C & D \\end{tikzcd}",
    "latex": "\\begin{picture}(30,40)\\put(0,0){\\line(1,0){30}}\\end{picture}",
    "pstricks": "\\begin{pspicture}(3,4)\\psline(0,0)(3,0)(3,4)\\end{pspicture}",
}
QUESTION = "In the figure below, what is the area of the triangle?"


def with_figures(*statements: str, answer: str = "6", meta: str | None = None) -> pl.DataFrame:
    return frame(PROBLEM, *({"statement": text} for text in statements), answer=answer, meta=meta, lang="en")


def test_code_of_a_figure_is_the_figure_and_is_marked() -> None:
    texts = [f"{code}\n{QUESTION} {code}" for code in CODE.values()]
    kept, _ = filter_statements(with_figures(*texts, meta='{"level": 3}'))
    assert kept["statement"].to_list() == texts
    assert kept["raw_statement"].null_count() == len(texts)
    marks = [{"level": 3, "figure_code": [kind.partition(" ")[0]]} for kind in CODE]
    assert [json.loads(meta) for meta in kept["meta"]] == marks


def test_a_picture_that_is_not_there_is_missed() -> None:
    pictures = (
        "![](figure.png)",
        f"{ASY} ![](two.png)",
        "\\includegraphics{figure.png}",
        '<img src="figure.png">',
        "[asy][/asy]",
        "[asy] draw((0,0)--(3,0)--(3,4)--cycle);",
        '[asy] label(graphic("figure.png"), (0,0)); [/asy]',
    )
    _, dropped = filter_statements(
        with_figures(*(f"{QUESTION} {picture}" for picture in pictures), meta='{"level": 3}')
    )
    assert dropped["reason"].to_list() == ["missing_figure"] * len(pictures)
    assert set(dropped["meta"]) == {'{"level": 3}'}


def test_a_question_is_opened_around_its_figure_and_figures_among_the_options_need_the_options() -> None:
    around = f"What is the area? {ASY}\n(A) 5 (B) 6 (C) 7 (D) 8"
    among = f"What is the shape of $T$? (A) {ASY} 5 (B) 6 (C) 7 (D) 8"
    lines = classify(with_figures(around, among, answer="B"))
    assert lines.select("statement", "answer", "reason").rows() == [
        (f"What is the area? {ASY}", "6", None),
        (among, "B", "multiple_choice"),
    ]


def clean(text: str) -> str:
    frame = pl.DataFrame({"text": [text]})
    return str(clean_text(frame, "text")["text"].item()) if frame.select(has_debris("text")).item() else text


def test_clutter_goes_and_what_belongs_to_the_problem_or_the_label_of_an_answer_stays() -> None:
    check_table("clutter", clean)
    check_table("no clutter", clean)
    row = {"statement": "What is $3 + 5$? (1) 6 (2) 8 (3) 9", "answer": "(2) 8"}
    assert classify(pl.DataFrame([row]))["answer"].to_list() == ["8"]
    answers = pl.DataFrame({"answer": ["1. 5", "(3) 7"]})
    assert clean_text(answers, "answer", labels=False).equals(answers)


def test_cleaning_twice_is_cleaning_once() -> None:
    draw = random.Random(3)
    pieces = ("Find $x$", " \\noindent", "\n\\end{problem}", "~~ ~", "<br/>", "&lt;", "\\uline{~~}", "\\\\", "\n",
              "\\par ", " 求", "<b>", "12. (5 分) ")  # fmt: skip
    texts = ["".join(draw.choices(pieces, k=draw.randrange(12))) for _ in range(400)]
    once = clean_text(pl.DataFrame({"text": texts}), "text")
    assert clean_text(once, "text").equals(once)


LATIN = ("en", "fr", "es", "it", "de")

TEXTS = {
    "en": "A shop sells 12 pens on Monday and 30 pens on Friday. How many pens does it sell in all?",
    "fr": "Un magasin vend 12 stylos le lundi et 30 stylos le vendredi. Combien de stylos vend-il en tout ?",
    "es": "Una tienda vende 12 lápices el lunes y 30 lápices el viernes. ¿Cuántos lápices vende en total?",
    "it": "Un negozio vende 12 penne il lunedì e 30 penne il venerdì. Quante penne vende in tutto?",
    "de": "Ein Laden verkauft am Montag 12 Stifte und am Freitag 30 Stifte. Wie viele Stifte verkauft er insgesamt?",
    "zh": "一家商店星期一卖了12支笔，星期五卖了30支笔。一共卖了多少支笔？",
    "ru": "Магазин продал в понедельник 12 ручек и в пятницу 30 ручек. Сколько ручек он продал всего?",
    "nl": "Een winkel verkoopt op maandag 12 pennen en op vrijdag 30 pennen. Hoeveel pennen zijn dat samen?",
    "uk": "Магазин продав у понеділок 12 ручок і в п'ятницю 30 ручок. Скільки ручок він продав усього?",
}


def verdict(text: str, tag: str | None) -> tuple[str | None, str | None]:
    rows = pl.DataFrame({"statement": [text], "answer": ["42"], "lang": [tag]}, schema_overrides={"lang": pl.String})
    reason, evidence = classify(rows).select("reason", "evidence").row(0)
    return reason, evidence


def test_a_true_tag_stays_and_another_language_is_named() -> None:
    pairs = [(tag, lang) for tag in (*LATIN, "zh", "ru") for lang in TEXTS if tag in LATIN or tag == lang]
    tagged = {"statement": [TEXTS[lang] for _, lang in pairs], "answer": "42", "lang": [tag for tag, _ in pairs]}
    found = classify(pl.DataFrame(tagged)).select("reason", "evidence").rows()
    for (tag, lang), (reason, evidence) in zip(pairs, found, strict=True):
        assert reason == (None if tag == lang else DropReason.WRONG_LANGUAGE), (tag, lang)
        assert lang in ("zh", "ru", "uk", tag) or (evidence or "").startswith(f"tag {tag}, text {lang} ("), (tag, lang)
    assert verdict(TEXTS["uk"], "ru")[0] == DropReason.WRONG_LANGUAGE


@pytest.mark.parametrize("name", ["mgsm", "polymath"])
def test_true_tags_of_the_shared_sets_stay(name: str) -> None:
    path = SHARED_DATA / "math" / f"{name}.jsonl"
    if not path.exists():
        pytest.skip(f"no {path}; set GOLDILOCKS_DATA to the folder that holds math/")
    schema = pl.Schema({"problem": pl.String(), "lang": pl.String()})
    rows = pl.read_ndjson(path, schema=schema).rename({"problem": "statement"})
    rows = rows.filter(pl.col("lang").is_in([*LATIN, "zh", "ru"]))
    assert rows.filter(another_language().is_not_null()).height <= 0.002 * rows.height


def test_too_few_words_are_no_evidence_and_other_tags_are_left_alone() -> None:
    assert verdict("Calcule $2^{10}$.", "de")[0] != DropReason.WRONG_LANGUAGE
    assert verdict(TEXTS["fr"], None)[0] is None
    assert verdict(TEXTS["fr"], "nl")[0] is None
