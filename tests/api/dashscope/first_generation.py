"""Run with the 1.x package on the path: `first_generation.py URL` prints what it saw as JSON.

A process of its own, because both generations of the package have the same name.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

import dashscope
from dashscope import Generation, MultiModalConversation
from dashscope.version import __version__

MARK = {"type": "ephemeral"}
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}


def main(url: str) -> dict[str, Any]:
    dashscope.base_http_api_url = f"{url}/api/v1"
    dashscope.api_key = "key"
    hello = [{"role": "user", "content": "Hello, wörld!"}]
    part = {"type": "text", "text": "s" * 1100, "cache_control": MARK}
    long = [{"role": "system", "content": [part]}, *hello]
    message = {"model": "scripted", "messages": hello, "result_format": "message"}
    return {
        "version": __version__,
        "text": shown(Generation.call(model="scripted", prompt="Hello, wörld!")),
        "message": shown(Generation.call(**message)),
        "deltas": stream(Generation.call(**message, stream=True, incremental_output=True)),
        "merged": stream(Generation.call(**message, stream=True, incremental_output=False)),
        "sums": stream(Generation.call(**message, stream=True)),
        "several": stream(Generation.call(**message, stream=True, incremental_output=False, n=2)),
        "create": shown(Generation.call(**(message | {"messages": long}))),
        "hit": stream(Generation.call(**(message | {"messages": long}), stream=True))[-1:],
        "parts": shown(
            MultiModalConversation.call(
                model="scripted", messages=[{"role": "user", "content": [{"text": "Hi"}]}]
            )
        ),
        "tools": shown(
            Generation.call(**(message | {"messages": [{"role": "user", "content": "call"}]}), tools=[TOOL])
        ),
        "tools_merged": stream(
            Generation.call(
                **(message | {"messages": [{"role": "user", "content": "call"}]}),
                tools=[TOOL],
                stream=True,
                incremental_output=False,
            )
        )[-1:],
        "no_model": shown(Generation.call(model="nope", prompt="x")),
        "bad": shown(Generation.call(**message, top_p=7)),
        "failing": stream(Generation.call(model="scripted", prompt="please fail", stream=True)),
    }


def shown(response: Any) -> dict[str, Any]:
    fields = ("status_code", "code", "message", "request_id", "output", "usage")
    return {name: getattr(response, name) for name in fields}


def stream(responses: Iterable[Any]) -> list[dict[str, Any]]:
    # The package goes on with the same objects: each has to be kept as it was.
    return [json.loads(json.dumps(shown(response))) for response in responses]


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
