"""What judges functions inside boxes: `curation.verify.programs.functions` sends it as text, `values` before `callee`
or `caller`, and it runs there as a program.

Only `values` is also imported by the judge. Nothing here may import anything but the standard library and `values`.
"""
