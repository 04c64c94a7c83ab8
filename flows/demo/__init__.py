"""The project's own sample problems, with planted defects and recorded attempts.

After a change of a prompt ``python -m tests.demo_data.recorded`` writes votes and translations again.
"""
