"""Parts of messages that are sentences themselves, in both languages."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Phrase:
    """The same in English and Chinese."""

    en: str
    zh: str

    def __str__(self) -> str:
        return self.en


NOTHING = Phrase("", "")

ESTIMATED = Phrase(
    "(An estimate; --tokenizer or --model counts.)", "(估计值;用 --tokenizer 或 --model 可精确计数。)"
)


def counted(name: str) -> Phrase:
    """With which tokenizer; an estimate if `name` is empty."""
    if not name:
        return ESTIMATED
    return Phrase(f"(Counted with {name}.)", f"(按 {name} 的分词器计数。)")


def lost_behind(offset: int, total: int, lost: int, *, is_exact: bool) -> Phrase:
    """What a change at token `offset` of `total` costs."""
    about, zh_about = ("", "") if is_exact else ("about ", "约")
    if lost <= 0:
        return Phrase(
            f"At {about}token {offset:,} of {total:,}; nothing fixed follows it yet.",
            f"位于{zh_about}第 {offset:,} 个 token(共 {total:,} 个);其后暂无固定内容。",
        )
    return Phrase(
        f"At {about}token {offset:,} of {total:,}: {lost:,} behind it could be read and are computed again.",
        f"位于{zh_about}第 {offset:,} 个 token(共 {total:,} 个):"
        f"其后本可命中的 {lost:,} 个 token 会被重复计算。",
    )


def lost_with_history(offset: int, lost: int) -> Phrase:
    """The same where a program adds a history that is not known."""
    if lost <= 0:
        return Phrase(
            f"Behind about {offset:,} tokens: all of the history is computed again each time.",
            f"位于约 {offset:,} 个 token 之后:全部历史每次都要重新计算。",
        )
    return Phrase(
        f"Behind about {offset:,} tokens: {lost:,} more and all of the history are computed again each time.",
        f"位于约 {offset:,} 个 token 之后:其后的 {lost:,} 个 token 和全部历史每次都要重新计算。",
    )


def lost_tokens(lost: int, usable: int, *, is_exact: bool) -> Phrase:
    """What a change that was seen has cost."""
    about, zh_about = ("", "") if is_exact else ("about ", "约 ")
    return Phrase(
        f"{about.capitalize()}{lost:,} tokens were computed again; {usable:,} could be read.",
        f"{zh_about}{lost:,} 个 token 被重复计算,可命中 {usable:,} 个。",
    )
