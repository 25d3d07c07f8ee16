"""What kind of text it is that changed: a time, an id, the environment, a client's own header."""

from __future__ import annotations

import re
from enum import StrEnum

_AROUND = 160
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_CLOCK = (
    r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s?[AaPp]\.?[Mm]\b\.?)?(?:\s?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2}))?"
)


class Volatile(StrEnum):
    """Kinds of text that change from one request to the next."""

    TIME = "VOLATILE_TIME"
    ENV = "VOLATILE_ENV"
    ID = "VOLATILE_ID"
    CLIENT_HEADER = "KNOWN_CLIENT_HEADER"
    OTHER = "OTHER"


# ASCII: between a Chinese character and a digit or letter there is a border.
_TIMES = (
    re.compile(rf"\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}(?:[T ,]+{_CLOCK})?", re.ASCII),
    re.compile(r"\d{1,2}[/.]\d{1,2}[/.]\d{2,4}", re.ASCII),
    re.compile(_CLOCK, re.ASCII),
    re.compile(rf"\b{_MONTH}\.?\s+\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s+\d{{4}})?\b", re.ASCII),
    re.compile(rf"\b\d{{1,2}}(?:st|nd|rd|th)?\s+{_MONTH}\.?(?:,?\s+\d{{4}})?\b", re.ASCII),
    re.compile(rf"\b{_MONTH}\s+\d{{4}}\b", re.ASCII),
    re.compile(r"\b(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?\b", re.ASCII),
    re.compile(r"(?:\d{2,4}\s*年\s*)?\d{1,2}\s*月(?:\s*\d{1,2}\s*[日号])?", re.ASCII),
    re.compile(r"\d{1,2}\s*[日号]", re.ASCII),
    re.compile(r"\d{1,2}\s*[点时]\s*(?:\d{1,2}\s*分)?(?:\s*\d{1,2}\s*秒)?", re.ASCII),
    re.compile(r"(?:上午|下午|凌晨|早上|晚上|中午)", re.ASCII),
    re.compile(r"(?:星期|周|礼拜)[一二三四五六日天]", re.ASCII),
    re.compile(r"(?<![\w.])1\d{9}(?:\d{3})?(?:\.\d+)?(?!\w)", re.ASCII),
    re.compile(r"\b\d{8}[T_-]\d{4,6}Z?\b", re.ASCII),
)
_IDS = (
    re.compile(r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b", re.ASCII),
    re.compile(r"(?<![0-9A-Za-z])(?=[a-fA-F]*\d)[0-9a-fA-F]{7,}(?![0-9A-Za-z])", re.ASCII),
    re.compile(r"(?<!\w)(?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{14,}(?!\w)", re.ASCII),
    re.compile(r"(?<!\w)\d{6,}(?!\w)", re.ASCII),
    re.compile(
        r"(?i)(?:\b(?:[\w-]*id|user|account|session|request|trace|req|sess|conversation|ticket|order|nonce|seed|no)\b"
        r"|会话|用户|编号|请求|订单|工单)[^\w\n]{0,4}(?:是|为|号)?[^\w\n]{0,3}(?=[\w-]*\d)[\w-]+",
        re.ASCII,
    ),
)
_HEADER = re.compile(r"^\s*x-[\w-]*header\s*:", re.IGNORECASE)
_ENV_LINE = re.compile(
    r"(?i)^[\W_]*(?:[\w']+\s){0,2}(?:(?:cwd|pwd|working dir(?:ectory)?|workspace|branch|commit|platform|"
    r"hostname|os version|shell|git status|is a git repo\w*|untracked|modified|uptime)\b|"
    r"工作目录|当前目录|分支|主机名)[^:：=\n]{0,16}[:：=](?!=)"
)
_STATUS_LINE = re.compile(r"^\s?(?:[MADRCU?!]{1,2})\s+\S+$")
_FILE_LINE = re.compile(r"^[\s*+|`├└─-]*(?:[\w.@~-]+/)*[\w.@-]+(?:\.\w{1,6}|/)\s*$")
_PATH = re.compile(r"(?:[A-Za-z]:)?(?:[/\\][\w.@~-]+){2,}")


def volatile_kind(old: str, new: str, at: int) -> Volatile:
    """What changed at position `at`, where two texts first differ.

    Only what is there in both texts, at that place, and different is named; else it is `OTHER`. A
    line of files or of `git status` may also be there in one of them alone.
    """
    start = max(0, at - _AROUND)
    old, new, at = old[start : at + _AROUND], new[start : at + _AROUND], at - start
    old_line, new_line = _line_at(old, at), _line_at(new, at)
    if _HEADER.match(old_line) and _HEADER.match(new_line):
        return Volatile.CLIENT_HEADER
    if any(_covers(pattern, old, new, at) for pattern in _TIMES):
        return Volatile.TIME
    if _is_environment(old, new, at, old_line, new_line):
        return Volatile.ENV
    if any(_covers(pattern, old, new, at) for pattern in _IDS):
        return Volatile.ID
    return Volatile.OTHER


def _is_environment(old: str, new: str, at: int, old_line: str, new_line: str) -> bool:
    if _ENV_LINE.search(old_line) and _ENV_LINE.search(new_line):
        return True
    if _covers(_PATH, old, new, at):
        return True
    return any(
        pattern.match(line) is not None
        for line in (old_line, new_line)
        for pattern in (_STATUS_LINE, _FILE_LINE)
    )


def _covers(pattern: re.Pattern[str], old: str, new: str, at: int) -> bool:
    """Whether both texts have a match at `at` that is not the same."""
    one, other = _match_at(pattern, old, at), _match_at(pattern, new, at)
    return one is not None and other is not None and one != other


def _match_at(pattern: re.Pattern[str], text: str, at: int) -> str | None:
    for match in pattern.finditer(text):
        if match.start() > at:
            break
        if at <= match.end():
            return match.group()
    return None


def _line_at(text: str, at: int) -> str:
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    return text[start : end if end >= 0 else len(text)]
