"""Two questions over one long system prompt: the second skips what the first has computed.

pip install openai
hotprefix serve                    # in another terminal
python examples/openai_chat.py     # HOTPREFIX_URL names another server
"""

from __future__ import annotations

import os
import time

from openai import OpenAI

HANDBOOK = "\n".join(
    f"{number}. Guests of room {number} have breakfast at {7 + number % 4} o'clock, on floor {number // 10}."
    for number in range(1, 61)
)


def ask(client: OpenAI, model: str, question: str) -> None:
    """Stream an answer; print it, the time to its first token and what of the prompt was cached."""
    start = time.perf_counter()
    first = None
    usage = None
    text = ""
    stream = client.chat.completions.create(
        model=model,
        messages=[{"role": "system", "content": HANDBOOK}, {"role": "user", "content": question}],
        max_tokens=32,
        temperature=0,
        stream=True,
        stream_options={"include_usage": True},
    )
    for chunk in stream:
        if chunk.choices and chunk.choices[0].delta.content:
            first = first or time.perf_counter() - start
            text += chunk.choices[0].delta.content
        usage = chunk.usage or usage
    assert usage is not None
    details = usage.prompt_tokens_details
    cached = (details.cached_tokens or 0) if details else 0
    print(f"{question} {text.strip()!r}")
    print(f"  TTFT {1000 * (first or 0):.0f} ms, {cached} of {usage.prompt_tokens} prompt tokens cached")


def main() -> None:
    url = os.environ.get("HOTPREFIX_URL", "http://127.0.0.1:8080")
    client = OpenAI(base_url=f"{url}/v1", api_key="any")
    model = client.models.list().data[0].id
    ask(client, model, "When does room 12 have breakfast?")
    ask(client, model, "On which floor is room 48?")


if __name__ == "__main__":
    main()
