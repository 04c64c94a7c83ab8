"""Reads a text as the forms it may mean, the likeliest first.

A comma between digits may separate thousands, decimals or items: language and digits decide. `to_reading` accounts for
each token: read, a declaration ("where k is an integer"), meaningless ("only"), or unread.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from curation.languages.vocabulary import every, languages, one_of
from curation.verify.answers.expr import divide, fn, has, num, sym
from curation.verify.answers.forms import (
    CASE_BRACKETS,
    Form,
    Positions,
    Reading,
    Relation,
    Sequence,
    Union,
    Value,
    Words,
    also_from,
    names_in,
    sources,
)
from curation.verify.answers.grammar import parse_expression
from curation.verify.answers.labels import join_items, left_name, with_modulus_each
from curation.verify.answers.matrices import read_matrix
from curation.verify.answers.quantities import number_variants, parse_compound, parse_number_in_base, parse_value
from curation.verify.answers.tokens import (
    CLOSERS,
    OPENERS,
    AnswerParseError,
    Token,
    split_tokens,
    tokenise,
)
from curation.verify.answers.units import is_unit, normalise_unit
from curation.verify.answers.words import parse_number_words, words

MAX_DEPTH = 40
_SEPARATORS = frozenset((",", ";", "and", "or", "newline", "space", "'or'"))
_RELATIONS = frozenset(("=", "<", ">", "<=", ">=", "!=", "~=", "∈", "∉", "⇒", "→"))

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
"""Words without meaning next to an answer."""

_BARS = frozenset(("|", ":"))
_CHAFF = frozenset((*',;.:?"#()[]{}|&⟨⟩⇒', "space", "newline", "and", "or", "'or'", "{s", "}s"))


@lru_cache(maxsize=8192)
def parse_readings(text: str, lang: str) -> tuple[Reading, ...]:
    """Return the readings of a `tiers.clean_answer`; the last one is `Words`."""
    base = parse_number_in_base(text)
    readings = [Reading(base)] if base is not None else []
    spelled = parse_number_words(text) if "-" in text and text[0].isalpha() else None
    if spelled is not None:
        readings.append(Reading(Value(num(spelled))))
    for variant in number_variants(text, lang):
        try:
            tokens = tokenise(variant)
            reading = to_reading(tokens, parse_form(tokens, 0))
        except AnswerParseError:
            continue
        if reading not in readings:
            readings.append(reading)
    return (*readings, Reading(words(text)))


def parse_form(tokens: list[Token], depth: int) -> Form:
    """Return the form that ``tokens`` mean. Raises `AnswerParseError`."""
    if depth > MAX_DEPTH:
        raise AnswerParseError("nested too deeply")
    tokens = trim_tokens(cut_tail(tokens))
    if not tokens:
        raise AnswerParseError("nothing")
    amount = parse_compound(tokens) if tokens[0].kind == "num" and len(tokens) < 9 else None
    if amount is not None:
        return amount
    parts, separators = split_tokens(tokens, _SEPARATORS)
    if len(parts) > 1:
        return _parse_list(parts, [token.text for token in separators], depth)
    tokens = _with_set_minus(tokens)
    if any(token.text in ("∪", "∩", "∖") and token.kind == "op" for token in tokens):
        region = _parse_set_expression(tokens, depth)
        if region is not None:
            return region
    if tokens[0].text == "cases" and tokens[0].kind == "env":
        return _parse_piecewise(tokens, depth)
    parts, ops = split_tokens(tokens, _RELATIONS)
    if len(parts) > 1:
        return _parse_relation(parts, ops, depth)
    parts, ops = split_tokens(tokens, frozenset(("to",)))
    if len(parts) == 2 and all(parts):
        return Relation((parse_form(parts[0], depth + 1), parse_form(parts[1], depth + 1)), ("to",), positions(ops))
    parts, ops = split_tokens(tokens, frozenset((":",)))
    if len(parts) > 1:
        return _parse_ratio_or_label(parts, ops, depth)
    return _parse_single(tokens, depth)


def _parse_list(parts: list[list[Token]], separators: list[str], depth: int) -> Form:
    item_tokens: list[list[Token]] = []
    joints: list[str] = []
    between: set[str] = set()
    for part, separator in zip(parts, ["", *separators], strict=True):
        between.add(separator)
        if part and not declares_names(part):
            item_tokens.append(part)
            joints.append("or" if "or" in between else ";" if ";" in between else separator)
            between = set()
    if not item_tokens:
        raise AnswerParseError("nothing")
    forms = [_parse_item(part, depth) for part in with_modulus_each(item_tokens)]
    if len(forms) > 1 and all(part[0].text == "{s" and encloses_all(part) for part in item_tokens):
        return Sequence(tuple(forms))  # sets of several answers, not a conjunction of conditions
    return join_items(forms, joints)


def _parse_item(part: list[Token], depth: int) -> Form:
    part = trim_tokens(part)
    if len(part) == 1 and part[0].text == "…":
        return Words("…", "…", positions(part))
    if len(part) < 3 and part and part[-1].kind == "num" and part[-1].text[:2] == "00":
        raise AnswerParseError("a group of a long number's digits")
    return parse_form(part, depth + 1)


def _with_set_minus(tokens: list[Token]) -> list[Token]:
    return [
        token._replace(text="∖") if token.text == "-" and after is not None and after.text == "{s" else token
        for token, after in zip(tokens, [*tokens[1:], None], strict=True)
    ]


def _parse_set_expression(tokens: list[Token], depth: int) -> Form | None:
    parts, joints = split_tokens(tokens, frozenset(("∪", "∩", "∖")))
    if len(parts) < 2:
        return None
    heads, ops = split_tokens(parts[0], frozenset(("∈", "=")))
    *heads, parts[0] = heads
    kinds = [token.text for token in joints]
    if set(kinds) == {"∪"}:
        sides = [parse_form(part, depth + 1) for part in parts]
        form: Form = Union(tuple(sides), False, positions(joints))
        for head, op in zip(heads[::-1], ops[::-1], strict=True):
            relation = "in" if op.text == "∈" else "="
            form = Relation((_parse_side(head, depth), form), (relation,), positions([op])) if head else form
        if len({left_name(part) for part in (form, *sides)} - {None}) > 1:
            raise AnswerParseError("a union of several things")
        return form
    here = positions([*joints, *ops])
    name = _parse_side(heads[0], depth) if heads else Words("x", "x")
    numbers = [[token.text for token in part if token.kind == "sym"] for part in parts if is_number_set(part)]
    if kinds == ["∖"] and numbers == [["R"]] and is_number_set(parts[0]):
        return Relation((name, parse_form(parts[1], depth + 1)), ("notin",), here | positions(parts[0]))
    if len(set(kinds)) > 1:
        raise AnswerParseError("a set difference")
    sets = [parse_form(part, depth + 1) for part in parts]
    if kinds[0] == "∖":
        sets[1:] = [Relation((Words("x", "x"), without), ("notin",)) for without in sets[1:]]
    both: Form = Union(tuple(sets), is_conjunction=True)
    return also_from(Relation((name, both), ("in",)) if heads else both, here)


def _parse_relation(parts: list[list[Token]], signs: list[Token], depth: int) -> Form:
    ops = [sign.text for sign in signs]
    if "~=" in ops:
        return _parse_approximation(parts, signs, depth)
    if ops[0] in ("∈", "∉"):
        rest = _join(parts[1:], signs[1:])
        relation = ("in" if ops[0] == "∈" else "notin",)
        inner = _number_set(rest) if is_number_set(rest) else parse_form(rest, depth + 1)
        return Relation(
            (_parse_side(parts[0], depth, may_be_empty=len(parts) == 2), inner), relation, positions(signs[:1])
        )
    if not parts[0] and ops[0] == "=":
        return parse_form(_join(parts[1:], signs[1:]), depth + 1)
    last = len(parts) - 1
    sides = [
        _parse_side(part, depth, last=at == last, may_be_empty=not at and ops[0] != "=")
        for at, part in enumerate(parts)
    ]
    if isinstance(sides[-1], Value) and sides[-1].expr.name == "mod" and has(sides[-1].expr, "fn", "mod"):
        sides[-1] = replace(sides[-1], expr=fn("residue", *sides[-1].expr.args))
    return Relation(tuple(sides), tuple(ops), positions(signs))


def _parse_approximation(parts: list[list[Token]], signs: list[Token], depth: int) -> Form:
    """Read a = b ≈ c as b approximated, a lone ≈ c as c, and name ≈ c as name = c."""
    at = next(position for position, sign in enumerate(signs) if sign.text == "~=")
    if at == 0 and len(signs) == 1 and not parts[0]:
        return also_from(parse_form(parts[1], depth + 1), positions(signs))
    if at == 0 and len(signs) == 1 and is_name(parts[0]):
        return Relation((_parse_side(parts[0], depth), _parse_side(parts[1], depth)), ("=",), positions(signs))
    exact = parse_form(_join(parts[: at + 1], signs[:at]), depth + 1)
    return Relation((exact, parse_form(parts[at + 1], depth + 1)), ("~=",), positions(signs[at:]))


def _parse_piecewise(tokens: list[Token], depth: int) -> Form:
    """Read cases as a set of (value, condition) pairs."""
    if tokens[-1].kind != "endenv" or sum(token.kind == "env" for token in tokens) != 1:
        raise AnswerParseError("cases with something after them")
    lines, _ = split_tokens(tokens[1:-1], frozenset(("newline",)))
    pairs: list[Form] = []
    frame = [tokens[0], tokens[-1]]
    for line in filter(None, lines):
        parts, _ = split_tokens(line, frozenset(("&",)))
        if len(parts) != 2 or not all(parts):
            raise AnswerParseError("a case without its condition")
        condition = [part for token in trim_tokens(parts[1]) for part in cut_if(token)]
        frame += [token for token in parts[1] if not cut_if(token)]
        plain = not any(token.kind in ("text", "word") for token in condition)
        condition_form = parse_form(condition, depth + 1) if plain else words_from(condition)
        pairs.append(Sequence((parse_form(parts[0], depth + 1), condition_form), CASE_BRACKETS))
    return Sequence(tuple(pairs), "{}", positions(frame))


def _join(parts: list[list[Token]], signs: list[Token]) -> list[Token]:
    tokens = list(parts[0])
    for sign, part in zip(signs, parts[1:], strict=False):
        tokens += [sign, *part]
    return tokens


def _parse_side(tokens: list[Token], depth: int, *, last: bool = False, may_be_empty: bool = False) -> Form:
    if not tokens and may_be_empty:
        return Words("", "")
    if not last and len(tokens) > 3 and tokens[0].kind == "sym" and is_call(tokens):
        return Value(sym("".join(token.text for token in tokens)), source=positions(tokens))
    try:
        return parse_form(tokens, depth + 1)
    except AnswerParseError:
        if not any(token.kind in ("word", "text") for token in tokens):
            raise
        return words_from(tokens)


def _parse_ratio_or_label(parts: list[list[Token]], colons: list[Token], depth: int) -> Form:
    if not all(parts):
        raise AnswerParseError("a colon without a side")
    try:
        sides = [Value(parse_expression(part), source=positions(part)) for part in parts]
    except AnswerParseError:
        return Relation((words_from(parts[0]), parse_form(_join(parts[1:], colons[1:]), depth + 1)), (":",))
    if len(sides) == 2:
        return Value(divide(sides[0].expr, sides[1].expr), "ratio", sides[0].source | sides[1].source)
    return Sequence(tuple(sides), "::")


def _parse_single(tokens: list[Token], depth: int) -> Form:
    first, last = tokens[0], tokens[-1]
    here = positions(tokens)
    if first.kind == "empty" and len(tokens) == 1:
        return also_from(words("no solution"), here)
    if first.text in ("(", "[", "{", "{s", "⟨") and first.kind == "op" and encloses_all(tokens):
        bracketed = _parse_bracketed(tokens, depth)
        if bracketed is not None:
            return bracketed
    if first.kind == "sym" and first.text.isupper() and len(tokens) > 4:
        point = _parse_bracketed(tokens[1:], depth) if tokens[1].text == "(" and encloses_all(tokens[1:]) else None
        if first.text != "C" and isinstance(point, Sequence) and len(point.items) > 1:
            return Relation((Value(sym(first.text), source=positions([first])), point), (":",))
    if any(token.kind == "env" for token in tokens):
        return read_matrix(tokens)
    if all(token.kind in ("text", "word") for token in tokens):
        text = " ".join(token.text for token in tokens)
        spelled = parse_number_words(text)
        if spelled is not None:
            return Value(num(spelled), source=here)
        if first.kind == "text" and len(tokens) == 1:
            return also_from(words(text), here)
        if len(tokens) > 1 or (len(text) > 3 and not (text.isupper() and len(text) < 6)):
            raise AnswerParseError("words")
    if first.kind == "style" and is_number_set(tokens):
        return _number_set(tokens)
    if first.kind == "text" and is_unit(first.text.strip()) and len(tokens) > 1 and tokens[1].kind == "num":
        return _with_unit(_parse_single(tokens[1:], depth + 1), normalise_unit(first.text), first)
    if first.text == "money" and last.text != "money":
        amount = _parse_single([token for token in tokens if token.text != "money"], depth + 1)
        return _with_unit(amount, "money", *(token for token in tokens if token.text == "money"))
    if first.kind in ("text", "word") and _is_filler(first) and len(tokens) > 1 and last.kind != "text":
        return parse_form(tokens[1:], depth + 1)
    return parse_value(tokens)


def _number_set(tokens: list[Token]) -> Form:
    r"""Return the set that ``\mathbb{R}`` names, or a similar letter."""
    named = words_from(tokens)
    return replace(named, text="reals") if named.text == "r" else named


def _with_unit(form: Form, unit: str, *signs: Token) -> Form:
    if isinstance(form, Value) and form.unit in ("", unit):
        return Value(form.expr, unit, form.source | positions([*signs]))
    return form


def _is_filler(token: Token) -> bool:
    return token.text.lower().strip(" .") in FILLERS


def _parse_bracketed(tokens: list[Token], depth: int) -> Form | None:
    first, last, inner = tokens[0].text, tokens[-1].text, tokens[1:-1]
    if first == "⟨":
        first, last = "(", ")"
    is_set = first in ("{", "{s") and last in ("}", "}s")
    if is_set:
        bar = [at for at, token in enumerate(inner) if token.kind == "op" and token.text in ("|", ":")]
        head = inner[: bar[0]] if bar else []
        tuple_ = bool(head) and head[0].text == "(" and encloses_all(head)
        if bar and first == "{s" and (tuple_ or not any(token.text in (",", ";") for token in head)):
            condition = inner[bar[0] + 1 :]
            if len(head) > 1 and not tuple_ and declares_names(condition) and "∈" not in [t.text for t in head]:
                return Sequence((parse_form(head, depth + 1),), "{}")
            return parse_form(condition, depth + 1)
    if not inner:
        return also_from(words("no solution"), positions(tokens)) if is_set else None
    if is_set and first == "{":
        return parse_form(inner, depth + 1)
    parts, _ = split_tokens(inner, frozenset((",", ";", "and")))
    if len(parts) == 1:
        if first == "{s":
            return Sequence((parse_form(inner, depth + 1),), "{}")
        if first == "(" or first == "{":
            return None if first == "(" and plain_expression(inner) else parse_form(inner, depth + 1)
        return None
    items = tuple(_parse_item(part, depth + 1) for part in parts)
    if is_set:
        return Sequence(items, "{}")
    return Sequence(items, first + last)


def positions(tokens: list[Token]) -> Positions:
    """Return the positions of tokens."""
    return frozenset(token.at for token in tokens)


def to_reading(tokens: list[Token], form: Form) -> Reading:
    """Return a form as a reading, with its declarations and unread text."""
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


def _runs_outside(tokens: list[Token], read: Positions) -> Iterator[list[Token]]:
    """Yield unread runs, except mere separators and brackets."""
    run: list[Token] = []
    for token in (*tokens, None):
        if token is not None and token.at not in read:
            run.append(token)
            continue
        if any(unread.kind != "op" or unread.text not in _CHAFF for unread in run):
            yield run
        run = []


def _trimmed(run: list[Token]) -> list[Token]:
    inside = [at for at, token in enumerate(run) if token.kind != "op" or token.text not in _CHAFF]
    return run[inside[0] : inside[-1] + 1]


def _declaration(run: list[Token], names: frozenset[str]) -> dict[str, str] | None:
    """Return the kinds of the names that a run declares; None if it states more.

    Words without a meaning give {}; names before a bar are a set's head.
    """
    declared: list[str] = []
    kinds: list[str] = []
    is_declaration = any(token.kind == "op" and token.text in _BARS for token in run)
    position = 0
    while position < len(run):
        token = run[position]
        position += 1
        if token.kind == "sym":
            name = token.text
            if run[position : position + 1] and run[position].text == "_":
                end = position + (4 if run[position + 1 : position + 2] and run[position + 1].text == "{" else 2)
                name += "".join(item.text for item in run[position:end] if item.text not in "{}")
                position = end
            following = run[position].kind if position < len(run) else ""
            if name == "a" and name not in names and following in ("text", "word"):
                continue
            declared.append(name)
        elif token.text == "∈":
            end = next((at for at in range(position, len(run)) if run[at].text in (*",;:|)", "and")
                        or run[at].kind in ("text", "word")), len(run))  # fmt: skip
            kinds.append(
                "".join(item.text for item in run[position:end] if item.kind != "style" and item.text not in "{}")
            )
            if kinds[-1][:1] not in _NUMBER_SETS:
                return None
            is_declaration, position = True, end
        elif token.kind in ("text", "word"):
            for word in re.findall(r"[^\s,.;:()]+", token.text.lower()):
                if len(word) == 1 and word in names:
                    declared.append(word)
                    continue
                meanings = _kinds_of(word)
                if meanings is None:
                    return None
                kinds.extend(meanings)
            is_declaration = True
        elif token.kind != "style" and not (token.kind == "op" and token.text in _CHAFF and token.text not in "[]"):
            return None
    if not is_declaration or not names.issuperset(declared) or (any(kinds) and not declared):
        return None
    kind = " ".join(sorted(set(filter(None, kinds))))
    is_head = len(declared) > 1 and not kinds and any(token.text in _BARS for token in run)
    return {name: f"part {index}" if is_head else kind for index, name in enumerate(declared)}


def _kinds_of(word: str) -> list[str] | None:
    if word in FILLERS:
        return []
    if word in _KINDS:
        return [_KINDS[word]]
    runs = _RUN_TOGETHER.findall(word) if word > "\u2e80" else []
    return [_KINDS[run] for run in runs] if runs and "".join(runs) == word else None


def trim_tokens(tokens: list[Token]) -> list[Token]:
    start, end = 0, len(tokens)
    chaff = (",", ";", ".", ":", "space", "newline", "?", "and", "or", "⇒", '"', "#")
    while start < end and tokens[start].kind == "op" and tokens[start].text in chaff:
        start += 1
    while end > start and tokens[end - 1].kind == "op" and tokens[end - 1].text in chaff:
        end -= 1
    return tokens[start:end]


def cut_tail(tokens: list[Token]) -> list[Token]:
    r"""Cut "for all n …", "where k is …" and "(k \in \mathbb{Z})" off."""
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
    return replace(words(" ".join(token.text for token in tokens if token.kind != "style")), source=positions(tokens))


def is_name(tokens: list[Token]) -> bool:
    return (
        len(tokens) <= 6 and tokens[0].kind in ("sym", "word", "text") and not any(t.kind == "num" for t in tokens[:1])
    )


def is_call(tokens: list[Token]) -> bool:
    """Return whether tokens are a function's value: f(x), A_n(2)."""
    at = next((position for position, token in enumerate(tokens) if token.text == "("), 0)
    name = [token.text for token in tokens[:at]]
    plain = len(name) == 1 or (len(name) > 2 and name[1] == "_") or (len(name) == 2 and name[1] == "'")
    return plain and at > 0 and encloses_all(tokens[at:]) and len(tokens) - at <= 8


def encloses_all(tokens: list[Token]) -> bool:
    """Return whether the first bracket closes with the last token, half-open intervals included."""
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
