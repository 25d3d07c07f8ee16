"""Writes corpus/*.jsonl from scenes.yaml: requests as well-kept applications send them, in four dialects.

Dates, times, ids, hashes and versions are all over them, where they belong: in rules that never
change, in documents, in what people say.
Run it again after a change of scenes.yaml: python tests/data/lint/make_corpus.py
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
MARKER = {"type": "ephemeral"}
NAMES = {
    "en": ["Okafor", "Lindqvist", "Moreau", "Castellanos", "Nakamura", "Brandt", "Iyer", "Novak"],
    "zh": ["陈立", "王敏", "赵启明", "孙晓", "周文远", "吴桐"],
}
PLACES = {
    "en": ["Rotterdam", "Gdansk", "Porto", "Lyon", "Turku", "Bergamo", "Cork"],
    "zh": ["成都", "西安", "苏州", "青岛", "昆明", "兰州"],
}
HEADS = {
    "en": [
        "Hours and places",
        "Numbers",
        "Exceptions",
        "What changed",
        "Special cases",
        "Older rules still in force",
        "Forms",
    ],
    "zh": ["时间与地点", "编号规则", "例外情形", "近期调整", "特殊情况", "仍然有效的旧规定", "表单"],
}
NOTES = {
    "en": [
        "Checked against manual {ver} of {date}; checksum {hex}.",
        "Opening hours in this text are local ones, {time} to {time}.",
        "Example: a message such as 'Now: {time}, user id: {n}' is answered like any other.",
        "If a date such as {date} is missing, ask for it once.",
    ],
    "zh": [
        "本说明第{ver}版于{date}核对,校验值{hex}。",
        "文中时间均为当地时间,即{time}至{time}。",
        "示例:“现在是{time},用户编号{n}”这样的话按普通问题处理。",
        "如缺少日期(例如{date}),只追问一次。",
    ],
}  # fmt: skip
SELF_HOSTED = ["Qwen2.5-7B-Instruct", "llama-3.1-8b-instruct", "mistral-small-2409", "internlm2_5-7b-chat"]
HOSTED = {
    "chat": ["qwen-plus", "qwen3-max", "gpt-4.1", "gpt-5.2", "qwen-flash"],
    "responses": ["qwen3-max", "gpt-5.2", "qwen-plus"],
    "dashscope": ["qwen-plus", "qwen3-max", "qwen-flash"],
    "anthropic": ["claude-sonnet-4-6", "claude-opus-4-1", "claude-sonnet-5"],
}
SIZES = {True: 5_800, False: 1_600}
"""Letters of a system prompt: above every provider's minimum, or for a model that has none."""


class Writer:
    """One scene's texts, always the same for the same seed."""

    def __init__(self, scene: dict[str, Any], seed: str) -> None:
        self.scene = scene
        self.random = random.Random(f"{scene['name']}/{seed}")

    def fill(self, text: str) -> str:
        return (
            re.sub(r"\{(\w+)\}", lambda match: self._slot(match[1]), text)
            .replace("{{", "{")
            .replace("}}", "}")
        )

    def system(self, size: int) -> str:
        lang, pick = self.scene["lang"], self.random
        limit = size if lang == "en" else size // 2
        style = pick.choice(("markdown", "numbers", "xml", "plain"))
        parts = [self.scene["intro"], ""]
        heads, number = list(HEADS[lang]), 0
        pick.shuffle(heads)
        while sum(map(len, parts)) < limit:
            parts.append(_head(style, heads[number % len(heads)]))
            rules = list(self.scene["rules"])
            pick.shuffle(rules)
            for at, rule in enumerate(rules):
                mark = (
                    f"{number + 1}.{at + 1} " if style == "numbers" else "- " if style == "markdown" else ""
                )
                parts.append(mark + self.fill(rule))
            parts.append(self.fill(NOTES[lang][number % len(NOTES[lang])]))
            parts.append("")
            number += 1
        return "\n".join(parts).strip()

    def ask(self) -> str:
        return self.fill(self.random.choice(self.scene["asks"]))

    def say(self) -> str:
        return self.fill(self.random.choice(self.scene["says"]))

    def document(self) -> str:
        rows = [self.fill(self.random.choice(self.scene["rules"])) for _ in range(8)]
        stamp = self.fill("{date} {time}")
        return f'<document id="{self.fill("{hex}")}" printed="{stamp}">\n' + "\n".join(rows) + "\n</document>"

    def tools(self) -> list[dict[str, Any]]:
        return [_tool(name, self.scene["lang"]) for name in self.scene["tools"]]

    def _slot(self, name: str) -> str:  # noqa: PLR0911 - one line for each kind
        pick, lang = self.random, self.scene["lang"]
        match name:
            case "n":
                return str(pick.choice((pick.randint(2, 9), pick.randint(10, 99), pick.randint(100, 9_999))))
            case "letter":
                return pick.choice("ABCDEFGHK")
            case "date":
                year, month, day = pick.randint(2027, 2031), pick.randint(1, 12), pick.randint(1, 28)
                return f"{year}年{month}月{day}日" if lang == "zh" else f"{year}-{month:02}-{day:02}"
            case "time":
                return f"{pick.randint(6, 22)}:{pick.choice((0, 15, 30, 45)):02}"
            case "id":
                return pick.choice("ABCDEF") + str(pick.randint(10_000, 99_999))
            case "hex":
                return f"{pick.getrandbits(128):032x}"
            case "uuid":
                return f"{pick.getrandbits(32):08x}-1111-4222-8333-{pick.getrandbits(48):012x}"
            case "ver":
                return f"{pick.randint(1, 6)}.{pick.randint(0, 9)}.{pick.randint(0, 20)}"
            case "name":
                return pick.choice(NAMES[lang])
            case "place":
                return pick.choice(PLACES[lang])
        raise KeyError(name)


def _head(style: str, text: str) -> str:
    return {
        "markdown": f"## {text}",
        "numbers": text.upper(),
        "xml": f'<section name="{text}">',
        "plain": f"{text}:",
    }[style]


def _tool(name: str, lang: str) -> dict[str, Any]:
    told = (
        f"Looks up {name.replace('_', ' ')} and returns a row." if lang == "en" else f"{name},返回一条记录。"
    )
    number = "An id such as A12345." if lang == "en" else "编号,例如A12345。"
    properties = {
        "number": {"type": "string", "description": number},
        "day": {"type": "string", "description": "YYYY-MM-DD", "default": "2029-06-14"},
    }
    schema = {
        "type": "object",
        "properties": properties,
        "required": ["number"],
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "description": told, "parameters": schema}}


def _decode(writer: Writer) -> dict[str, Any]:
    if writer.scene.get("short"):
        return {"temperature": 0, "top_p": 0.1, "max_tokens": 16}
    return writer.random.choice(
        (
            {"temperature": 0.7},
            {"temperature": 0.2, "max_tokens": 900},
            {"max_tokens": 1500},
            {"top_p": 0.8, "seed": 7},
        )
    )


def _call(writer: Writer, name: str, number: int) -> dict[str, Any]:
    arguments = json.dumps(
        {"day": writer.fill("{date}"), "number": writer.fill("{id}")}, ensure_ascii=False, sort_keys=True
    )
    return {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}


def chat(writer: Writer, system: str, model: str) -> Iterator[dict[str, Any]]:
    is_marked = model.startswith("qwen") and not writer.scene["tools"]
    content: Any = [{"type": "text", "text": system, "cache_control": MARKER}] if is_marked else system
    role = "developer" if model.startswith("gpt-5") else "system"
    head = {"role": role, "content": content}
    more: dict[str, Any] = {"model": model} | _decode(writer)
    if writer.scene["tools"]:
        more["tools"] = writer.tools()
    messages = [head, {"role": "user", "content": writer.ask()}]
    yield more | {"messages": messages}
    if writer.scene.get("short"):
        # One question a request, wrapped as gateways log it.
        other = more | {"messages": [head, {"role": "user", "content": writer.ask()}]}
        yield {"timestamp": 1_900_000_000.5, "request": other, "response": {"usage": {"prompt_tokens": 2000}}}
        return
    if writer.scene["tools"]:
        call = _call(writer, writer.scene["tools"][0], 1)
        messages = [*messages, {"role": "assistant", "content": None, "tool_calls": [call]}]
        messages.append({"role": "tool", "tool_call_id": "call_1", "content": writer.document()})
        yield more | {"messages": messages}
    messages = [
        *messages,
        {"role": "assistant", "content": writer.say()},
        {"role": "user", "content": writer.ask()},
    ]
    stream = {"stream": True, "stream_options": {"include_usage": True}}
    yield {
        "custom_id": writer.fill("{uuid}"),
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": more | {"messages": messages} | stream,
    }


def responses(writer: Writer, system: str, model: str) -> Iterator[dict[str, Any]]:
    more: dict[str, Any] = {"model": model, "instructions": system}
    if writer.scene.get("short"):
        more |= {"temperature": 0, "top_p": 0.1, "max_output_tokens": 16}
    if writer.scene["tools"]:
        more["tools"] = [{"type": "function", **tool["function"], "strict": False} for tool in writer.tools()]
    yield more | {"input": writer.ask()}
    headers = {"x-dashscope-session-cache": "enable"} if model.startswith("qwen") else {}
    following = more | {"previous_response_id": f"resp_{writer.fill('{uuid}')}", "input": writer.ask()}
    yield {"request": following, "headers": headers, "url": "/v1/responses"}
    if not writer.scene.get("short"):
        turns = [
            {"role": "user", "content": [{"type": "input_text", "text": writer.ask()}]},
            {"role": "assistant", "content": [{"type": "output_text", "text": writer.say()}]},
            {
                "role": "user",
                "content": [{"type": "input_text", "text": writer.document() + "\n" + writer.ask()}],
            },
        ]
        yield more | {"input": turns, "store": False}


def dashscope(writer: Writer, system: str, model: str) -> Iterator[dict[str, Any]]:
    parameters: dict[str, Any] = {"result_format": "message"} | _decode(writer)
    is_marked = model.startswith("qwen") and not writer.scene["tools"]
    if writer.scene["tools"]:
        parameters["tools"] = writer.tools()
    block = {"text": system, "cache_control": MARKER} if is_marked else {"text": system}
    content: Any = [block] if is_marked else system
    messages = [{"role": "system", "content": content}, {"role": "user", "content": writer.ask()}]
    session = {"session_id": f"{writer.scene['name']}@3"} if writer.scene.get("short") else {}
    yield {"model": model, "input": {"messages": messages} | session, "parameters": parameters}
    if writer.scene.get("short"):
        return
    messages = [*messages, {"role": "assistant", "content": writer.say()}]
    messages.append({"role": "user", "content": writer.ask() + "\n" + writer.document()})
    yield {
        "model": model,
        "input": {"messages": messages},
        "parameters": parameters | {"incremental_output": True},
    }
    if not writer.scene["tools"]:
        prompt = f"{system}\n\n{writer.ask()}"
        yield {
            "model": model,
            "input": {"prompt": prompt},
            "parameters": {"result_format": "message", "seed": 11},
        }


def anthropic(writer: Writer, system: str, model: str) -> Iterator[dict[str, Any]]:
    decode = {"temperature": 0, "max_tokens": 16} if writer.scene.get("short") else {"max_tokens": 2048}
    more: dict[str, Any] = {"model": model} | decode
    long_lived = {"type": "ephemeral", "ttl": "1h"} if writer.random.random() < 0.5 else MARKER
    more["system"] = [{"type": "text", "text": system, "cache_control": long_lived}]
    if writer.scene["tools"]:
        more["tools"] = [
            {"name": f"tool_{at}" if not tool["function"]["name"].isascii() else tool["function"]["name"],
             "description": tool["function"]["description"], "input_schema": tool["function"]["parameters"]}
            for at, tool in enumerate(writer.tools())
        ]  # fmt: skip
    messages: list[dict[str, Any]] = [{"role": "user", "content": writer.ask()}]
    yield more | {"messages": messages}
    if writer.scene.get("short"):
        return
    if "tools" in more:
        value = {"number": writer.fill("{id}"), "day": writer.fill("{date}")}
        use = {"type": "tool_use", "id": "toolu_1", "name": more["tools"][0]["name"], "input": value}
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": writer.document()}
        messages = [
            *messages,
            {"role": "assistant", "content": [{"type": "text", "text": writer.say()}, use]},
        ]
        messages = [*messages, {"role": "user", "content": [result]}]
        yield more | {"messages": messages}
    newest = [{"type": "text", "text": writer.ask(), "cache_control": MARKER}]
    messages = [
        *messages,
        {"role": "assistant", "content": writer.say()},
        {"role": "user", "content": newest},
    ]
    yield more | {"messages": messages}


def main() -> None:
    scenes = yaml.safe_load((HERE / "scenes.yaml").read_text(encoding="utf-8"))
    folder = HERE / "corpus"
    folder.mkdir(exist_ok=True)
    total = 0
    for make in (chat, responses, dashscope, anthropic):
        name = make.__name__
        lines = []
        for number, scene in enumerate(scenes):
            is_hosted = name in ("anthropic", "dashscope") or number % 2 == 0
            models = HOSTED[name] if is_hosted else SELF_HOSTED
            writer = Writer(scene, name)
            system = writer.system(SIZES[is_hosted])
            for document in make(writer, system, models[number // 2 % len(models)]):
                lines.append(json.dumps(document, ensure_ascii=False))
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        total += len(lines)
    print(f"{total} requests")


if __name__ == "__main__":
    main()
