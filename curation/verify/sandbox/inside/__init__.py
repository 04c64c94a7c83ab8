"""Runs inside the box, in a bare interpreter that imports only the standard library and its siblings.

Nothing here may import `curation`, which the box does not see.
"""
