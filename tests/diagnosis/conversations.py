"""Well-formed conversations in many styles: each a first and a next request that lose nothing."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from tests.diagnosis.world import Chat, Message, assistant, call, result, system, tool, user

ENGLISH = (
    "Refunds take {n} working days once the parcel is back in the warehouse.",
    "Ask for the order number before you look anything up in system {n}.",
    "Never promise a delivery date that lies more than {n} days ahead.",
    "Customers of level {n} may change the address until the parcel has left.",
    "If the scale shows more than {n} kilograms, two people lift the box.",
)
CHINESE = (
    "客户退货后,第{n}个工作日内完成退款。",
    "查询订单前,请先核对编号为{n}的登记信息。",
    "承诺的送达时间不得超过{n}天。",
    "等级为{n}的会员可以在出库前修改地址。",
    "超过{n}公斤的箱子必须两人搬运——注意安全!",
)
CODE = (
    "def step_{n}(x: int) -> int:\n    return x * {n} + 1\n",
    "for (let i = 0; i < {n}; i++) {{ total += rows[i]; }}\n",
    "SELECT name, price FROM stock WHERE shelf = {n} ORDER BY name;\n",
    "if err := load({n}); err != nil {{ return err }}\n",
    "# TODO list {n}: tidy the imports 🧹\u2028\n",
)
STYLES = {"english": ENGLISH, "chinese": CHINESE, "code": CODE}


@dataclass(frozen=True)
class Pair:
    """Two requests of one client; `answer` is the first one's."""

    name: str
    first: Chat
    answer: str
    second: Chat


def pairs() -> Iterator[Pair]:
    """Eleven kinds of going on, in three languages, three times each."""
    for style in STYLES:
        for seed in range(3):
            yield from _pairs_of(style, seed)


def _pairs_of(style: str, seed: int) -> Iterator[Pair]:
    random_ = random.Random(f"{style}-{seed}")

    def text(count: int) -> str:
        sentences = STYLES[style]
        return " ".join(random_.choice(sentences).format(n=random_.randint(2, 9999)) for _ in range(count))

    def talk(count: int) -> list[Message]:
        return [m for _ in range(count) for m in (user(text(3)), assistant(text(4)))]

    def pair(kind: str, first: Chat, answer: str, second: Chat) -> Pair:
        return Pair(f"{style}-{seed}-{kind}", first, answer, second)

    rules, history = system(text(40)), talk(2 + seed * 3)
    tools = [tool(f"{style}_tool_{k}", text(2)) for k in range(4)]
    question, answer = user(text(2)), text(5)
    first = Chat([rules, *history, question], tools)
    grown = [*first.messages, assistant(answer)]

    yield pair("append", first, answer, Chat([*grown, user(text(2))], tools))
    yield pair("append-without-known-answer", first, "", Chat([*grown, user(text(2))], tools))
    yield pair("regenerate", first, answer, Chat(first.messages, tools))
    yield pair("edit-last", first, answer, Chat([rules, *history, user(text(2))], tools))
    yield pair("new-conversation", first, answer, Chat([rules, user(text(3))], tools))
    yield pair("other-conversation", first, answer, Chat([rules, *talk(3), user(text(2))], tools))
    yield pair("same-question-afresh", first, answer, Chat([rules, user(str(question["content"]))], tools))
    yield pair("go-back", first, answer, Chat([rules, *history[:-2], user(text(2))], tools))
    yield pair("shared-closing", first, answer, Chat([rules, *talk(2), question], tools))
    arguments = '{"n": 3, "q": "x"}'
    # The answer as the template writes it into the history.
    said = f'\n<tool_call>\n{{"name": "{style}_tool_1", "arguments": {arguments}}}\n</tool_call>'
    step = [call(f"{style}_tool_1", arguments), result(text(6))]
    yield pair("tool-loop", first, said, Chat([*first.messages, *step], tools))
    inner = Chat([*first.messages, *step], tools)
    yield pair("tool-answer", inner, answer, Chat([*inner.messages, assistant(answer), user(text(1))], tools))
    yield pair("unrelated", first, answer, Chat([system(text(30)), user(text(2))]))


__all__ = ["Pair", "pairs"]
