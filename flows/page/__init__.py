"""The page: look at a run, judge a label. `goldilocks page DIR` serves it; `app.make_app` is the whole of it.

It reads run folders through the readers that the commands use, and writes one file, ``review.jsonl``, through the
writer of `goldilocks review` (next to it, who holds which disputed label now). No text of a row or of a model is ever
more than text: templates escape everything, formulas come from a renderer that escapes, and are checked against a list
of MathML's elements, and the browser may run no script but our own files.
"""
