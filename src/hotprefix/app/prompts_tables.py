"""Prompts, comparisons and review lists in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hotprefix.doctor.prompts.experiment.comparison import Comparison, Finding, Verdict
from hotprefix.doctor.prompts.experiment.words import amount, effect, probability, reading
from hotprefix.doctor.prompts.prompt import Prompt
from hotprefix.doctor.prompts.registry import Registry
from hotprefix.doctor.prompts.review.due import ReviewList
from hotprefix.doctor.prompts.version import Version

_STYLE = {
    Verdict.BETTER: "green",
    Verdict.WORSE: "red",
    Verdict.TOO_FEW: "yellow",
    Verdict.NOT_JUDGED: "yellow",
}


def show_prompts(registry: Registry, out: Console) -> None:
    """One line a prompt."""
    table = Table(header_style="bold")
    for heading in ("prompt", "sent", "versions", "owner", "scene", "reviewed"):
        table.add_column(heading, overflow="fold")
    for prompt in registry.prompts.values():
        dates = [version.reviewed for version in prompt.live if version.reviewed is not None]
        table.add_row(
            Text(prompt.name),
            Text(sent_words(prompt)),
            str(len(prompt.versions)),
            Text(prompt.owner or "–"),
            Text(prompt.scene or "–"),
            str(min(dates)) if dates else "never",
        )
    out.print(table)


def sent_words(prompt: Prompt) -> str:
    """Which versions are sent, with their shares."""
    if prompt.experiment is not None:
        return ", ".join(f"{arm} {part:.0%}" for arm, part in prompt.experiment.shares.items())
    return prompt.released.name if prompt.released is not None else "–"


def show_versions(prompt: Prompt, tokens: dict[str, str], out: Console) -> None:
    """The versions of a prompt."""
    table = Table(title=prompt.name, title_justify="left", header_style="bold")
    for heading in ("version", "status", "reviewed", "size", "digest", "file"):
        table.add_column(heading, overflow="fold")
    for version in prompt.versions.values():
        table.add_row(*map(Text, _version_cells(version, tokens)))
    out.print(table)


def _version_cells(version: Version, tokens: dict[str, str]) -> Sequence[str]:
    return (
        version.name,
        version.status.value,
        str(version.reviewed or "–"),
        tokens.get(version.name, "–"),
        "–" if version.digest is None else version.digest[:19],
        str(version.file),
    )


def show_comparison(found: Comparison, out: Console) -> None:
    """Arms, findings, cautions."""
    arms = Table(title=f"{found.prompt}, by {found.unit}", title_justify="left", header_style="bold")
    for heading in ("arm", "weight", "requests", f"{found.unit}s", "ended by"):
        arms.add_column(heading, overflow="fold")
    for arm in found.arms:
        ends = ", ".join(f"{name} {count:,}" for name, count in arm.finishes.items())
        weight = "–" if arm.weight is None else f"{arm.weight:.1%}"
        arms.add_row(Text(arm.arm), weight, f"{arm.requests:,}", f"{arm.units:,}", Text(ends))
    out.print(arms)
    table = Table(header_style="bold")
    for heading in ("arm", "metric", found.control, "difference", "test", "p", "verdict"):
        table.add_column(heading, overflow="fold")
    for finding in found.findings:
        table.add_row(*_finding_cells(finding), style=_STYLE.get(finding.verdict, ""))
    out.print(table)
    tests = sum(finding.outcome is not None for finding in found.findings)
    out.print(
        f"Intervals of {1 - found.alpha:.0%}; p corrected by Holm for {tests} tests.",
        style="dim",
        highlight=False,
    )
    for caution in found.cautions:
        out.print(f"! {caution}", style="yellow", highlight=False, markup=False)


def _finding_cells(finding: Finding) -> Sequence[Text]:
    values = ("–", "–") if finding.values is None else tuple(amount(v, finding.unit) for v in finding.values)
    cells = (
        f"{finding.arm} {values[0]}",
        finding.title,
        values[1],
        effect(finding),
        "–" if finding.outcome is None else finding.outcome.test,
        probability(finding.corrected),
        reading(finding),
    )
    return [Text(cell) for cell in cells]


def show_review(found: ReviewList, out: Console) -> None:
    """What is due, the most urgent first."""
    if not found.items:
        out.print(
            f"Nothing is due of {found.prompts} prompts with {found.versions} versions.", highlight=False
        )
        return
    table = Table(title=f"Prompts to review, {found.day}", title_justify="left", header_style="bold")
    for heading in ("prompt", "due", "why", "owner"):
        table.add_column(heading, overflow="fold")
    for item in found.items:
        style = "red" if item.due.is_urgent else ""
        table.add_row(Text(item.label), Text(item.due.value, style), Text(item.why), Text(item.owner or "–"))
    out.print(table)
