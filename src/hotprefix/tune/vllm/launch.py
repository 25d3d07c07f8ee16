"""Model, GPUs and wish → the options of `vllm serve`, with the arithmetic behind each."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from hotprefix.tune.decision import GIB, gib
from hotprefix.tune.errors import DoesNotFit
from hotprefix.tune.vllm import flags
from hotprefix.tune.vllm.flags import CHECKED_VERSION, Flag
from hotprefix.tune.vllm.shape import HfModel
from hotprefix.tune.wish import Goal

BLOCK = 16
MEMORY_SHARE = Fraction(9, 10)
SWAP = 16 * GIB
"""Host memory for each GPU's blocks."""
_BATCHED = {Goal.LATENCY: 2048, Goal.BALANCED: 4096, Goal.MEMORY: 2048}
_OVERHEAD = int(1.5 * GIB)
"""Of a GPU: CUDA's context, communication buffers, captured graphs. An estimate; vLLM measures."""
_MOST_SEQUENCES = 256
_FP8 = 1


@dataclass(frozen=True, slots=True)
class Gpus:
    """`count` GPUs with `memory` bytes each; `offload` bytes of the host's memory for each, 0 for none."""

    memory: int
    count: int = 1
    offload: int = SWAP


@dataclass(frozen=True, slots=True)
class Option:
    """A flag with its value (None: it has none) and what it comes from."""

    flag: Flag
    value: str | None
    why: str


@dataclass(frozen=True, slots=True)
class Layout:
    """What lies where: bytes for one GPU, tokens over all of them."""

    usable: int
    weights: int
    activations: int
    overhead: int
    kv: int
    token_bytes: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Launch:
    """A whole launch line; `arithmetic` and `warnings` are lines for people."""

    model: HfModel
    layout: Layout
    options: tuple[Option, ...]
    arithmetic: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def command(self) -> str:
        """One shell command over several lines."""
        words = [shlex.join(["vllm", "serve", self.model.name])]
        for option in self.options:
            words.append(option.flag.name if option.value is None else f"{option.flag.name} {option.value}")
        return " \\\n  ".join(words)

    @property
    def script(self) -> str:
        """The command below its reasons as comments."""
        width = max(len(option.flag.name) for option in self.options)
        lines = [f"# Options and their defaults were checked with vLLM {CHECKED_VERSION}."]
        lines += [f"# {line}" for line in self.arithmetic]
        lines.append("#")
        lines += [f"# {o.flag.name:<{width}}  {o.flag.meaning}: {o.why}" for o in self.options]
        lines += [f"# Note: {warning}" for warning in self.warnings]
        return "\n".join([*lines, self.command, ""])


class LaunchPlanner:
    """Raises `DoesNotFit` with the numbers where the model or one request has no room."""

    def __init__(self, model: HfModel, gpus: Gpus, goal: Goal, context: int | None, concurrency: int) -> None:
        self._model = model
        self._gpus = gpus
        self._goal = goal
        self._context = context or model.context
        self._concurrency = concurrency
        self._batched = max(_BATCHED[goal], min(concurrency, _MOST_SEQUENCES))

    def plan(self) -> Launch:
        self._check()
        exact = self._layout(self._model.bytes_per_element)
        self._check_weights(exact)
        need = self._context * self._concurrency
        layout, cache = exact, "auto"
        if exact.tokens < need or self._goal is Goal.MEMORY:
            layout, cache = self._layout(_FP8), "fp8"
        if layout.tokens < self._context:
            raise DoesNotFit(
                f"One request of {self._context:,} tokens does not fit, even with keys and values in fp8: "
                f"after weights and workspace {gib(max(0, layout.kv))} of each GPU are left, "
                f"{max(0, layout.tokens):,} tokens of {layout.token_bytes:,} bytes. Ask for less with "
                "--context, or add GPUs with --gpus."
            )
        return Launch(
            model=self._model,
            layout=layout,
            options=self._options(layout, cache, exact),
            arithmetic=self._arithmetic(layout, cache),
            warnings=self._warnings(layout, cache),
        )

    def _check(self) -> None:
        model, count = self._model, self._gpus.count
        if not self._can_share(count):
            possible = max(n for n in range(1, count) if self._can_share(n))
            raise DoesNotFit(
                f"{count} GPUs can't share the {model.heads} attention heads and {model.kv_heads} key/value "
                f"heads of {model.name} evenly; {possible} can (--gpus {possible})."
            )
        if self._context > model.context:
            raise DoesNotFit(
                f"{model.name} was made for {model.context:,} tokens, not for {self._context:,}. "
                "Ask for less with --context, or give a config.json with rope scaling in it."
            )

    def _can_share(self, count: int) -> bool:
        """As vLLM wants it: equal heads for each GPU, key/value heads split or copied evenly."""
        heads, kv_heads = self._model.heads, self._model.kv_heads
        return heads % count == 0 and (kv_heads % count == 0 or count % kv_heads == 0)

    def _check_weights(self, layout: Layout) -> None:
        if layout.kv > 0:
            return
        model = self._model
        fixed = layout.overhead + layout.activations
        least = next(
            (n for n in range(1, 65) if self._can_share(n) and model.weights / n + fixed < layout.usable),
            None,
        )
        advice = f"It takes at least {least} such GPUs (--gpus {least})" if least else "It takes larger GPUs"
        raise DoesNotFit(
            f"{model.name} does not fit on {self._gpus.count} x {gib(self._gpus.memory)}: of the "
            f"{gib(layout.usable)} that vLLM may take of each, the weights need {gib(layout.weights)} "
            f"({gib(model.weights)} in all) and the workspace {gib(fixed)}, so nothing is left for keys and "
            f"values. {advice}, or a quantised model."
        )

    def _layout(self, element: float) -> Layout:
        model, count = self._model, self._gpus.count
        usable = int(self._gpus.memory * MEMORY_SHARE)
        weights = ceil(model.weights / count)
        activations = self._activations()
        kv = usable - weights - activations - _OVERHEAD
        # With more GPUs than key/value heads, heads are kept more than once.
        token = int(2 * model.layers * ceil(model.kv_heads / count) * model.head_size * element)
        tokens = max(0, kv) // (token * BLOCK) * BLOCK
        return Layout(usable, weights, activations, _OVERHEAD, kv, token, tokens)

    def _activations(self) -> int:
        """An estimate: residual stream, queries and norms in 16 bits, gate and up of the feed-forward part,
        and logits of every request in 32 bits."""
        model, count = self._model, self._gpus.count
        row = 2 * (6 * model.hidden + 2 * ceil(model.inner / count))
        return self._batched * row + self._sequences * model.vocabulary * 4

    @property
    def _sequences(self) -> int:
        return min(self._concurrency, _MOST_SEQUENCES)

    def _options(self, layout: Layout, cache: str, exact: Layout) -> tuple[Option, ...]:
        gpus = self._gpus
        options = [
            Option(flags.TENSOR_PARALLEL, str(gpus.count), f"{self._model.heads} heads ÷ {gpus.count}"),
            Option(flags.MODEL_LENGTH, str(self._context), self._why_length()),
            Option(
                flags.BLOCK_SIZE,
                str(BLOCK),
                f"{layout.tokens // BLOCK:,} blocks; a prefix loses at most 15 tokens",
            ),
            Option(
                flags.MEMORY_SHARE, f"{float(MEMORY_SHARE):g}", f"{gib(layout.usable)} of {gib(gpus.memory)}"
            ),
            Option(flags.CACHE_TYPE, cache, self._why_cache(layout, cache, exact)),
            Option(flags.BATCHED_TOKENS, str(self._batched), self._why_batched()),
            Option(flags.SEQUENCES, str(self._sequences), "as many as were asked for"),
            Option(flags.PREFIX_CACHING, None, "the default, written so that it stays"),
        ]
        if gpus.offload:
            total = gpus.offload * gpus.count
            host = total // (layout.token_bytes * gpus.count)
            why = f"{gib(gpus.offload)} for each GPU, {host:,} more tokens"
            options.append(Option(flags.OFFLOADING_SIZE, f"{total / GIB:g}", why))
            options.append(Option(flags.OFFLOADING_BACKEND, "native", "vLLM itself; 'lmcache' is the other"))
        return tuple(options)

    def _why_length(self) -> str:
        if self._context == self._model.context:
            return "all that the model has"
        return f"as asked for, of {self._model.context:,}"

    def _why_cache(self, layout: Layout, cache: str, exact: Layout) -> str:
        if cache == "auto":
            return (
                f"the model's {self._model.dtype}: {layout.tokens:,} tokens fit, so nothing needs to be lost"
            )
        return f"half the bytes: {layout.tokens:,} tokens fit instead of {exact.tokens:,}"

    def _why_batched(self) -> str:
        if self._goal is Goal.BALANCED:
            return "long prompts in large steps"
        return "smaller steps: answers stall less behind long prompts, and less workspace"

    def _arithmetic(self, layout: Layout, cache: str) -> tuple[str, ...]:
        model, gpus = self._model, self._gpus
        element = self._model.bytes_per_element if cache == "auto" else _FP8
        heads = ceil(model.kv_heads / gpus.count)
        return (
            f"{model.name}: weights {gib(model.weights)} ({model.weights_from})",
            f"each GPU of {gpus.count}: {gib(gpus.memory)} x {float(MEMORY_SHARE):g} = {gib(layout.usable)}",
            f"  less weights {gib(layout.weights)}, activations {gib(layout.activations)} (estimate), "
            f"CUDA and graphs {gib(layout.overhead)} (estimate)",
            f"  = {gib(layout.kv)} for keys and values",
            f"a token: 2 x {model.layers} layers x {heads} heads x {model.head_size} x {element:g} bytes "
            f"= {layout.token_bytes:,} bytes on each GPU",
            f"{gib(layout.kv)} hold {layout.tokens:,} tokens: {layout.tokens / self._context:.1f} requests "
            f"of {self._context:,}",
        )

    def _warnings(self, layout: Layout, cache: str) -> tuple[str, ...]:
        warnings = []
        if layout.tokens < self._context * self._concurrency:
            warnings.append(
                f"{self._concurrency} requests of {self._context:,} tokens need "
                f"{self._context * self._concurrency:,}; {layout.tokens // self._context} run at full "
                "length, others wait or are computed again"
            )
        if self._gpus.offload:
            total = self._gpus.offload * self._gpus.count
            warnings.append(
                f"the host must have {gib(total)} of memory to spare for blocks; --offload says how much"
            )
        if cache == "fp8":
            warnings.append("fp8 keys and values need a GPU that supports them, and cost a little quality")
        if self._gpus.count > self._model.kv_heads:
            warnings.append(
                f"{self._gpus.count} GPUs share {self._model.kv_heads} key/value heads: some keep copies"
            )
        return tuple(warnings)
