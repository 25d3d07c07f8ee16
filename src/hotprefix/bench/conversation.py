"""A long system prompt and ten turns of chat, with the cache and without.

The text is real chat: each turn sends the whole conversation, the server's own answers among it,
through the chat template. Words of one token each give the stated lengths, and `ignore_eos`
makes every answer equally long, so both servers do the same work.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from hotprefix.bench.client import Answer, BenchClient
from hotprefix.bench.findings import Bound, Chart, ChartKind, Finding, Measure, Series
from hotprefix.bench.scenario import Tick, Trial
from hotprefix.bench.stats import saved_percent

SAVED_PERCENT = 67.9
_CALIBRATION_WORDS = 201


@dataclass(frozen=True, slots=True)
class _Script:
    """What the user says."""

    system: str
    questions: list[str]


async def measure_conversation(trial: Trial) -> Finding:
    """Each conversation is held with both servers; which goes first alternates."""
    sizes, work = trial.sizes, trial.work
    tick = trial.progress.task("conversation", 2 * sizes.turns * sizes.conversations)
    per_token = await _words_per_token(trial)
    cached: list[list[Answer]] = []
    plain: list[list[Answer]] = []
    for number in range(sizes.conversations):
        script = _Script(
            work.words(round(sizes.system * per_token)),
            [work.words(round(sizes.question * per_token)) for _ in range(sizes.turns)],
        )
        arms = [(trial.cached, cached), (trial.plain, plain)]
        for client, answers in arms if number % 2 == 0 else reversed(arms):
            answers.append(await _hold(client, script, sizes.answer, tick))
    return _finding(trial, cached, plain)


async def _words_per_token(trial: Trial) -> float:
    counts = []
    for words in (1, _CALIBRATION_WORDS):
        message = {"role": "user", "content": trial.work.words(words)}
        counts.append((await trial.plain.run(trial.plain.chat([message], 1))).prompt_tokens)
    return (_CALIBRATION_WORDS - 1) / (counts[1] - counts[0])


async def _hold(client: BenchClient, script: _Script, answer_tokens: int, tick: Tick) -> list[Answer]:
    messages = [{"role": "system", "content": script.system}]
    answers = []
    for question in script.questions:
        messages.append({"role": "user", "content": question})
        answers.append(await client.run(client.chat(messages, answer_tokens)))
        messages.append({"role": "assistant", "content": answers[-1].text})
        tick()
    return answers


def _finding(trial: Trial, cached: list[list[Answer]], plain: list[list[Answer]]) -> Finding:
    sizes = trial.sizes
    totals = [
        Measure(name, "s", tuple(sum(answer.total for answer in turns) for turns in arm))
        for name, arm in (("with cache", cached), ("without cache", plain))
    ]
    saved = saved_percent(totals[1].middle, totals[0].middle)
    every = [answer for turns in cached for answer in turns]
    return Finding(
        name="conversation",
        title=f"Conversation of {sizes.turns} turns",
        about=f"System prompt of {sizes.system:,} tokens, questions of {sizes.question}, "
        f"answers of {sizes.answer} (ignore_eos), chat completions over HTTP; time of all turns together.",
        measures=tuple(totals),
        targets=(trial.target("time saved", "%", saved, Bound.AT_LEAST, SAVED_PERCENT),),
        charts=(
            Chart(
                ChartKind.LINES,
                "Time of each turn (median over conversations)",
                "turn",
                "seconds",
                (_by_turn("with cache", cached), _by_turn("without cache", plain)),
            ),
        ),
        facts={
            "time saved, per cent": round(saved, 1),
            "prompt tokens of the first turn, template included": cached[0][0].prompt_tokens,
            "prompt tokens of the last turn, with cache": cached[0][-1].prompt_tokens,
            "prompt tokens of the last turn, without cache": plain[0][-1].prompt_tokens,
            "tokens from the cache, share": round(
                sum(answer.cached_tokens for answer in every) / sum(a.prompt_tokens for a in every), 4
            ),
        },
    )


def _by_turn(name: str, arm: list[list[Answer]]) -> Series:
    middles = tuple(median(answer.total for answer in turn) for turn in zip(*arm, strict=True))
    return Series(name, middles, tuple(range(1, len(middles) + 1)))
