"""The report in response headers: ASCII only, and no word of the prompt."""

from __future__ import annotations

from urllib.parse import quote

from hotprefix.diagnosis.reason import MissReport, Reason

_LONGEST_PATH = 300
_LONGEST_DETAIL = 120
_LONGEST_ADVICE = 600
# Visible ASCII without `%`, which announces encoded bytes, and `;`, which parts fields.
_SAFE = "!\"#$&'()*+,/:<=>?@[\\]^`{|}"


def report_headers(report: MissReport) -> list[tuple[str, str]]:
    """Names and values; values are visible ASCII and blanks, other characters percent-encoded UTF-8.

    The divergence is `path;block;token`. The Chinese advice is an extended value of RFC 8187.
    """
    headers = [
        ("x-hotprefix-miss-reason", str(report.reason)),
        ("x-hotprefix-matched-tokens", str(report.matched)),
        ("x-hotprefix-ideal-tokens", str(report.ideal)),
        ("x-hotprefix-lost-tokens", str(report.lost_tokens)),
    ]
    if report.reason is Reason.NONE:
        return headers
    if report.detail:
        headers.append(("x-hotprefix-miss-detail", _ascii(report.detail[:_LONGEST_DETAIL])))
    if report.lost_money:
        headers.append(("x-hotprefix-lost-money", f"{report.lost_money:.8f}"))
    headers.append(("x-hotprefix-avoidable", "true" if report.avoidable else "false"))
    headers.append(("x-hotprefix-evidence", str(report.evidence)))
    found = report.divergence
    if found is not None:
        path = quote(_bytes(found.path[:_LONGEST_PATH]), safe=_SAFE)
        headers.append(("x-hotprefix-divergence", f"{path};{found.block};{found.token}"))
    headers.append(("x-hotprefix-advice", _ascii(report.advice_en[:_LONGEST_ADVICE])))
    chinese = quote(_bytes(report.advice_zh[:_LONGEST_ADVICE]), safe="")
    headers.append(("x-hotprefix-advice-zh", f"UTF-8''{chinese}"))
    return headers


def _ascii(text: str) -> str:
    return quote(_bytes(text), safe=_SAFE + "; ").strip()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
