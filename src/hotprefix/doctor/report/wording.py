"""The words of a report, in English and Chinese."""

from __future__ import annotations

from enum import StrEnum

from hotprefix.doctor.report.figures import Cause, Dimension, Note, Pattern


class Language(StrEnum):
    """What a report is written in."""

    EN = "en"
    ZH = "zh"


_WORDS: dict[str, tuple[str, str]] = {
    "title": ("What the cache gave, and what it could have given", "缓存命中报告:实际与可能"),
    "overview": ("Overview", "总览"),
    "calls": ("Calls", "请求数"),
    "from_until": ("From {since} until {until} (UTC)", "{since} 至 {until}(UTC)"),
    "no_times": ("The logs tell no times.", "日志中没有时间。"),
    "hit_rate": ("Hit rate", "命中率"),
    "hit_rate_tokens": ("Hit rate, in tokens", "命中率(按 token)"),
    "request_hit_rate": ("Calls that read anything", "有命中的请求"),
    "prompt": ("Prompt tokens", "输入 token"),
    "read": ("Read", "命中"),
    "computed": ("Computed", "重新计算"),
    "written": ("Written", "写入"),
    "free": ("Free", "免费"),
    "output": ("Output", "输出"),
    "lost": ("Lost", "损失"),
    "tokens": ("Tokens", "token 数"),
    "token_unit": ("tokens", "token"),
    "spent": ("Spent", "花费"),
    "avoidable": ("Avoidable", "可避免"),
    "money": ("Money", "金额"),
    "first_token_p50": ("First token, p50", "首 token 时延 p50"),
    "not_reported": ("not reported", "未上报"),
    "not_known": ("not known", "未知"),
    "not_told": ("(not told)", "(未标注)"),
    "reported_by": ("reported by {part} of {whole} calls", "{whole} 个请求中有 {part} 个上报"),
    "three": ("Ideal against actual", "理想与实际"),
    "ceiling": ("Ceiling", "理论上限"),
    "actual": ("Actual", "实际"),
    "gap": ("Gap", "差额"),
    "three_about": (
        "Of {prompt} prompt tokens in calls with a reason ({coverage} of all), {ceiling} could have been "
        "read, {actual} were.",
        "在有原因可查的请求中(占全部输入 token 的 {coverage}),共 {prompt} 个输入 token:理论可命中 {ceiling},"
        "实际命中 {actual}。",
    ),
    "no_gap": (
        "Why calls missed is unknown: the logs tell no reasons and hold no requests with answers to compare. "
        "Give a ledger, or a log with the requests in it.",
        "未命中的原因未知:日志中既没有原因,也没有可供比较的请求正文。请提供账本,或包含请求正文的日志。",
    ),
    "cause": ("Cause", "归因"),
    "inferred": ("inferred", "推断"),
    "of_gap": ("Of the gap", "占差额"),
    "latency": ("Time to first token", "首 token 时延"),
    "no_latency": (
        "The logs tell no times to the first token.",
        "日志中没有首 token 时延。",
    ),
    "latency_about": (
        "A hit rate is no speed by itself: these are the measured times.",
        "命中率本身不等于速度:以下为实测时延。",
    ),
    "hit": ("Hit", "命中"),
    "miss": ("Miss", "未命中"),
    "share": ("Read of the prompt", "命中占比"),
    "mean": ("Mean", "均值"),
    "percentile": ("Percentile", "百分位"),
    "seconds": ("Seconds", "秒"),
    "timeline": ("Over time", "随时间变化"),
    "timeline_about": ("In steps of {width}.", "每 {width} 一段。"),
    "groups": ("By {dimension}", "按{dimension}"),
    "hidden": ("{count} more; see --top.", "另有 {count} 项,见 --top。"),
    "offenders": ("What wastes most", "浪费最多的提示词"),
    "offenders_lost": (
        "By tokens that could have been read and were computed again.",
        "按本可命中却被重新计算的 token 数排序。",
    ),
    "offenders_computed": (
        "By tokens computed; why is unknown, so part of that may be needed.",
        "按重新计算的 token 数排序;原因未知,其中一部分可能是必要的。",
    ),
    "prompt_name": ("Prompt", "提示词"),
    "reason": ("Reason", "原因"),
    "at": ("At", "位置"),
    "advice": ("Advice", "建议"),
    "sessions": ("Conversations", "会话"),
    "sessions_about": (
        "{count} sessions of more than one turn.",
        "多于一轮的会话共 {count} 个。",
    ),
    "no_findings": ("None of the patterns was found in them.", "其中没有发现已知的问题模式。"),
    "session": ("Session", "会话"),
    "turns": ("Turns", "轮数"),
    "finding": ("Finding", "发现"),
    "estimated": ("about {count} tokens", "约 {count} 个 token"),
    "notes": ("About these figures", "关于这些数字"),
    "formula": (
        "Hit rate = tokens read / prompt tokens, over the calls that report what they read. "
        "Prompt = computed + read + written + free.",
        "命中率 = 命中 token / 输入 token,仅统计上报了命中数的请求。输入 = 重新计算 + 命中 + 写入 + 免费。",
    ),
    "compared": (
        "{done} of {held} requests in the logs were compared with earlier ones; what they lost is counted "
        "from that, in shares of their prompts.",
        "日志中 {held} 个请求正文有 {done} 个与更早的请求做了比较;损失按其在提示词中的占比折算。",
    ),
    "files": ("Logs", "日志"),
    "theme": ("Light or dark", "明暗"),
    "language": ("中文", "English"),
    "skip": ("Skip to the figures", "跳到数据"),
}

_DIMENSIONS: dict[Dimension, tuple[str, str]] = {
    Dimension.SCENE: ("scene", "场景"),
    Dimension.PROMPT: ("prompt version", "提示词版本"),
    Dimension.TENANT: ("tenant", "租户"),
    Dimension.MODEL: ("model", "模型"),
    Dimension.REASON: ("reason", "原因"),
    Dimension.SOURCE: ("log", "日志类型"),
}
_CAUSES: dict[Cause, tuple[str, str]] = {
    Cause.PROMPT: ("Prompt changed", "提示词变化"),
    Cause.TEMPLATE: ("Template", "模板渲染"),
    Cause.MARKERS: ("Cache markers and modes", "缓存标记与模式"),
    Cause.TTL: ("Lifetime over (TTL)", "过期(TTL)"),
    Cause.EVICTION: ("Evicted", "被淘汰"),
    Cause.ROUTING: ("Routed elsewhere", "路由到别处"),
    Cause.GRANULARITY: ("Granularity and minimum size", "粒度与最小长度"),
    Cause.PENDING: ("First use, or not yet written", "首次使用或尚未写入"),
    Cause.SERVER: ("The server", "服务端"),
    Cause.UNKNOWN: ("Unknown, or best effort", "未知或尽力而为"),
}
_PATTERNS: dict[Pattern, tuple[str, str]] = {
    Pattern.FROZEN_READ: ("Reads never grow past {at} tokens", "命中数停在 {at} 个 token 不再增长"),
    Pattern.WRITE_ONLY: ("Writes the cache and never reads it", "只写缓存,从未命中"),
    Pattern.TOOLS_FLIP: ("Tools change {changes} times{every}", "工具定义变化 {changes} 次{every}"),
    Pattern.SYSTEM_FLIP: (
        "The system prompt changes {changes} times{every}",
        "系统提示词变化 {changes} 次{every}",
    ),
    Pattern.MODEL_FLIP: ("The model changes {changes} times{every}", "模型变化 {changes} 次{every}"),
}
_EVERY = (", every {seconds} s", ",约每 {seconds} 秒一次")
_NOTES: dict[str, tuple[str, str]] = {
    "no_call": ("{count} entries are no calls and were left out.", "{count} 条记录不是请求,已略过。"),
    "failed": ("{count} calls failed and were left out.", "{count} 个失败的请求已略过。"),
    "no_answer": (
        "{count} requests have no answer in the log and were left out.",
        "{count} 个请求在日志中没有响应,已略过。",
    ),
    "no_usage": (
        "{count} answers report no usage; streams do so only if stream_options.include_usage is true.",
        "{count} 个响应没有 usage;流式响应需设置 stream_options.include_usage 为 true。",
    ),
    "broken_usage": (
        "{count} usages can't be true, such as more cached tokens than prompt tokens; their tokens are not "
        "counted.",
        "{count} 个 usage 自相矛盾(例如缓存数大于输入数),其 token 未计入。",
    ),
    "other_operation": (
        "{count} entries are of other operations, such as embeddings or agents that sum up their calls, and "
        "were left out.",
        "{count} 条记录属于其他操作(如向量、汇总子调用的智能体),已略过。",
    ),
    "gateway_cache": (
        "{count} calls were answered from the gateway's own response cache and reached no model; they were "
        "left out.",
        "{count} 个请求由网关自身的响应缓存直接作答,未到达模型,已略过。",
    ),
    "repeated": (
        "{count} calls are in the logs twice, with the same id, time and counts, and were counted once.",
        "{count} 个请求重复出现(编号、时间、计数均相同),只计一次。",
    ),
    "nested_span": (
        "{count} spans have a span of the same call within them; only the inner one is counted.",
        "{count} 个 span 内还有同一请求的 span,只计内层。",
    ),
    "event_of_span": (
        "{count} events tell of a call whose span is in the logs, too; only the span is counted.",
        "{count} 个事件所属的 span 也在日志中,只计 span。",
    ),
    "two_kinds": (
        "{count} calls have the same id in logs of two kinds and are counted twice. Give one of these logs.",
        "{count} 个请求编号同时出现在两类日志中,被计了两次;请只提供其中一类。",
    ),
    "no_time": (
        "{count} calls have no time and were left out, for --since and --until ask for it.",
        "{count} 个请求没有时间,因使用了 --since 或 --until 而略过。",
    ),
    "assumed_price": (
        "{count} calls: {subject} has no price of its own for this model, its general one was taken.",
        "{count} 个请求:{subject} 没有该模型的单独价格,按其通用价格计。",
    ),
    "unpriced": (
        "{count} calls of {subject} have no price: no table is for it. Name one with --profile.",
        "{count} 个请求({subject})没有价格:没有对应的价目表,可用 --profile 指定。",
    ),
    "early_price": (
        "{count} calls are older than the price table {subject}; its first prices were taken.",
        "{count} 个请求早于价目表 {subject},按其最早的价格计。",
    ),
    "beside": (
        "{count} calls report cached tokens beside the prompt tokens rather than among them; they were "
        "added.",
        "{count} 个请求的缓存数不包含在输入数内,已相加。",
    ),
    "not_compared": (
        "{count} older requests were not compared; --compare says how many are.",
        "{count} 个较早的请求未做比较,数量由 --compare 指定。",
    ),
    "unrenderable": (
        "{count} requests could not be read as prompts and were not compared.",
        "{count} 个请求无法还原为提示词,未做比较。",
    ),
}
_FIRST = (" First at {place}.", "首次出现于 {place}。")


def word(key: str, language: Language, **values: object) -> str:
    """A word or sentence with its values filled in."""
    return _in(_WORDS[key], language).format(**values)


def dimension_name(dimension: Dimension, language: Language) -> str:
    """What groups are called."""
    return _in(_DIMENSIONS[dimension], language)


def cause_name(cause: Cause, language: Language) -> str:
    """A cause in a few words."""
    return _in(_CAUSES[cause], language)


def pattern_told(
    pattern: Pattern, language: Language, at: int | None, changes: int | None, every: float | None
) -> str:
    """A finding in a few words."""
    rhythm = "" if every is None else _in(_EVERY, language).format(seconds=f"{every:,.0f}")
    shown = "" if at is None else f"{at:,}"
    return _in(_PATTERNS[pattern], language).format(at=shown, changes=changes, every=rhythm)


def note_told(note: Note, language: Language) -> str:
    """A note as a sentence."""
    subject = note.subject or word("not_told", language)
    told = _in(_NOTES[note.kind], language).format(count=f"{note.count:,}", subject=subject)
    return told + (_in(_FIRST, language).format(place=note.place) if note.place else "")


def _in(pair: tuple[str, str], language: Language) -> str:
    return pair[0] if language is Language.EN else pair[1]
