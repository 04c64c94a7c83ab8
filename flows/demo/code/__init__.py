"""The demo of the code line: problems with their solutions and tests, the script that makes them, the report.

tasks.py      the problems: statement, right and wrong programs in both languages
faults.py     what is planted: wrong tests, too few tests, several outputs, interaction …
make_data.py  writes the files beside it
__main__.py   runs the recipe and says what it caught of what was planted
"""
