"""Holds the format rules' measured precision."""

from __future__ import annotations

from collections.abc import Mapping

MEASURED: Mapping[str, tuple[int, int]] = {
    "also_asked": (44, 43),
    "answer_in_statement": (19, 19),
    "broken_answer": (36, 36),
    "missing_answer": (2440, 2440),
    "missing_figure": (56, 41),
    "multi_part": (72, 71),
    "proof": (531, 531),
    "several_answers": (65, 65),
    "textual_answer": (52, 52),
    "yes_no": (27, 27),
}
"""Labelled rows that each rule drops, and those dropped rightly; rules with few rows are missing.

A quarter of the rows that `missing_figure` drops can be solved without their pictures.
"""
