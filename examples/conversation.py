"""A conversation: every turn sends all that was said, and computes only what is new.

pip install openai
hotprefix serve                     # in another terminal
python examples/conversation.py     # HOTPREFIX_URL names another server
"""

from __future__ import annotations

import os

from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam

GUIDE = "You are the guide of a zoo and answer in one or two short sentences.\n" + "\n".join(
    f"House {number} is open from {8 + number % 3} to {17 + number % 4} o'clock." for number in range(1, 21)
)
QUESTIONS = ("Who lives in house 3?", "When is it open?", "Tell me one more thing about it.")


def main() -> None:
    url = os.environ.get("HOTPREFIX_URL", "http://127.0.0.1:8080")
    client = OpenAI(base_url=f"{url}/v1", api_key="any")
    model = client.models.list().data[0].id
    messages: list[ChatCompletionMessageParam] = [{"role": "system", "content": GUIDE}]
    for turn, question in enumerate(QUESTIONS, start=1):
        messages.append({"role": "user", "content": question})
        answer = client.chat.completions.create(
            model=model, messages=messages, max_tokens=48, temperature=0.7, seed=turn
        )
        # Give the answer back as it came: its tokens are in the cache as well.
        text = answer.choices[0].message.content or ""
        messages.append({"role": "assistant", "content": text})
        assert answer.usage is not None
        details = answer.usage.prompt_tokens_details
        cached = (details.cached_tokens or 0) if details else 0
        print(f"> {question}\n{text.strip()}")
        print(f"  turn {turn}: {cached} of {answer.usage.prompt_tokens} prompt tokens cached\n")


if __name__ == "__main__":
    main()
