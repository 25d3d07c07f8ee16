"""Chat messages → the text a model was trained to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

Message = Mapping[str, Any]
"""One chat message as the OpenAI dialect has it: role, content (text), tool_calls, tool_call_id, name."""

Tool = Mapping[str, Any]
"""One tool definition as the OpenAI dialect has it."""


class ChatTemplate(Protocol):
    """Renders a conversation. Deterministic: equal messages give equal text."""

    @property
    def handles_tools(self) -> bool:
        """Whether the model's own template has a place for tools."""
        ...

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        variables: Mapping[str, Any] | None = None,
    ) -> str:
        """The prompt text, with the opening of the assistant's answer at its end.

        Raises `InvalidRequest` if the template refuses the messages.
        """
        ...
