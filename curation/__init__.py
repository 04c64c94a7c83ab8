"""What a problem is, and whether it is worth training on. Imports neither prefect nor torch, and stays quick."""

from curation.api import export, judge_answers, judge_program, pass_rate, read_set

__all__ = ["export", "judge_answers", "judge_program", "pass_rate", "read_set"]
