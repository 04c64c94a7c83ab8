"""A share of the problems, translated by a model, and read by one before a translation is published.

selection     which problems, into what language
invariants    what can be checked exactly, by `digits`, `formulas` and `prose`
questions     what the models are asked: for a translation, and whether it sets the same task
rows          the rows of the set

No rule reads what the words mean: that is the reader's question.
"""
