"""The seven questions of the DashScope articles, answered by what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hotprefix.doctor.lint.finding import LintFinding
from hotprefix.doctor.lint.phrase import Phrase
from hotprefix.doctor.lint.rule import Question

_QUESTIONS = {
    Question.FIXED: Phrase("Is the prompt fully fixed?", "提示词是否完全固定?"),
    Question.LONG: Phrase("Is it long enough?", "长度是否足够?"),
    Question.SESSION: Phrase("Is the session_id right?", "session_id 是否正确?"),
    Question.DECODE: Phrase("Are the decode parameters sensible?", "解码参数是否合理?"),
    Question.MODEL: Phrase("Does the model support the mode?", "模型是否支持该模式?"),
    Question.FORMAT: Phrase("Is the content in the right format?", "content 格式是否正确?"),
    Question.API: Phrase("Does the API match the mode?", "接口与模式是否匹配?"),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """A question, and the findings that say no to it."""

    question: Question
    asks: Phrase
    findings: tuple[LintFinding, ...]

    @property
    def is_yes(self) -> bool:
        """Whether nothing speaks against it."""
        return not self.findings


def checklist(findings: Sequence[LintFinding]) -> tuple[Answer, ...]:
    """All seven, in the articles' order."""
    return tuple(
        Answer(question, asks, tuple(one for one in findings if one.rule.question is question))
        for question, asks in _QUESTIONS.items()
    )
