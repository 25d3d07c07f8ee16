"""Text in a request that looks as if it were written anew each time: a cue beside a time, an id or a path.

A date, an id or a path alone is no sign: documents are full of them. Only text that says of itself that
it is of this moment, this user or this machine is suspected, and not within an example.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hotprefix.doctor.lint.suspect import Cause, Suspect

_GAP = (
    r"[\s\"'`*_()（）\[\]<>|]{0,4}(?:is|are|was|now|it is|为|是|:|：|=|-|,|，|\s){0,4}[\s\"'`*_(（\[<>]{0,4}"
)
_WEEKDAY = (
    r"(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|Mon|Tue|Wed|Thu|Fri|Sat|Sun"
    r"|(?:星期|周)[一二三四五六日天])"
)
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
_DATE = (
    r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[/.]\d{1,2}[/.]\d{2,4}"
    rf"|{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+\d{{4}}|\d{{1,2}}(?:st|nd|rd|th)?\s+{_MONTH},?\s+\d{{4}}"
    r"|\d{4}\s*年\s*\d{1,2}\s*月\s*\d{1,2}\s*[日号])"
)
_CLOCK = (
    r"(?:\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s?[AaPp]\.?[Mm]\b\.?)?(?:\s?(?:Z|UTC|GMT|CST|[+-]\d{2}:?\d{2})\b)?"
    r"|\d{1,2}\s*[点时](?:\s*\d{1,2}\s*分)?(?:\s*\d{1,2}\s*秒)?)"
)
_MOMENT = (
    rf"(?:(?:{_WEEKDAY},?\s*)?(?:{_DATE}[T ,，]{{0,2}}(?:{_WEEKDAY},?\s*)?)?{_CLOCK}"
    r"|1\d{9}(?:\d{3})?(?:\.\d+)?(?!\w))"
)
_DAY = rf"(?:{_WEEKDAY},?\s*)?{_DATE}(?:\s*{_WEEKDAY})?"

_TIME_CUE = (
    r"(?:\b(?:current|present|local|server|system|request|report(?:ing)?)[\s_-]+(?:date\s*(?:and|&|/|-)\s*time|date|"
    r"time\s?stamp|time|datetime)\b|\bnow\b|\btoday(?:'s date)?\b|\bthe (?:time|date) is\b"
    r"|\bit is(?: now| currently)\b|\btime\s?stamp\b"
    r"|(?:当前|现在|目前|此刻|今天|请求|报告|系统|服务器|北京)(?:的)?(?:系统)?"
    r"(?:日期和时间|日期时间|时间|日期|时刻)"
    r"|(?<![截终])现在是|今天是|时间戳)"
)
_ID_VALUE = (
    r"(?P<value>[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
    r"|(?=[\w-]*\d)[A-Za-z0-9][\w-]{3,})"
)
_ID_CUE = (
    r"(?:\b(?:user|customer|visitor|session|request|trace|conversation|correlation|run|tenant|device|thread)"
    r"[ _-]?(?:id|uuid|identifier|no|number)|\b(?:session|request|trace|nonce)|\bcache[- _]?bust\w*"
    r"|(?:会话|请求|用户|客户|对话|追踪|流水|设备)\s*(?:ID|Id|id|编号|号|标识))"
)
_ID_GAP = r"[\"'`*_]{0,3}\s{0,2}(?:(?:is\s?)?[:：=]|是|为|is)\s{0,2}[\"'`*_(<]{0,3}"
_SHARED = r"(?!/(?:workspaces?|app|repo|src|code|testbed|mnt/data|tmp|root|project|sandbox)\b)"
"""Folders of containers, which are the same for everybody."""
_PATH = rf"{_SHARED}(?:[A-Za-z]:\\|/|~/)[\w.@~/\\-]{{2,}}"

_PATTERNS: tuple[tuple[Cause, re.Pattern[str]], ...] = tuple(
    (cause, re.compile(pattern, flags | re.ASCII if cause is not Cause.HEADER else flags))
    for cause, pattern, flags in (
        (Cause.HEADER, r"^[ \t]*x-[\w-]*header[ \t]*:[^\n]*=[^\n]*", re.IGNORECASE | re.MULTILINE),
        (Cause.TIME, rf"{_TIME_CUE}{_GAP}{_MOMENT}", re.IGNORECASE),
        (Cause.DAY, rf"{_TIME_CUE}{_GAP}{_DAY}", re.IGNORECASE),
        (Cause.ID, rf"{_ID_CUE}{_ID_GAP}{_ID_VALUE}", re.IGNORECASE),
        (
            Cause.ENV,
            rf"(?:\b(?:cwd|pwd|(?:current |working )+dir(?:ectory)?)\b|工作目录|当前目录){_GAP}{_PATH}",
            re.IGNORECASE,
        ),
        (
            Cause.ENV,
            r"(?:\b(?:current|git|active) branch\b|当前分支)\s*(?:is|为|是|:|：|=)\s*[\"'`]?[\w./-]{2,}",
            re.IGNORECASE,
        ),
        (
            Cause.ENV,
            r"\b(?:git status|host ?name)\s*(?:\([^)\n]{0,30}\)\s*)?[:=]\s*\S[^\n]{0,40}",
            re.IGNORECASE,
        ),
    )
)
_HOME = re.compile(r"(?:/home/|/Users/|[A-Za-z]:\\+Users\\+)[\w.-]{2,}(?:[/\\]+[\w.@-]+)*")
_SHARED_HOMES = re.compile(
    r"(?:/home/|/Users/|\\Users\\+)(?:user|username|you|your-name|me|name|app|node|runner|ubuntu)\b",
    re.IGNORECASE,
)
_EXAMPLE = re.compile(
    r"\bexamples?\b|\bfor instance\b|\bsample\b|^\s*(?:Q|A|Input|Output)\s*[:：]"
    r"|例如|示例|比如|样例|例子|输入[:：]|输出[:：]",
    re.IGNORECASE | re.MULTILINE,
)
"""Words that announce examples for the rest of a paragraph."""
_SUPPOSED = re.compile(r"\be\.g\.|\bsuch as\b|\b(?:if|when)\b|\bformat\b|格式|假设|如果", re.IGNORECASE)
"""Words that suppose something, for the rest of a sentence."""
_SENTENCE = re.compile(r"[.!?;](?=\s)|[。！？；\n]")
_BEFORE_AN_EXAMPLE = 160
_QUICK = re.compile(r"\d|branch|分支|header|git status|host ?name|[cp]wd|dir|目录", re.IGNORECASE)


def suspects_in(text: str) -> Iterator[Suspect]:
    """What in a system prompt may be of this moment, user or machine; the first of each cause and cue."""
    if not _QUICK.search(text):
        return
    taken: list[tuple[int, int]] = []
    for cause, pattern in _PATTERNS:
        for match in pattern.finditer(text):
            start, end = match.span()
            if any(start < other_end and other_start < end for other_start, other_end in taken):
                continue
            if cause is not Cause.HEADER and _is_example(text, start):
                continue
            taken.append((start, end))
            yield Suspect(cause, start, end, match.group().strip())


def homes_in(text: str) -> Iterator[Suspect]:
    """Folders of one user in a tool's definition."""
    for match in _HOME.finditer(text):
        if not _SHARED_HOMES.match(match.group()) and not _is_example(text, match.start()):
            yield Suspect(Cause.ENV, match.start(), match.end(), match.group())


def _is_example(text: str, start: int) -> bool:
    """Whether it is quoted, or words just before, in the same paragraph, announce an example."""
    if text[start - 1 : start] in tuple("“‘「『«") and start:
        return True
    before = text[max(0, start - _BEFORE_AN_EXAMPLE) : start].rsplit("\n\n", 1)[-1]
    sentence = _SENTENCE.split(before)[-1]
    return _EXAMPLE.search(before) is not None or _SUPPOSED.search(sentence) is not None
