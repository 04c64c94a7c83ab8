"""Words that point at options, by language: why a question does not stand without them.

Python expressions, searched in the sentences that ask. `TRIGGERS` are literals of which one must be there for the
English or the Chinese expression to match at all; they are tried first, since most questions hold none.
"""

from __future__ import annotations

import re

# "Which of the following is the value of X?" asks for one thing, and the options only repeat it.
WHICH = (
    r"which\s+(?:one\s+)?of\s+(?:the\s+)?(?:following|these|given)(?:\s+(?:numbers?|values?|expressions?|fractions?"
    r"|amounts?|choices?|options?|quantit(?:y|ies)|answers?|percent(?:age)?s?))?"
)
# "Which of the following is the largest prime number?" compares the options: nothing else says of what it is the most.
_MOST = "(?:greatest|largest|smallest|biggest|least|most|highest|lowest|longest|shortest|heaviest|lightest|closest)"
OPEN_WHICH = re.compile(
    rf"(?i)\b{WHICH}\s+(?:correctly\s+)?(?:is|are|gives?|equals?|represents?|shows?|expresses|denotes|indicates"
    rf"|would\s+be)\s+(?:equal\s+to\s+)?(?=the\s+(?!same|best|only|reason|following|correct\s+(?:way|statement"
    rf"|order)|{_MOST}(?:\s+[\w-]+){{0,3}}\s*(?:[?.:]|$))|(?:\w+'s)\s)"
)
EQUAL_WHICH = re.compile(rf"(?i)\b{WHICH}\s+(?:is\s+(?:equal|equivalent)\s+to|equals)\s+(?=\$|\\\(|\d|the\s)")

# Words that point at options, by language; whatever matches in the question is the evidence for refusing.
POINTS_EN = re.compile(
    r"""(?ix)
    \b(?:of|from|among)\s+the\s+(?:following|options|choices|answers|given\s+(?:options|choices|answers))\b
    | \bthe\s+following\s+(?:\w+\s+){0,3}(?:is|are|can|could|cannot|must|may|would|will|has|have|does|do
        |represents?|shows?)\b
    | \b(?:which|what)\s+(?:\w+\s+){0,2}(?:below|above)\b | \bfollowing\s+(?:options|choices|statements?|answers
        |alternatives)\b
    | \bwhich\s+(?:one\s+|two\s+)?of\b
    | \b(?:what|which)\s+is\s+(?:the\s+)?(?:greatest|largest|smallest|biggest|least|most|highest|lowest|longest
        |shortest|heaviest|odd)\s*(?:number|fraction|value|decimal|one|amount)?\s*\?
    | \b(?:below|above)\s+(?:is|are|has|have|can)\b
    | \bwhich\s+(?:one|option|choice|statement|expression|equation|inequality|graph|function|formula|description
        |sentence|answer|pair|set|group
        |number|fraction|decimal|value|figure|shape|symbol|sign|digit|list|item|table|diagram|phrase|word
            |conclusion|property|unit|system|quantity|integer|point|term|ratio|method|model|interval|order
            |statements|expressions|equations|numbers)s?\s
        (?!of\s+(?:days|months))
    | \b(?:could|can|may|might|must|cannot|can't|can\s+not)\s+(?:\w+\s+){0,3}?(?:be|equal|represent|have|describe
        |take)\b(?!\s+(?:the\s+)?(?:(?:least|greatest|largest|smallest|maximum|minimum|highest|lowest|most|fewest
        |total\s+number|formed|made|arranged|chosen|selected|seated|placed|drawn|used|expressed|written|found
        |obtained|divided|bought|filled|put|packed|cut|completed|done|seen|assigned|ordered|distributed|purchased
        |read|built|produced|printed|painted|created|rearranged|determined|played|covered|held|given|taken|left
        |distinct)))
    | \bpossible\s+(?:values?|answers?|solutions?|numbers?|lengths?|areas?|perimeters?|dimensions|reasons?)\s+(?:of
        |for|to)?\b(?<!\bthe\spossible\svalues\sof) | \ba\s+possible\b
    | \b(?:closest|nearest|approximate(?:ly)?|approx\.?|about\s+how|roughly|estimated?|best\s+(?:estimate
        |approximation|describes?|represents?|answer|choice|expressed|option))\b(?!\s+(?:integer|whole|tenth
        |hundredth|thousandth|hundred|ten|thousand|cent|dollar|degree|percent|minute|second|unit|number|centimeter
        |meter|foot|inch|mile))
    | \b(?:true|false|correct|incorrect|wrong|equivalent|not\s+necessarily|always|never|except|describes?|explains?
        |best)\b(?=[^.]{0,80}(?:\?|:|$|is\s*$|are\s*$))
    | \b(?:answer|option|choice)s?\s+(?:choices?|options?|[A-E])\b | \beach\s+of\s+the\s+following\b
        | \ball\s+of\s+the\s+following\b
    | \b(?:is|are)\s+(?:NOT|not)\b[^.]{0,60}(?:\?|$) | \bnot\b[^.]{0,30}____ | \bdivisible\s+by\s*____
        | \bwhat\s+is\s+(?:the|a)\s+(?:multiple|factor|divisor)\b
    | \bequivalent\s+(?:fraction|expression|equation|form)s?\b
    """
)
POINTS_EN_HARMLESS = re.compile(
    r"(?i)\bhow\s+many\s+of\s+the\s+following\b|\bmakes?\s+the\s+(?:\w+\s+)?(?:equation|inequality"
    r"|statement)\s+true\b|\b(?:in)?correct\s+(?:answers?|results?|instructions|problems|questions|digits?"
    r"|order\s+of)\b|(?<!\bwhich\s)(?<!\bone\s)(?<!\bwhat\s)\bof\s+the\s+following\s+(?:arithmetic|geometric|infinite|finite|sequence|series|equation"
    r"|function|expression|numbers?|fractions?|data|integral|set)\b(?=[^?]*[$\d])|\bwhich\s+(?:digit|number|term"
    r"|integer)\s+(?:is\s+in|in)\s+the\b|\bwhat\s+(?:number|fraction|digit|value|decimal)\b"
    r"|\bthe\s+number\s+of\s+(?:possible|different)\b|\bhow\s+many\s+(?:different\s+|distinct\s+)?possible\b"
    r"|\b(?:sum|product|number|greatest|largest|smallest|least|maximum|minimum|average|total|all|range"
    r"|set)\s+(?:\w+\s+){0,4}possible\s+\w+|\b(?:all|the)\s+possible\s+values\b|\b(?:greatest|largest|smallest"
    r"|least|maximum|minimum|highest|lowest)\s+possible\b|\bif\s+possible\b|\bas\s+(?:many|much|few"
    r"|little)\s+as\s+possible\b"
    r"|\bto\s+the\s+nearest\b|\bcorrect\s+to\b|\bcorrectly\b|\bwhich\s+(?:number|integer|digit)\s+(?:multiplied"
    r"|added|divided|subtracted|should|must|will|when)\b|\bestimated?\s+(?:that|time|cost|to\s+be)\b"
    r"|\bfollowing\s+(?:conditions|equation|system|table|data|rules?|expression)\b"
)
POINTS: dict[str, re.Pattern[str]] = {
    "zh": re.compile(
        r"(?<!所有)(?<!一切)(?<!全部)可能(?!性|的?情况|取值)[^，。]{0,12}(?:多少|几|是|为|有|____)|(?:下列|以下|下面"
        r"|下述)(?:[^，。．,]{0,14})(?:[哪是的中各四五三个]|选项|说法|命题|结论|判断|关系|函数|图|式)|选项|正确的(?:一项|选项)?\s*(?:是|为|有|____)|(?:不正确"
        r"|错误|成立|恒成立|不成立|合理|恰当|合适|符合[^，。]{0,12})的\s*(?:一项|一个|选项)?\s*(?:是|为|有|____)"
        r"|可以(?:是|为|等于|取)|不可能|不能(?:是|为|等于|取)|不等于|最接近|大约|约(?:是|为|等于|有|____)|估[计算一]|近似|应填|列式|算式(?:是|为|____)"
        r"|列(?:出的)?方程|方程组?(?:应|可以)?列"
        r"|哪(?:个|一个|项|一项|种|一种|些|幅|组|一组|句|条|两|几)|一定(?:是|为|有|能|成立)|必(?:然|定)?(?:是|为|有|成立)|属于|(?:大小)?关系(?:是|为|____)"
        r"|比较[^，。]{0,20}(?:大小|____)|的(?:图象|图像|形状|图形)(?:大致)?(?:是|为|____)"
        r"|(?:其中|叙述|说法|描述)[^，。]{0,8}(?:正确|错误|真|假)|充分|必要|正确的[是有____]|正确[的]?(?:[是为]?\s*____|$)"
    ),
    "fr": re.compile(r"(?i)\b(?:laquelle|lequel|lesquel(?:le)?s)\b|parmi\s+les|suivante?s\s*[:?]|ci-dessous"
    r"|\b(?:vraie?s?|fausses?|faux|correcte?s?|exacte?s?)\b|peut\s+être|environ|proche"),
    "es": re.compile(r"(?i)\bcuál(?:es)?\s+de\s+(?:las|los|est|l)|\bsiguientes\b|\b(?:verdader[oa]s?|fals[oa]s?"
    r"|correct[oa]s?|incorrect[oa]s?)\b|puede\s+(?:ser|n)|aproximad|cercan"),
    "it": re.compile(r"(?i)\bqual[ei]?\s+(?:di|dei|delle|tra|fra)\b|\bseguenti\b|\b(?:ver[ao]|fals[ao]"
    r"|corrett[ao]|esatt[ao])\b|può\s+essere|approssim|circa"),
    "de": re.compile(r"(?i)\bwelche[rsn]?\s+(?:der|von|dieser|aussage|gleichung|zahl|antwort)|\bfolgende[nr]?\b"
    r"|\b(?:richtig|falsch|wahr|korrekt)\b|\bkann\b.{0,30}\bsein\b|ungefähr|etwa|trifft"),
    "ru": re.compile(r"(?i)как(?:ое|ая|ой|ие)\s+из|котор(?:ое|ая|ый|ые)\s+из|следующ|перечисленн|приведенн"
    r"|верн[оыа]|неверн|может\s+(?:быть|равн)|примерно|приблиз|ниже"),
}  # fmt: skip
# 下列三个命题…其中真命题的个数是: a count of things that the question itself lists
COUNTS_ZH = re.compile(r"(?:个数|数目|有几个|有多少个?|有____个|共有)[^，。．]{0,10}$")
LISTS = re.compile(r"[①②]|[（(]\s*\$*[1２2]\$*\s*[)）]|[甲乙丙][）)、]")

# Options that speak of other options.
META_OPTION = re.compile(
    r"(?i)\b(?:none|all|any|both|neither|either|each|some|two|more\s+than\s+one)\s+(?:of\s+)?(?:the\s+)?(?:above"
    r"|these|those|them|following|options|choices|others?)\b|^\W*(?:none|all|neither|both|nota|other)\W*$"
    r"|\bnot\s+(?:listed|given|here)\b"
    r"|\b(?:cannot|can't|can\s+not|could\s+not|impossible\s+to|unable\s+to)\s+(?:be\s+)?(?:determine[d]?|tell|say"
    r"|find|found|known|know|answered?|calculated?)|\bnot\s+(?:enough|sufficient)\b|\binsufficient\b"
    r"|\bindeterminate\b|\binadequate\b|impossible\s+to"
    r"|^\W*(?:[A-E]|[IVX]{1,4})(?:\s*(?:,|and|&|or|、|和)\s*(?:[A-E]|[IVX]{1,4}))+(?:\s+only)?\W*$|\bonly\b"
    r"|以上|上述|都(?:对|错|不对|不是|不正确|正确|有可能|不可能)|(?:不能|无法|不可以?)确定|不确定|无法(?:判断|比较|计算)|条件不足|其[他它]|皆(?:对|错|非)|均(?:对|错|不)"
    r"|ни\s+один|все\s+перечисл|невозможно|ninguna|todas\s+las|nessuna|tutte\s+le|aucune|toutes\s+les|keine\s+der"
    r"|alle\s+genannten"
)

TRIGGERS = {
    "en": (
        "which", "following", "below", "above", "smallest", "largest", "greatest", "biggest", "least", "most",
        "highest",
        "lowest", "longest", "shortest", "heaviest", "odd", "could", "can", "may", "might", "must", "possible",
        "closest",
        "nearest", "approx", "about how", "roughly", "estimate", "best", "true", "false", "correct", "wrong",
        "equivalent",
        "multiple", "factor", "divisor",
        "not ", "always", "never", "except", "describe", "explain", "answer", "option", "choice",
    ),
    "zh": (
        "可能", "下列", "以下", "下面", "下述", "选项", "正确", "错误", "成立", "合理", "恰当", "合适", "符合",
        "可以", "不能", "不等于", "接近", "约", "估", "近似", "应填", "列式", "算式", "方程", "哪", "一定", "必",
        "属于", "关系", "比较", "图象", "图像", "形状", "图形", "其中", "叙述", "说法", "描述", "充分",
    ),
}  # fmt: skip
