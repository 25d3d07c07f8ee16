"""The response object, from its first event to its last form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hotprefix.api.responses.dialect import Dialect
from hotprefix.api.responses.items import Item
from hotprefix.api.responses.request import ResponsesRequest
from hotprefix.api.responses.tools import NamedTool
from hotprefix.sessions.window import Cut


@dataclass(frozen=True, slots=True)
class Draft:
    """What is known of a response before it is answered; `created` in Unix seconds."""

    response_id: str
    created: int
    request: ResponsesRequest
    dialect: Dialect
    cut: Cut

    @property
    def truncation(self) -> str:
        """`auto` or `disabled`, as it was done."""
        return self.request.truncation or self.dialect.truncation

    def document(self, status: str, output: list[Item], **more: Any) -> dict[str, Any]:
        """The response object; `more` goes over what is known from the start."""
        request = self.request
        return {
            "id": self.response_id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "background": False,
            "completed_at": None,
            "error": None,
            "expires_at": None,
            "incomplete_details": None,
            "instructions": request.instructions,
            "max_output_tokens": request.max_output_tokens,
            "max_tool_calls": None,
            "metadata": request.metadata or {},
            "model": request.model,
            "output": output,
            "parallel_tool_calls": request.parallel_tool_calls is not False,
            "previous_response_id": request.previous_response_id,
            "prompt_cache_key": request.prompt_cache_key,
            "reasoning": self._reasoning(),
            "safety_identifier": request.safety_identifier,
            "service_tier": "default",
            "store": request.is_stored,
            "temperature": 1.0 if request.temperature is None else request.temperature,
            "text": {"format": self._format()},
            "tool_choice": self._choice(),
            "tools": [tool.shown() for tool in request.tools or ()],
            "top_logprobs": request.top_logprobs or 0,
            "top_p": 1.0 if request.top_p is None else request.top_p,
            "truncation": self.truncation,
            "usage": None,
            "user": request.user,
            "x_truncated": self._truncated(),
        } | more

    def _format(self) -> dict[str, Any]:
        wanted = self.request.text.format if self.request.text is not None else None
        return {"type": "text"} if wanted is None else wanted.shown()

    def _reasoning(self) -> dict[str, Any]:
        """What was asked for, of the members that are known."""
        given = self.request.reasoning if isinstance(self.request.reasoning, dict) else {}
        known = {name: given[name] for name in _REASONING if name in given}
        return _NO_REASONING | {name: word for name, word in known.items() if _is_word(word)}

    def _choice(self) -> Any:
        choice = self.request.tool_choice
        if isinstance(choice, NamedTool):
            return {"type": "function", "name": choice.name}
        return choice or "auto"

    def _truncated(self) -> dict[str, int] | None:
        cut = self.cut
        if not cut.dropped:
            return None
        return {"turns": cut.turns, "messages": len(cut.dropped), "tokens": cut.tokens}


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST_WORD


_REASONING = ("effort", "summary", "generate_summary")
_LONGEST_WORD = 64
_NO_REASONING: dict[str, Any] = {"effort": None, "summary": None}
