"""The fields that chat and text completions share, and their checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, Protocol, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from hotprefix.api.strategy_wish import KvStrategy
from hotprefix.base.errors import InvalidRequest
from hotprefix.engine.front import ServedModel
from hotprefix.engine.request import Grammar, Sampling

_T = TypeVar("_T")
_DEEPEST = 64
_STOPS = 16
_TINY_TOP_P = 1e-8
"""`top_p` 0 means "only the likeliest token": the smallest nucleus."""


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def shallow(value: Any) -> Any:
    """Refuse free-form JSON nested deeper than any library behind us is safe with."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            item
            for box in level
            if isinstance(box, dict | list)
            for item in (box.values() if isinstance(box, dict) else box)
            if isinstance(item, dict | list)
        ]
        if not level:
            return value
    raise PydanticCustomError("too_deep", "nested deeper than {limit} levels", {"limit": _DEEPEST})


def unsupported(reason: str) -> Callable[[Any], Any]:
    """A validator for fields whose effect we don't have: only null passes."""

    def check(value: Any) -> None:
        if value is not None:
            raise PydanticCustomError("unsupported", "not supported: {reason}", {"reason": reason})

    return check


class Wire(BaseModel):
    """Part of a request body. JSON types are taken as they are: "1" is no number."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True, hide_input_in_errors=True)


class StreamOptions(Wire):
    """What a stream tells beside the text."""

    include_usage: bool | None = None


StopText = Annotated[str, Field(min_length=1, max_length=1000)]
TokenIndex = Annotated[int, Field(ge=0, le=2**31 - 1)]
FreeObject = Annotated[dict[str, Any], AfterValidator(shallow)]


class GenerationFields(Wire):
    """How to draw the answers. None means "not given" everywhere."""

    model: Annotated[str, Field(min_length=1, max_length=1000)]
    n: Annotated[int, Field(ge=1, le=128)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=-1, le=2**31 - 1)] | None = None
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    repetition_penalty: Annotated[float, Field(gt=0, le=10)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    seed: Annotated[int, Field(ge=-(2**63), lt=2**64)] | None = None
    stop: Annotated[Annotated[list[StopText], Field(max_length=_STOPS)] | None, BeforeValidator(_listed)] = (
        None
    )
    stop_token_ids: Annotated[list[TokenIndex], Field(max_length=1024)] | None = None
    ignore_eos: bool | None = None
    logit_bias: dict[str, Annotated[float, Field(ge=-100, le=100)]] | None = None
    user: str | None = None
    kv_strategy: KvStrategy = None

    @property
    def include_usage(self) -> bool:
        """Whether a stream ends with a chunk that carries the usage."""
        return self.stream_options is not None and self.stream_options.include_usage is True

    def ignored(self) -> list[str]:
        """Names of the top-level fields that have no meaning here."""
        return list(self.model_extra or {})

    def sampling(self, model: ServedModel, *, top_logprobs: int | None, grammar: Grammar | None) -> Sampling:
        """The engine's form. Raises `InvalidRequest` for token ids outside the vocabulary."""
        vocab_size = model.tokenizer.vocab_size
        return Sampling(
            max_tokens=self.max_tokens,
            temperature=_or(self.temperature, model.defaults.temperature),
            top_p=max(_or(self.top_p, model.defaults.top_p), _TINY_TOP_P),
            top_k=max(_or(self.top_k, 0), 0),
            min_p=_or(self.min_p, 0.0),
            seed=None if self.seed is None else self.seed % 2**64,
            stop=tuple(dict.fromkeys(self.stop or ())),
            stop_token_ids=frozenset(self._stop_ids(vocab_size)),
            ignore_eos=bool(self.ignore_eos),
            presence_penalty=_or(self.presence_penalty, 0.0),
            frequency_penalty=_or(self.frequency_penalty, 0.0),
            repetition_penalty=_or(self.repetition_penalty, 1.0),
            logit_bias=self._bias(vocab_size),
            top_logprobs=top_logprobs,
            grammar=grammar,
        )

    def _stop_ids(self, vocab_size: int) -> list[int]:
        for place, token in enumerate(self.stop_token_ids or ()):
            if token >= vocab_size:
                raise _no_token(f"stop_token_ids[{place}]", str(token), vocab_size)
        return self.stop_token_ids or []

    def _bias(self, vocab_size: int) -> dict[int, float]:
        bias: dict[int, float] = {}
        for name, value in (self.logit_bias or {}).items():
            if not (name.isascii() and name.isdecimal() and len(name) < 12 and int(name) < vocab_size):
                raise _no_token("logit_bias", name[:40], vocab_size)
            bias[int(name)] = float(value)
        return bias


def _no_token(param: str, name: str, vocab_size: int) -> InvalidRequest:
    return InvalidRequest(
        f"Invalid value for '{param}': '{name}' is no token id; this model's go from 0 to {vocab_size - 1}.",
        param=param,
    )


def _or(value: _T | None, default: _T) -> _T:
    return default if value is None else value


class Drawing(Protocol):
    """A request that may say how to draw."""

    @property
    def temperature(self) -> float | None: ...

    @property
    def top_p(self) -> float | None: ...


def with_defaults(sampling: Sampling, model: ServedModel, asked: Drawing) -> Sampling:
    """`sampling` with the model's own temperature and top_p where `asked` names none."""
    temperature = model.defaults.temperature if asked.temperature is None else sampling.temperature
    top_p = model.defaults.top_p if asked.top_p is None else sampling.top_p
    return replace(sampling, temperature=temperature, top_p=top_p)
