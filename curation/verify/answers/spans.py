"""Questions about runs of tokens that need no reading of their parts: names, calls, tails, number sets, words."""

from __future__ import annotations

import re

from curation.languages.vocabulary import every, one_of
from curation.verify.answers.forms import Words
from curation.verify.answers.grammar import parse_expression
from curation.verify.answers.tokens import CLOSERS, OPENERS, AnswerParseError, Token
from curation.verify.answers.words import words

_TAIL = re.compile(
    rf"(?:{one_of(lambda vocab: vocab.answers.tails)})\b.*",
    re.DOTALL,
)
_TAIL_WORDS = frozenset(every(lambda vocab: vocab.answers.tail_words))
_CONDITION_WORDS = frozenset(every(lambda vocab: vocab.answers.condition_words))
_NUMBER_SETS = frozenset(("R", "Z", "N", "Q", "C"))


def trim_tokens(tokens: list[Token]) -> list[Token]:
    start, end = 0, len(tokens)
    chaff = (",", ";", ".", ":", "space", "newline", "?", "and", "or", "⇒", '"', "#")
    while start < end and tokens[start].kind == "op" and tokens[start].text in chaff:
        start += 1
    while end > start and tokens[end - 1].kind == "op" and tokens[end - 1].text in chaff:
        end -= 1
    return tokens[start:end]


def cut_tail(tokens: list[Token]) -> list[Token]:
    r"""Cut "for all n …", "where k is …" and "(k \in \mathbb{Z})" off the end of a formula."""
    level = 0
    for position, token in enumerate(tokens):
        level += (token.kind == "env") - (token.kind == "endenv")
        if level:
            continue
        if position and token.text == "(" and tokens[-1].text == ")" and declared_names(tokens[position:]):
            return tokens[:position]
        if position and token.kind in ("text", "word") and _TAIL.fullmatch(token.text.lower().strip()):
            if token.kind == "word" and token.text.lower() not in _TAIL_WORDS:
                continue
            return tokens[:position]
    return tokens


def declares_names(part: list[Token]) -> bool:
    r"""Return whether tokens are a declaration such as ``k \in \mathbb{Z}``, not an answer."""
    texts = [token.text for token in part]
    if "∈" not in texts:
        return False
    return is_number_set(part[texts.index("∈") + 1 :])


def is_number_set(tokens: list[Token]) -> bool:
    letters = [token.text for token in tokens if token.kind in ("sym", "style", "word", "text")]
    return bool(letters) and all(text in _NUMBER_SETS or text in ("mathbb", "mathbf", "mathrm") for text in letters)


def declared_names(tokens: list[Token]) -> bool:
    return len(tokens) > 4 and tokens[2].text == "∈" and encloses_all(tokens) and declares_names(tokens[1:-1])


def cut_if(token: Token) -> list[Token]:
    if token.kind not in ("text", "word"):
        return [token]
    content = [word for word in token.text.split() if word.lower().strip(",.") not in _CONDITION_WORDS]
    return [Token(token.kind, " ".join(content))] if content else []


def words_from(tokens: list[Token]) -> Words:
    """Return the text of tokens as `Words`."""
    return words(" ".join(token.text for token in tokens if token.kind != "style"))


def is_name(tokens: list[Token]) -> bool:
    return (
        len(tokens) <= 6 and tokens[0].kind in ("sym", "word", "text") and not any(t.kind == "num" for t in tokens[:1])
    )


def is_call(tokens: list[Token]) -> bool:
    """Return whether tokens are a letter, perhaps with an index, and a bracket: f(x), A_n(2), P(X=1)."""
    at = next((position for position, token in enumerate(tokens) if token.text == "("), 0)
    name = [token.text for token in tokens[:at]]
    plain = len(name) == 1 or (len(name) > 2 and name[1] == "_") or (len(name) == 2 and name[1] == "'")
    return plain and at > 0 and encloses_all(tokens[at:]) and len(tokens) - at <= 8


def encloses_all(tokens: list[Token]) -> bool:
    """Return whether the first token's bracket closes with the last token (half-open intervals included)."""
    if tokens[0].text == "]":
        return tokens[-1].text in ("[", "]") and len(tokens) > 3
    level = 0
    for position, token in enumerate(tokens):
        if token.kind in ("op", "env", "endenv"):
            level += token.kind == "env" or token.text in OPENERS
            level -= token.kind == "endenv" or token.text in CLOSERS
            if level == 0:
                return position == len(tokens) - 1
    return False


def plain_expression(tokens: list[Token]) -> bool:
    try:
        parse_expression(tokens)
    except AnswerParseError:
        return False
    return True
