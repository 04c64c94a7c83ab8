"""Judges functions inside boxes: `curation.verify.programs.functions` sends `values` with `callee` or `caller` as a
program's text.

The judge imports only `values`. Modules here may import only the standard library and `values`.
"""
