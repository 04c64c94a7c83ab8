"""Sample data that the project makes itself: problems with planted defects, and recorded attempts at them.

The data files are next to this module, and shipped. ``python -m tests.demo_data.make_data`` makes them again, byte by
byte; `flows.demo.report` compares what a run did with what was planted.
"""
