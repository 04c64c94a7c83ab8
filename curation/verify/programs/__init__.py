"""Judging programs: extraction, problems from tables, the judge, files of programs."""
