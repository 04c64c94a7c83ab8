"""VIVA patterns: what they accept and refuse, as vanb's own program (2.1) does; what is not read is said."""

from __future__ import annotations

import pytest

from curation.verify.programs.viva import main, read_pattern, refusal
from curation.verify.programs.viva_expressions import VivaSyntaxError

CASES = [
    ("n (0<=n<=100);", "100\n", "101\n"),
    ("n (0<=n<=100);", "0\n", "00\n"),  # no leading zero
    ("n (0<=n<=100);", "7\n", "7"),  # the last line ends
    ("n (0<=n<=100);", "7\n", "7\n8\n"),
    ("{ n (0<=n<=100); }", "", "1\n\n2\n"),
    ("x y (0<x, 0<y);", "1 2\n", "1  2\n"),
    ("x y (0<x, 0<y);", "1 2\n", "1 2 \n"),
    ("x y (0<x, 0<y);", "1 2\n", " 1 2\n"),
    ("x y (0<x, 0<y);", "1 2\n", "1\t2\n"),
    ("n (1<=n<=5); {[*n] x y (0<x, 0<=y<10); }", "2\n1 2\n3 4\n", "2\n1 2\n"),
    ("n; <[*n] x (0<x<100)>;", "2\n5 6\n", "2\n5 6 7\n"),
    ("n; <[*n] x>; m;", "0\n5\n", "0\n\n5\n"),  # a line of no values is none
    ("<x (0<x)>;", "1 2 3\n", "1 0 3\n"),
    ("{[= x y (x=y=0)] x y (0<x, 0<y); }", "1 2\n3 4\n0 0\n", "1 2\n3 0\n0 0\n"),
    ('<[= s:string (s %% "END")] s:string>;', "A B END\n", "A B\n"),
    ("{ x (x#=1 || x[x#-2] < x[x#-1]); }", "1\n2\n3\n", "1\n2\n2\n"),
    ("{ x (x>0); [sum(x)<20] }", "9\n10\n", "9\n11\n"),
    ("{ x y (0<x, 0<y); [unique(x,y)] }", "5 6\n5 5\n", "5 6\n5 6\n"),
    ("x:double y:double (x!=y);", "0.1 0.2\n", "0.1 0.10000001\n"),  # within the epsilon
    ("x:double;", "-12.50\n", "1e3\n"),
    ('# javadouble="yes" # x:double;', "1e3\n", "one\n"),
    ('s:string (s %% "[A-C]+");', "ABC\n", "ABD\n"),
    ('x:double (x$ %% "[0-9]+\\\\.[0-9][0-9]");', "1.25\n", "1.2\n"),
    ("x@[3] y@[3] (0<x, 0<y);", "  1  2\n", "  1 2\n"),
    ("a:string@[2] @1@ y:string@[2];", "ab cd\n", "abxcd\n"),
    ("line:string@[]; n;", "any words at all\n3\n", "any words at all\n"),
    ("n m (1<=n<=1000000, n*m<=1000000);", "65536 65536\n", "1000 1001\n"),  # Java's whole numbers wrap around
    ("a:long b:int (a+b<=10000000000L);", "9999999999 1\n", "10000000000 1\n"),
    ("n;", "2147483647\n", "2147483648\n"),
    ("x (x/2*2=x && -7/2 = -3);", "4\n", "5\n"),
    ("n (n%2=0 ^^ n>10);", "11\n", "12\n"),
    ("{[*2] n; {[*2] m; [sum(m)+sum(n)<=20]} }", "1\n8\n10\n1\n2\n3\n", "1\n8\n11\n1\n2\n3\n"),
    ("n; {[*n] s:string (length(s)=n);}", "2\nab\ncd\n", "2\nab\nc\n"),
    ("x y (distance(x,y,0,0)<=5);", "3 4\n", "4 4\n"),
    ("<[*3] x y [(y[1]-y[0])*(x[2]-x[0]) != (y[2]-y[0])*(x[1]-x[0])]>;", "0 0 1 0 0 1\n", "0 0 1 1 2 2\n"),
    ("{ n (if(n>5,n,10-n)>6); }", "7\n2\n", "6\n"),
    ('# ignoreeoln="yes" # n; <[*n] x>;', "3\n1\n2\n3\n", "3\n1\n2\n"),
    ('# eofstyle="both" # n;', "3", "3\n\n"),
]


@pytest.mark.parametrize(("pattern", "good", "bad"), CASES)
def test_an_input_is_accepted_and_another_refused(pattern: str, good: str, bad: str) -> None:
    assert refusal(read_pattern(pattern), good) is None
    assert refusal(read_pattern(pattern), bad)


def test_a_refusal_names_the_line_and_the_constraint() -> None:
    pattern = read_pattern("n;\n{[*n] x (0 <= x < 9); }")
    assert refusal(pattern, "2\n8\n9\n") == "line 3: failed: 0 <= x < 9"
    assert refusal(pattern, "1\nä\n") == "a character that is not ASCII"
    assert refusal(pattern, f"1\n{'9' * 5000}\n") == f"line 2: {'9' * 5000!r} is no integer"


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("n (0<=m);", "m is not known"),
        ("n; n;", "n is there already"),
        ("n (n+1);", "no condition"),
        ("n (mine(n));", "there is no function mine"),
        ("n (sqrt(n,2)>1);", "sqrt does not take integer, integer"),
        ("s:string (s < 3);", "needs numbers"),
        ('s:string (s %% "[a-z&&[^b]]+");', "Java and Python read differently"),
        ('# eolnstyle="windows" # n;', "eolnstyle=windows is not read here"),
        ("n (n < 99999999999);", "too large"),
        ("{ n; ", "'}' wanted"),
        ("n (n < 3", "')' wanted"),
        ("", "a value wanted"),
        ("n; ?", "no token begins with '?'"),
    ],
)
def test_what_is_no_pattern_is_said(pattern: str, words: str) -> None:
    with pytest.raises(VivaSyntaxError, match=words.replace("(", r"\(").replace(")", r"\)")):
        read_pattern(pattern)


def test_as_a_program_it_ends_as_kattis_asks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import io
    import types

    for text, code in (("3\n", 42), ("x\n", 43)):
        monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=io.BytesIO(text.encode())))
        with pytest.raises(SystemExit) as end:
            main("n;")
        assert end.value.code == code
    assert capsys.readouterr().err == "line 1: 'x' is no integer\n"
