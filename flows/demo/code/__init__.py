"""The demo of the code pipeline: problems with their solutions and tests, and the report of what was caught.

``python -m tests.demo_data.code.make_data`` in the repository makes the files again.
"""
