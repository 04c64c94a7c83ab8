"""Figures as code: kept, marked, and seen by no rule; pictures that are not there are missed as ever."""

from __future__ import annotations

import json

import polars as pl

from curation.filters.statements.filtering import classify, filter_statements
from curation.records import PROBLEM

ASY = '[asy]\ndraw((0,0)--(3,0)--(3,4)--cycle);\nlabel("$(A)$ find also?", (1,1), S);\n[/asy]'
TIKZ = "\\begin{tikzpicture}\\draw (0,0) -- (3,0) -- (3,4) -- cycle;\\end{tikzpicture}"
TABLE = "\\begin{tabular}{|c|c|}\\hline Stem & Leaf \\\\ 5 & 2 3 5 \\\\ \\hline\\end{tabular}"
SVG = '<svg width="9" height="9"><path d="M0 0 L3 0 L3 4 Z"/></svg>'
CODE = {
    "asymptote": ASY,
    "tikz": TIKZ,
    "tabular": TABLE,
    "svg": SVG,
    "asymptote (environment)": ASY.replace("[asy]", "\\begin{asy}").replace("[/asy]", "\\end{asy}"),
    "tikz (diagram)": "\\begin{tikzcd} A \\arrow[r] & B \\arrow[d] \\\\ C & D \\end{tikzcd}",
    "latex": "\\begin{picture}(30,40)\\put(0,0){\\line(1,0){30}}\\end{picture}",
    "pstricks": "\\begin{pspicture}(3,4)\\psline(0,0)(3,0)(3,4)\\end{pspicture}",
}
QUESTION = "In the figure below, what is the area of the triangle?"


def problems(*statements: str, answer: str = "6", meta: str | None = None) -> pl.DataFrame:
    rows = [
        dict.fromkeys(PROBLEM.names()) | {"statement": text, "answer": answer, "meta": meta, "lang": "en"}
        for text in statements
    ]
    return pl.DataFrame(rows, schema=PROBLEM)


def test_code_of_a_figure_is_the_figure_and_is_marked() -> None:
    texts = [f"{code}\n{QUESTION} {code}" for code in CODE.values()]
    kept, _ = filter_statements(problems(*texts, meta='{"level": 3}'))
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
    _, dropped = filter_statements(problems(*(f"{QUESTION} {picture}" for picture in pictures), meta='{"level": 3}'))
    assert dropped["reason"].to_list() == ["missing_figure"] * len(pictures)
    assert set(dropped["meta"]) == {'{"level": 3}'}


def test_a_question_is_opened_around_its_figure() -> None:
    text = f"What is the area? {ASY}\n(A) 5 (B) 6 (C) 7 (D) 8"
    line = classify(problems(text, answer="B")).row(0, named=True)
    assert (line["statement"], line["answer"]) == (f"What is the area? {ASY}", "6")


def test_figures_among_the_options_need_the_options() -> None:
    text = f"What is the shape of $T$? (A) {ASY} 5 (B) 6 (C) 7 (D) 8"
    line = classify(problems(text, answer="B")).row(0, named=True)
    assert (line["keep"], line["reason"], line["statement"]) == (False, "multiple_choice", text)
