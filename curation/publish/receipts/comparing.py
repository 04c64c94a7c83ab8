"""Where two receipts differ, in sentences."""

from __future__ import annotations

from collections.abc import Collection

from curation.publish.receipts.figures import Figure, Receipt


def differing_figures(stated: Receipt, computed: Receipt, names: Collection[str]) -> list[str]:
    """Return a sentence for each figure that is stated otherwise than it comes out.

    Args:
        names: of the figures that were computed again, those that came out of it included.
    """
    sentences = []
    for name in sorted(names):
        said, came = stated.figure(name), computed.figure(name)
        if said == came:
            continue
        if said is None or came is None:
            words = "comes out, and is not in the receipt" if said is None else "is stated, and does not come out"
            figure = came if said is None else said
            assert figure is not None, name
            sentences.append(f"{name}: {_value(figure)} {words}.")
        elif _numbers(said) != _numbers(came):
            sentences.append(f"{name}: the receipt states {_value(said)}, {_value(came)} comes out.")
        else:
            sentences.append(f"{name}: the figure is right, but what the receipt says of it was changed.")
    return sentences


def _value(figure: Figure) -> str:
    n = "" if figure.n is None else f" of {figure.n:,}"
    return f"{figure.text}{n}" + (f" [{figure.counted}]" if figure.counts else "")


def _numbers(figure: Figure) -> tuple[object, ...]:
    return figure.value, figure.interval, figure.n, dict(figure.counts)
