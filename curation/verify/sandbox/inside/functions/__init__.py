"""What judges functions inside boxes: sent as text, `values` before `callee` or `caller`, and run there as a program.

Only `values` is also imported by the judge. Nothing here may import anything but the standard library and `values`.
"""
