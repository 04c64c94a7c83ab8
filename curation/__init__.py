"""Measures problems, and decides which are worth training on."""

from curation.api import export, judge_answers, judge_program, pass_rate, read_set

__all__ = ["export", "judge_answers", "judge_program", "pass_rate", "read_set"]
