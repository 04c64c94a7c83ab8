"""Runs of tokens: names, calls, tails, number sets, words; and tokens that a form left out.

`left_out` accounts for each token: read, a declaration ("where k is an integer"), without meaning ("only"), or unread.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from curation.languages.vocabulary import every, languages, one_of
from curation.verify.answers.forms import Form, Places, Reading, Words, names_in, sources
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
_KINDS = {
    word: "" if kind == "any" else kind
    for vocab in languages()
    for kind, declaring in vocab.answers.declarations.items()
    for word in declaring
}
_RUN_TOGETHER = re.compile("|".join(sorted(filter(lambda word: word > "\u2e80", _KINDS), key=len, reverse=True)))
FILLERS = frozenset("only about approximately approx roughly exactly around nearly rs usd eur is are angle triangle "
                    "the square values value equals therefore".split())  # fmt: skip
"""Words around an answer that change nothing."""

_BARS = frozenset(("|", ":"))
_CHAFF = frozenset((*',;.:?"#()[]{}|&⟨⟩⇒', "space", "newline", "and", "or", "'or'", "{s", "}s"))


def places(tokens: list[Token]) -> Places:
    """Return where tokens are in the text."""
    return frozenset(token.at for token in tokens)


def left_out(tokens: list[Token], form: Form) -> Reading:
    """Return a form as a reading of ``tokens``, with their declarations and what it left out."""
    declared: dict[str, str] = {}
    unread: list[str] = []
    names = names_in(form)
    for run in _runs_outside(tokens, sources(form)):
        declaration = _declaration(run, names)
        if declaration is None:
            unread.extend("".join(token.text.lower().split()) for token in _trimmed(run) if token.kind != "style")
        else:
            declared |= declaration
    return Reading(form, tuple(sorted(declared.items())), "".join(unread))


def _runs_outside(tokens: list[Token], read: Places) -> Iterator[list[Token]]:
    """Yield the runs of unread tokens, except separators and brackets alone."""
    run: list[Token] = []
    for token in (*tokens, None):
        if token is not None and token.at not in read:
            run.append(token)
            continue
        if any(other.kind != "op" or other.text not in _CHAFF for other in run):
            yield run
        run = []


def _trimmed(run: list[Token]) -> list[Token]:
    """Return a run without separators and brackets at its ends."""
    inside = [at for at, token in enumerate(run) if token.kind != "op" or token.text not in _CHAFF]
    return run[inside[0] : inside[-1] + 1]


def _declaration(run: list[Token], names: frozenset[str]) -> dict[str, str] | None:
    """Return the kinds of the names that a run of tokens declares; None if it states more.

    Words without a meaning give {}; names before a bar count as the head of a set.
    """
    declared: list[str] = []
    kinds: list[str] = []
    said = any(token.kind == "op" and token.text in _BARS for token in run)
    position = 0
    while position < len(run):
        token = run[position]
        position += 1
        if token.kind == "sym":
            name = token.text
            if run[position : position + 1] and run[position].text == "_":
                end = position + (4 if run[position + 1 : position + 2] and run[position + 1].text == "{" else 2)
                name += "".join(part.text for part in run[position:end] if part.text not in "{}")
                position = end
            following = run[position].kind if position < len(run) else ""
            if name == "a" and name not in names and following in ("text", "word"):
                continue
            declared.append(name)
        elif token.text == "∈":
            end = next((at for at in range(position, len(run)) if run[at].text in (*",;:|)", "and")
                        or run[at].kind in ("text", "word")), len(run))  # fmt: skip
            kinds.append(
                "".join(part.text for part in run[position:end] if part.kind != "style" and part.text not in "{}")
            )
            if kinds[-1][:1] not in _NUMBER_SETS:
                return None
            said, position = True, end
        elif token.kind in ("text", "word"):
            for word in re.findall(r"[^\s,.;:()]+", token.text.lower()):
                if len(word) == 1 and word in names:
                    declared.append(word)
                    continue
                meanings = _kinds_of(word)
                if meanings is None:
                    return None
                kinds.extend(meanings)
            said = True
        elif token.kind != "style" and not (token.kind == "op" and token.text in _CHAFF and token.text not in "[]"):
            return None
    if not said or not names.issuperset(declared) or (any(kinds) and not declared):
        return None
    kind = " ".join(sorted(set(filter(None, kinds))))
    if len(set(declared)) < len(declared):
        return None
    is_head = len(declared) > 1 and not kinds and any(token.text in _BARS for token in run)
    return {name: f"part {place}" if is_head else kind for place, name in enumerate(declared)}


def _kinds_of(word: str) -> list[str] | None:
    """Return the kinds that a declaration's word names, or None."""
    if word in FILLERS:
        return []
    if word in _KINDS:
        return [_KINDS[word]]
    parts = _RUN_TOGETHER.findall(word) if word > "\u2e80" else []
    return [_KINDS[part] for part in parts] if parts and "".join(parts) == word else None


def trim_tokens(tokens: list[Token]) -> list[Token]:
    start, end = 0, len(tokens)
    chaff = (",", ";", ".", ":", "space", "newline", "?", "and", "or", "⇒", '"', "#")
    while start < end and tokens[start].kind == "op" and tokens[start].text in chaff:
        start += 1
    while end > start and tokens[end - 1].kind == "op" and tokens[end - 1].text in chaff:
        end -= 1
    return tokens[start:end]


def cut_tail(tokens: list[Token]) -> list[Token]:
    r"""Cut "for all n …", "where k is …" and "(k \in \mathbb{Z})" off a formula."""
    level = 0
    for position, token in enumerate(tokens):
        level += (token.kind == "env") - (token.kind == "endenv")
        if level:
            continue
        if position and token.text == "(" and tokens[-1].text == ")" and _declares_in_brackets(tokens[position:]):
            return tokens[:position]
        if position and token.kind in ("text", "word") and _TAIL.fullmatch(token.text.lower().strip()):
            if token.kind == "word" and token.text.lower() not in _TAIL_WORDS:
                continue
            return tokens[:position]
    return tokens


def declares_names(part: list[Token]) -> bool:
    r"""Return whether tokens only declare names, such as ``k \in \mathbb{Z}``."""
    texts = [token.text for token in part]
    if "∈" not in texts:
        return False
    return is_number_set(part[texts.index("∈") + 1 :])


def is_number_set(tokens: list[Token]) -> bool:
    letters = [token.text for token in tokens if token.kind in ("sym", "style", "word", "text")]
    styled = ("mathbb", "mathbf", "mathrm")
    return not _NUMBER_SETS.isdisjoint(letters) and all(text in _NUMBER_SETS or text in styled for text in letters)


def _declares_in_brackets(tokens: list[Token]) -> bool:
    return len(tokens) > 4 and tokens[2].text == "∈" and encloses_all(tokens) and declares_names(tokens[1:-1])


def cut_if(token: Token) -> list[Token]:
    if token.kind not in ("text", "word"):
        return [token]
    content = [word for word in token.text.split() if word.lower().strip(",.") not in _CONDITION_WORDS]
    return [Token(token.kind, " ".join(content), token.at)] if content else []


def words_from(tokens: list[Token]) -> Words:
    """Return the text of tokens as `Words`."""
    return replace(words(" ".join(token.text for token in tokens if token.kind != "style")), source=places(tokens))


def is_name(tokens: list[Token]) -> bool:
    return (
        len(tokens) <= 6 and tokens[0].kind in ("sym", "word", "text") and not any(t.kind == "num" for t in tokens[:1])
    )


def is_call(tokens: list[Token]) -> bool:
    """Return whether tokens are a letter, perhaps indexed, and a bracket: f(x), A_n(2)."""
    at = next((position for position, token in enumerate(tokens) if token.text == "("), 0)
    name = [token.text for token in tokens[:at]]
    plain = len(name) == 1 or (len(name) > 2 and name[1] == "_") or (len(name) == 2 and name[1] == "'")
    return plain and at > 0 and encloses_all(tokens[at:]) and len(tokens) - at <= 8


def encloses_all(tokens: list[Token]) -> bool:
    """Return whether the first token's bracket closes with the last (half-open intervals included)."""
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
