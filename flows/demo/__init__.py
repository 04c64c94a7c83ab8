"""The project's own sample problems, with planted defects and recorded attempts.

``python -m tests.demo_data.make_data`` makes the same files again.
"""
