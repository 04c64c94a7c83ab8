"""Judging programs: code extraction from responses, problems from tables, one judge for verdicts, files of programs."""
