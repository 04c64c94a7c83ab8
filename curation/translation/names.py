"""Whether the names of a problem keep their places, what they own and what they are compared with in its translation.

Invariants: pure functions over the names that both texts have (`name_matching`).
"""

from __future__ import annotations

import re

from curation.languages.vocabulary import language
from curation.translation.name_matching import Name
from curation.translation.sentences import Segment

_FEW = 6
"""Mentions of names up to which each must keep its place: in longer sentences one may be given something first."""
_LONG = 4
"""Letters from which a name in -s may own without another."""


def exchanged_names(segment: Segment, names: list[Name]) -> tuple[str, str] | None:
    """Return two names of a segment that changed places; None where none did.

    Names are compared where each stands first; where both sides mention each as often, `_FEW` in all, every mention is.
    """
    mentions = _mentions(segment.before, [(name.original, (name.original,)) for name in names])
    others = _mentions(segment.after, [(name.original, name.forms) for name in names])
    before, after = list(dict.fromkeys(mentions)), list(dict.fromkeys(others))
    lost, new = [name for name in before if name not in after], [name for name in after if name not in before]
    if lost and new:
        return lost[0], new[0]
    first, second = [name for name in before if name in after], [name for name in after if name in before]
    if first != second and first[0] == second[0] and len(mentions) < len(others) and _is_within(mentions, others):
        return None
    if first == second and len(mentions) <= _FEW and sorted(mentions) == sorted(others):
        first, second = mentions, others
    elif len(mentions) == len(first) == len(others) and _is_turned_round(first, second):
        return None
    return next(((a, b) for a, b in zip(first, second, strict=True) if a != b), None)


def clauses_stay(segment: Segment, names: list[Name], source: str, target: str) -> bool:
    """Return whether a subordinate clause has the same names in their order on both sides, and the rest as well."""
    before = _by_clause(segment.before, [(name.original, (name.original,)) for name in names], source)
    after = _by_clause(segment.after, [(name.original, name.forms) for name in names], target)
    return bool(before[0]) and before == after


def exchanged_in_condition(segment: Segment, names: list[Name], source: str, target: str) -> tuple[str, str] | None:
    """Return two names, where the original's condition is of the first alone, and the translation's of the second."""
    before = _by_clause(segment.before, [(name.original, (name.original,)) for name in names], source)
    after = _by_clause(segment.after, [(name.original, name.forms) for name in names], target)
    is_other = len(before[0]) == len(after[0]) == 1 and before[0] != after[0] and before[1] == after[1]
    return (before[0][0], after[0][0]) if is_other else None


def _by_clause(text: str, forms: list[tuple[str, tuple[str, ...]]], lang: str) -> tuple[list[str], list[str]]:
    """Return the names that a text mentions inside its conditions, and those outside of them."""
    condition = re.compile(language(lang).meaning.clauses.get("if", r"(?!)"), re.IGNORECASE)
    inside = " ".join(match[0] for match in condition.finditer(text))
    return _mentions(inside, forms), _mentions(condition.sub(" ", text), forms)


def _is_turned_round(first: list[str], second: list[str]) -> bool:
    """Return whether all that stood behind some name stands before it now: of three or more no two were exchanged.

    Exchanging two of such an order never makes another such order.
    """
    return len(first) > 2 and any(first[cut:] + first[:cut] == second for cut in range(1, len(first)))


def _is_within(mentions: list[str], others: list[str]) -> bool:
    """Return whether others are these mentions in their order, with some put between: what was a pronoun."""
    rest = iter(others)
    return all(name in rest for name in mentions)


def exchanged_compared(segment: Segment, names: list[Name], source: str, target: str) -> tuple[str, str] | None:
    """Return two names, where the original compares with the first alone, and the translation with the second alone.

    Nothing is said of languages whose word for than begins other clauses, too (que).
    """
    if "than" not in language(target).meaning.clauses:
        return None
    before = [name for name in names if _is_compared(segment.before, (name.original,), source)]
    after = [name for name in names if _is_compared(segment.after, name.forms, target)]
    if len(before) != 1 or len(after) != 1 or before == after:
        return None
    return before[0].original, after[0].original


def exchanged_owners(segment: Segment, names: list[Name], source: str, target: str) -> tuple[str, str] | None:
    """Return two names, where something is the first's in the original and the second's in the translation alone.

    Each stands once on either side: of names that come again nothing can be said.
    """
    once = [
        name
        for name in names
        if len(places_of(segment.before, (name.original,))) == len(places_of(segment.after, name.forms)) == 1
    ]
    if len(once) < 2 or not language(target).meaning.owner or not language(target).spaced:
        return None
    before = [name for name in once if _owns(segment.before, (name.original,), source)]
    after = [name for name in once if _owns(segment.after, name.forms, target)]
    lost, new = [name for name in before if name not in after], [name for name in after if name not in before]
    if not (len(lost) == len(new) == 1) or _together(segment.before, lost[0].original, new[0].original, source):
        return None
    return lost[0].original, new[0].original


def joined_names(segment: Segment, names: list[Name], pair: tuple[str, str], source: str, target: str) -> bool:
    """Return whether two names are joined on both sides: Ann and Bob are Bob and Ann."""
    forms = {name.original: name.forms for name in names}
    counts = [len(places_of(segment.before, (one,))) + len(places_of(segment.after, forms[one])) for one in pair]
    if counts != [2, 2]:
        return False
    after = any(stand_together(segment.after, one, other, target) for one in forms[pair[0]] for other in forms[pair[1]])
    joined = after and stand_together(segment.before, *pair, source)
    return joined and "'s" not in segment.before.replace("’", "'")


def owner_stays(segment: Segment, names: list[Name], pair: tuple[str, str], source: str, target: str) -> bool:
    """Return whether something is of the same one of two names on both sides: Aaron, Henry's brother, in any order."""
    mine = [name for name in names if name.original in pair]
    before = [name for name in mine if _owns(segment.before, (name.original,), source)]
    after = [name for name in mine if _owns(segment.after, name.forms, target)]
    joined = _together(segment.before, *pair, source)
    return len(mine) == 2 and len(before) == 1 and before == after and not joined


def stand_together(text: str, first: str, second: str, lang: str) -> bool:
    """Return whether two names are joined: what is one's is the other's, too."""
    first, second = re.escape(first), re.escape(second)
    between = rf"{language(lang).meaning.joins}|[^\W\d_a-z\u0430-\u044f\u0451\u3400-\u9fff][^\W\d_]+"
    joined = rf"[^.?!\w]*(?:(?:{between})[^.?!\w]*)*"
    owned = rf"['’]s[^.?!\w]*(?:{language(lang).meaning.joins})[^.?!\w]*"  # Ann's and Bob's; Ann's Toyota is hers
    return bool(re.search(f"{first}(?:{joined}|{owned}){second}|{second}(?:{joined}|{owned}){first}", text))


def side_by_side(text: str, pair: tuple[str, str]) -> bool:
    """Return whether two names are one of two words, whose order is each language's: Nile Delta, Fan Club."""
    one, other = map(re.escape, pair)
    return re.search(rf"{one}(?:['’]s)?[ -]{other}|{other}(?:['’]s)?[ -]{one}", text) is not None


def _together(text: str, first: str, second: str, lang: str) -> bool:
    """Return whether two names are joined, and neither says whose the other is."""
    return stand_together(text, first, second, lang) and not _explained(text, first, second)


def _explained(text: str, first: str, second: str) -> bool:
    """Return whether one of two names says whose the other is: Doug, Betty's friend."""
    one, other = re.escape(first), re.escape(second)
    return re.search(rf"{one},\s{other}['’]s\s|{other},\s{one}['’]s\s", text) is not None


def compared_stays(segment: Segment, names: list[Name], pair: tuple[str, str], source: str, target: str) -> bool:
    """Return whether the same one of two names is what the other is compared with: more than Ann, 比安."""
    mine = [name for name in names if name.original in pair]
    before = [name.original for name in mine if _is_compared(segment.before, (name.original,), source)]
    after = [name.original for name in mine if _is_compared(segment.after, name.forms, target)]
    return len(before) == 1 and before == after


def _is_compared(text: str, forms: tuple[str, ...], lang: str) -> bool:
    named = "|".join(map(re.escape, sorted(forms, key=len, reverse=True)))
    than = language(lang).meaning.than
    if not language(lang).spaced:
        return re.search(rf"(?:{than})[^，。\d]?(?:{named})", text) is not None  # of 史蒂文 蒂文 may be known
    return re.search(rf"(?<![^\W\d_])(?:{than})\s(?:[^\W\d_A-Z]{{1,3}}\s)?(?:{named})", text) is not None


def _owns(text: str, forms: tuple[str, ...], lang: str) -> bool:
    """Return whether a text says that something is a name's."""
    if language(lang).meaning.owns_before_capitals:  # James Kekse are his, but James hat
        short = "|".join(re.escape(form) for form in forms if form.endswith("s") and len(form) > _LONG)
        if short and re.search(rf"(?<![^\W\d_])(?:{short})['’]?\s[^\W\d_a-zß-ÿ]", text):
            return True
    else:
        forms = (*forms, *(form[:-1] for form in forms if form.endswith("s") and len(form) > _LONG))
    named = rf"(?:[A-Z][a-z]+\s)?(?:{'|'.join(map(re.escape, sorted(forms, key=len, reverse=True)))})"
    listed = "|".join(pattern.replace("{}", named) for pattern in language(lang).meaning.owner)
    return bool(re.search(rf"(?<![^\W\d_])(?:{listed})(?![^\W\d_])" if language(lang).spaced else listed, text))


def _mentions(text: str, forms: list[tuple[str, tuple[str, ...]]]) -> list[str]:
    """Return the names of a text as often as it mentions them, in order; none that is only the beginning of another."""
    longest: dict[int, tuple[int, str]] = {}
    for name, listed in forms:
        for place in places_of(text, listed):
            length = max(len(form) for form in listed if text.startswith(form, place))
            longest[place] = max(longest.get(place, (0, "")), (length, name))
    return [name for _, (_, name) in sorted(longest.items())]


def places_of(text: str, forms: tuple[str, ...]) -> list[int]:
    """Return where each mention of a name begins, in order."""
    if not forms:
        return []
    listed = "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))
    pattern = rf"(?<![A-Za-z\u0410-\u044f\u0451])(?:{listed})s?(?![a-z\u0430-\u044f\u0451])"
    return [match.start() for match in re.finditer(pattern, text)]
