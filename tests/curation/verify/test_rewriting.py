r"""A reference is never changed by a rewriting: the verifier reads both texts as one answer, or the original stays."""

from __future__ import annotations

import time

import pytest

from curation.verify.rewriting import keep_reference, reads_the_same


def test_layout_may_go() -> None:
    pairs = {"$4$ .": "$4$", r"\ 4 \qquad": "4", r"12 \\": "12", r"\noindent 12": "12", "1,2\u200b": "1,2"}
    pairs |= {"90 miles": "90 miles."} | {
        rf"\text{{{text}}}": text for text in ("12 cm", "blue whale", "no real roots")
    }
    for original, rewritten in pairs.items():
        assert keep_reference(original, rewritten) == rewritten


@pytest.mark.parametrize(
    ("original", "rewritten"),
    [
        (r"\left(\begin{array}{cc}1&2\\3&4\end{array}\right)", r"\left( 1&2\\3&4 \right)"),
        ("1<p and q>2", "1 \n2"),
        ("12", "1"),
        ("1.5", "15"),
        (r"3\frac{1}{2}", r"\frac{1}{2}"),
        ("x=1 and y=2", "x=1"),
        ("2+3", "5"),
        ("blue whale", "blue"),
        (r"\text{blue whale}", "whale"),
        ("x" * 5000, "x" * 4999),
        # the original cannot be judged against, the rewritten one can: a person decides
        ("4 &", "4"),
        (r"\frac{1}{2} \\ \end{array}", r"$\frac{1}{2}$"),
    ],
)
def test_what_reads_otherwise_stays(original: str, rewritten: str) -> None:
    assert keep_reference(original, rewritten) == original


def test_nothing_is_computed() -> None:
    towers = ("9^{9^{9^{9^{9}}}}", "9^{9^{9^{9^{9^{9}}}}}")
    begun = time.process_time()
    assert not reads_the_same(*towers)
    assert keep_reference(*towers) == towers[0]
    assert time.process_time() - begun < 5
