"""Which language a text is in, whether it mixes several, and whether problem, thoughts and answer share one.

    vocabulary      the words of the languages, from a file each in ``data/``
    stripping       LaTeX, code, numbers and markup taken away
    words           what short tasks begin with, by language
    identification  fastText, script and words; `identify`
    switching       words of another language inside sentences
    mixing          windows of sentences; `language_shares` and `consistent`

Shared by the filters, the verifier, the trainer's reward and translation. Nothing is imported here, so that
whoever needs words only does not load the rest.
"""
