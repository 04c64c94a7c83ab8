"""The code demo's problems with solutions and tests, and its report.

``python -m tests.demo_data.code.make_data`` makes the files again.
"""
