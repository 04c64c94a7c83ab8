r"""Reading: a normalised text → the forms it may mean, the likeliest first.

Most texts have one reading. A comma between digits can be a thousands separator, a decimal comma or a list; the
language and the digits say which readings are admitted. The last reading is always the text as `Words`.

Nothing is computed here; nesting is bounded, and every split is linear in the number of tokens at its level.
"""

from __future__ import annotations

from functools import lru_cache

from curation.verify.answers.expr import divide, num, sym
from curation.verify.answers.forms import CASE_BRACKETS, Form, Relation, Sequence, Union, Value, Words, describe
from curation.verify.answers.grammar import parse_expression
from curation.verify.answers.matrices import determinant, read_matrix
from curation.verify.answers.quantities import parse_compound, parse_value
from curation.verify.answers.spans import (
    cut_if,
    cut_tail,
    declares_names,
    encloses_all,
    is_call,
    is_name,
    is_number_set,
    plain_expression,
    trim_tokens,
    words_from,
)
from curation.verify.answers.text import normalise_latex, strip_wrappers
from curation.verify.answers.tokens import MAX_TOKENISED_CHARS, AnswerParseError, Token, split_tokens, tokenise
from curation.verify.answers.units import is_unit, normalise_unit
from curation.verify.answers.variants import number_variants, parse_number_in_base
from curation.verify.answers.words import parse_number_words, words
from curation.verify.boxes import strip_boxes

MAX_DEPTH = 40
_SEPARATORS = frozenset((",", ";", "and", "or", "newline", "space", "'or'"))
_RELATIONS = frozenset(("=", "<", ">", "<=", ">=", "!=", "~=", "∈", "∉", "⇒", "→"))
_FILLERS = frozenset("only about approximately approx roughly exactly around nearly rs usd eur is are angle triangle "
                     "the square values value equals therefore".split())  # fmt: skip


@lru_cache(maxsize=8192)
def parse_readings(raw: str, lang: str) -> tuple[Form, ...]:
    """Return the readings of ``raw``; never empty, the last one `Words`."""
    if len(raw) > 4 * MAX_TOKENISED_CHARS:
        return (Words(raw, raw),)
    text = strip_wrappers(strip_boxes(normalise_latex(raw))) or " "
    base = parse_number_in_base(text)
    forms: list[Form] = [base] if base is not None else []
    spelled = parse_number_words(text) if "-" in text and text[0].isalpha() else None
    if spelled is not None:
        forms.append(Value(num(spelled)))
    for variant in number_variants(text, lang):
        try:
            form = parse_form(tokenise(variant), 0)
        except AnswerParseError:
            continue
        if form not in forms:
            forms.append(form)
    return (*forms, words(text))


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
        return _parse_list(parts, separators, depth)
    if any(token.text in ("∪", "∩", "∖") and token.kind == "op" for token in tokens):
        region = _parse_set_expression(tokens, depth)
        if region is not None:
            return region
    if tokens[0].text == "cases" and tokens[0].kind == "env":
        return _parse_piecewise(tokens, depth)
    parts, ops = split_tokens(tokens, _RELATIONS)
    if len(parts) > 1:
        return _parse_relation(parts, ops, depth)
    parts, _ = split_tokens(tokens, frozenset(("to",)))
    if len(parts) == 2 and all(parts):
        return Relation((parse_form(parts[0], depth + 1), parse_form(parts[1], depth + 1)), ("to",))
    parts, _ = split_tokens(tokens, frozenset((":",)))
    if len(parts) > 1:
        return _parse_ratio_or_label(parts, depth)
    return _parse_single(tokens, depth)


def _parse_list(parts: list[list[Token]], separators: list[str], depth: int) -> Form:
    item_tokens: list[list[Token]] = []
    joints: list[str] = []
    for part, separator in zip(parts, ["", *separators], strict=True):
        if part and not declares_names(part):
            item_tokens.append(part)
            joints.append(separator)
    if not item_tokens:
        raise AnswerParseError("nothing")
    forms = [_parse_item(part, depth) for part in item_tokens]
    if len(forms) == 1:
        return forms[0]
    if ";" in joints and "," in joints:
        groups = _parse_groups(item_tokens, joints, depth)
        if groups is not None:
            return groups
    if all(_is_equation(form) for form in forms):
        return Sequence(_group_by_repetition(forms))
    first = forms[0]
    if (
        isinstance(first, Relation)
        and first.ops[0] in ("=", "in")
        and len(first.ops) == 1
        and not any(isinstance(form, Relation) for form in forms[1:])
    ):
        forms[0] = first.items[1]
    if isinstance(first, Relation) and first.ops == ("!=",) and all(isinstance(form, Value) for form in forms[1:]):
        others = (Relation((first.items[0], form), ("!=",)) for form in forms[1:])
        return Union((first, *others), is_conjunction=True)
    conditions = all(is_condition(form) for form in forms)
    if conditions and not all(isinstance(form, Sequence) for form in forms):
        return Union(tuple(forms), is_conjunction="or" not in joints)
    all_solutions = all(is_condition(form) or isinstance(form, Value) or _is_equation(form) for form in forms)
    if "or" in joints and all_solutions and any(is_condition(form) for form in forms):
        return Union(tuple(forms))
    if "or" in joints and all(isinstance(form, Value) for form in forms):
        return Sequence(tuple(forms), "{}")
    return Sequence(tuple(forms))


def _parse_groups(item_tokens: list[list[Token]], joints: list[str], depth: int) -> Form | None:
    """Read groups that semicolons separate and commas divide; None where they are not of one size above 1."""
    groups: list[list[Form]] = [[]]
    for part, joint in zip(item_tokens, joints, strict=True):
        if joint == ";":
            groups.append([])
        groups[-1].append(_parse_item(part, depth))
    if len({len(group) for group in groups}) != 1 or len(groups[0]) < 2:
        return None
    return Sequence(tuple(Sequence(tuple(group), "()") for group in groups))


def _group_by_repetition(forms: list[Form]) -> tuple[Form, ...]:
    """Group equations by the repetition of their names: x = 1, y = 2, x = 3, y = 4 is two answers of two parts each."""
    names = [describe(form.items[0]) for form in forms if isinstance(form, Relation)]
    width = names.index(names[0], 1) if names[0] in names[1:] else 0
    if width > 1 and len(forms) % width == 0 and names == names[:width] * (len(forms) // width):
        return tuple(Sequence(tuple(forms[at : at + width]), "()") for at in range(0, len(forms), width))
    return tuple(forms)


def _parse_item(part: list[Token], depth: int) -> Form:
    part = trim_tokens(part)
    if len(part) == 1 and part[0].text == "…":
        return Words("…", "…")
    return parse_form(part, depth + 1)


def _is_equation(form: Form) -> bool:
    return isinstance(form, Relation) and set(form.ops) == {"="}


def is_condition(form: Form) -> bool:
    """Return whether a form says where something lies: an inequality, an interval, a union."""
    if isinstance(form, Relation):
        return form.ops[0] != "=" and form.ops[0] != ":" and (form.ops[0] != "in" or is_condition(form.items[-1]))
    return isinstance(form, Union)


def _parse_set_expression(tokens: list[Token], depth: int) -> Form | None:
    parts, ops = split_tokens(tokens, frozenset(("∪", "∩", "∖")))
    if len(parts) < 2:
        return None
    if "∈" in [token.text for token in parts[0]]:
        at = [token.text for token in parts[0]].index("∈")
        parts[0] = parts[0][at + 1 :]
    elif any(token.text == "=" for token in parts[0]):
        at = [token.text for token in parts[0]].index("=")
        parts[0] = parts[0][at + 1 :]
    if set(ops) != {"∪"}:
        if ops == ["∖"] and is_number_set(parts[0]):
            return Relation((Words("x", "x"), parse_form(parts[1], depth + 1)), ("notin",))
        raise AnswerParseError("a set difference")
    return Union(tuple(parse_form(part, depth + 1) for part in parts))


def _parse_relation(parts: list[list[Token]], ops: list[str], depth: int) -> Form:
    if "⇒" in ops:
        last = len(ops) - 1 - ops[::-1].index("⇒")
        return parse_form(_join(parts[last + 1 :], ops[last + 1 :]), depth + 1)
    if "~=" in ops:
        at = ops.index("~=")
        if at == 0 and len(parts[0]) and len(ops) == 1 and is_name(parts[0]):
            return Relation((_parse_side(parts[0], depth), _parse_side(parts[1], depth)), ("=",))
        return parse_form(_join(parts[: at + 1], ops[:at]), depth + 1)
    if ops[0] in ("∈", "∉"):
        rest = _join(parts[1:], ops[1:])
        if is_number_set(rest):
            return words_from(rest) if ops[0] == "∈" else Relation((Words("", ""), words_from(rest)), ("notin",))
        inner = parse_form(rest, depth + 1)
        return Relation((_parse_side(parts[0], depth), inner), ("in" if ops[0] == "∈" else "notin",))
    if "∈" in ops:
        cut = ops.index("∈")
        return parse_form(_join(parts[:cut], ops[: cut - 1]), depth + 1)
    if not parts[0]:
        parts, ops = parts[1:], ops[1:]
        if not ops:
            return parse_form(parts[0], depth + 1)
    last = len(parts) - 1
    return Relation(tuple(_parse_side(part, depth, last=at == last) for at, part in enumerate(parts)), tuple(ops))


def _parse_piecewise(tokens: list[Token], depth: int) -> Form:
    """Read the rows of a function by cases as a set of (value, condition) pairs, without "if" and "is"."""
    if tokens[-1].kind != "endenv" or sum(token.kind == "env" for token in tokens) != 1:
        raise AnswerParseError("cases with something behind them")
    lines, _ = split_tokens(tokens[1:-1], frozenset(("newline",)))
    pairs: list[Form] = []
    for line in filter(None, lines):
        parts, _ = split_tokens(line, frozenset(("&",)))
        if len(parts) != 2 or not all(parts):
            raise AnswerParseError("a case without its condition")
        condition = [part for token in trim_tokens(parts[1]) for part in cut_if(token)]
        plain = not any(token.kind in ("text", "word") for token in condition)
        condition_form = parse_form(condition, depth + 1) if plain else words_from(condition)
        pairs.append(Sequence((parse_form(parts[0], depth + 1), condition_form), CASE_BRACKETS))
    if not pairs:
        raise AnswerParseError("no cases")
    return Sequence(tuple(pairs), "{}")


def _join(parts: list[list[Token]], ops: list[str]) -> list[Token]:
    tokens = list(parts[0])
    for op, part in zip(ops, parts[1:], strict=False):
        tokens.append(Token("op", op))
        tokens.extend(part)
    return tokens


def _parse_side(tokens: list[Token], depth: int, *, last: bool = False) -> Form:
    if not tokens:
        raise AnswerParseError("a relation without a side")
    if not last and len(tokens) > 3 and tokens[0].kind == "sym" and is_call(tokens):
        return Value(sym("".join(token.text for token in tokens)))
    try:
        return parse_form(tokens, depth + 1)
    except AnswerParseError:
        if any(token.kind == "num" for token in tokens) and not any(token.kind in ("word", "text") for token in tokens):
            raise
        return words_from(tokens)


def _parse_ratio_or_label(parts: list[list[Token]], depth: int) -> Form:
    if not all(parts):
        raise AnswerParseError("a colon without a side")
    try:
        sides = [parse_expression(part) for part in parts]
    except AnswerParseError:
        return Relation((words_from(parts[0]), parse_form(_join(parts[1:], [":"] * 9), depth + 1)), (":",))
    if len(sides) == 2:
        return Value(divide(sides[0], sides[1]), "ratio")
    return Sequence(tuple(Value(side) for side in sides), "::")


def _parse_single(tokens: list[Token], depth: int) -> Form:
    first, last = tokens[0], tokens[-1]
    if first.kind == "empty" and len(tokens) == 1:
        return words("no solution")
    if first.text in ("(", "[", "{", "{s", "⟨", "]") and first.kind == "op" and encloses_all(tokens):
        bracketed = _parse_bracketed(tokens, depth)
        if bracketed is not None:
            return bracketed
    if first.kind == "sym" and first.text.isupper() and len(tokens) > 4:
        point = _parse_bracketed(tokens[1:], depth) if tokens[1].text == "(" and encloses_all(tokens[1:]) else None
        if first.text != "C" and isinstance(point, Sequence) and len(point.items) > 1:
            return point
    if any(token.kind == "env" for token in tokens):
        matrix = read_matrix(tokens)
        bars = first.kind == "env" and first.text == "vmatrix" and sum(token.kind == "env" for token in tokens) == 1
        return Value(determinant(matrix.rows)) if bars else matrix
    if all(token.kind in ("text", "word") for token in tokens):
        text = " ".join(token.text for token in tokens)
        spelled = parse_number_words(text)
        if spelled is not None:
            return Value(num(spelled))
        if all(token.kind == "text" for token in tokens) and len(tokens) == 1:
            return _parse_text(text, depth)
        if len(tokens) > 1 or (len(text) > 3 and not (text.isupper() and len(text) < 6)):
            raise AnswerParseError("words")
    if first.kind == "style" and is_number_set(tokens):
        return words("reals" if last.text == "R" or tokens[-2].text == "R" else "".join(token.text for token in tokens))
    if first.kind == "text" and is_unit(first.text.strip()) and len(tokens) > 1 and tokens[1].kind == "num":
        inner = _parse_single(tokens[1:], depth + 1)
        return Value(inner.expr, normalise_unit(first.text)) if isinstance(inner, Value) else inner
    if first.text == "money":
        inner = _parse_single(tokens[1:], depth + 1)
        return Value(inner.expr, "money") if isinstance(inner, Value) else inner
    if (
        first.kind in ("text", "word")
        and first.text.lower().strip(" .") in _FILLERS
        and len(tokens) > 1
        and last.kind != "text"
    ):
        return parse_form(tokens[1:], depth + 1)
    return parse_value(tokens)


def _parse_text(text: str, depth: int) -> Form:
    """Read the content of a lone ``\\text{}`` as if it stood outside."""
    if not any(char.isdigit() for char in text):
        return words(text)
    return parse_form([token for token in tokenise(text) if token.kind != "text" or token.text != text], depth + 1)


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
            return parse_form(inner[bar[0] + 1 :], depth + 1)
    if not inner:
        return words("no solution") if is_set else None
    if is_set and first == "{":
        return parse_form(inner, depth + 1)
    parts, _ = split_tokens(inner, frozenset((",", ";", "and")))
    if len(parts) == 1:
        if first == "{s":
            return Sequence((parse_form(inner, depth + 1),), "{}")
        if first == "(" or first == "{":
            return None if first == "(" and plain_expression(inner) else parse_form(inner, depth + 1)
        return None
    if any(not part for part in parts):
        raise AnswerParseError("an empty component")
    items = tuple(_parse_item(part, depth + 1) for part in parts)
    if is_set:
        return Sequence(items, "{}")
    if first == "]" and last in ("[", "]"):
        first, last = "(", ")" if last == "[" else "]"
    elif first == "[" and last == "[":
        last = ")"
    return Sequence(items, first + last)
