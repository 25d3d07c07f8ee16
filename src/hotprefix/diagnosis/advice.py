"""One sentence for each reason that says what to do, in English and in Chinese."""

from __future__ import annotations

from collections.abc import Mapping

from hotprefix.diagnosis.reason import Reason

Words = Mapping[str, str | int]


def advice_for(reason: Reason, detail: str, words: Words) -> tuple[str, str]:
    """The advice in English and Chinese, with `words` filled in; a detail may have its own."""
    english, chinese = _ADVICE.get((reason, detail)) or _ADVICE[reason, ""]
    known = _Known(words)
    return english.format_map(known), chinese.format_map(known)


class _Known(dict[str, str | int]):
    """Words by name; one that nobody gave shows as a question mark."""

    def __missing__(self, name: str) -> str:
        return "?"


_ADVICE: dict[tuple[Reason, str], tuple[str, str]] = {
    (Reason.NONE, ""): (
        "All that could come from the cache did; nothing needs to be done.",
        "能够命中的前缀都已命中,无需处理。",
    ),
    (Reason.MODEL_CHANGED, ""): (
        "Stay with one model within a conversation: {old_model} became {new_model}, and caches are "
        "not shared between models.",
        "同一对话请固定使用一个模型:{old_model} 换成了 {new_model},不同模型之间不共享缓存。",
    ),
    (Reason.PARAM_CHANGED, ""): (
        "Keep the parameter {subject} the same from request to request: it changes the prompt or its "
        "cache key.",
        "请在各次请求中保持参数 {subject} 不变:它会改变提示词或缓存键。",
    ),
    (Reason.SYSTEM_CHANGED, ""): (
        "Keep the system prompt the same to the character and move what changes at {path} behind the "
        "history; {lost} tokens were computed again.",
        "请保持系统提示词逐字不变,把 {path} 中变化的内容移到历史消息之后;本次重复计算了 {lost} 个 token。",
    ),
    (Reason.SYSTEM_CHANGED, "VOLATILE_TIME"): (
        "Move the time or date at {path} to the end of the newest user message, or write only the "
        "date there; {lost} tokens were computed again.",
        "请把 {path} 中的时间移到最新一条用户消息末尾,或只保留日期;本次重复计算了 {lost} 个 token。",
    ),
    (Reason.SYSTEM_CHANGED, "VOLATILE_ENV"): (
        "Move the working state (files, paths, branch, status) at {path} to the newest user message, "
        "or freeze it for the session; {lost} tokens were computed again.",
        "请把 {path} 中的环境信息(文件、路径、分支、状态)移到最新一条用户消息,或在会话内固定不变;本次"
        "重复计算了 {lost} 个 token。",
    ),
    (Reason.SYSTEM_CHANGED, "VOLATILE_ID"): (
        "Take the id at {path} out of the system prompt, or send it in the newest user message; "
        "{lost} tokens were computed again.",
        "请把 {path} 中的编号移出系统提示词,或放到最新一条用户消息中;本次重复计算了 {lost} 个 token。",
    ),
    (Reason.SYSTEM_CHANGED, "KNOWN_CLIENT_HEADER"): (
        "The client puts a header line that changes with every request at {path}; switch it off "
        "there or let the server strip it; {lost} tokens were computed again.",
        "客户端在 {path} 写入了每次都变的标头行,请在客户端关闭它或由服务端剔除;本次重复计算了 {lost} "
        "个 token。",
    ),
    (Reason.TOOLS_REORDERED, ""): (
        "Send the tools in a fixed order, for example by name: {subject} moved to {path}, and {lost} "
        "tokens were computed again.",
        "请按固定顺序(例如按名称)发送工具:{subject} 移到了 {path},重复计算了 {lost} 个 token。",
    ),
    (Reason.TOOLS_CHANGED, ""): (
        "Keep tool definitions fixed within a conversation: {subject} changed at {path}, and {lost} "
        "tokens were computed again.",
        "请在对话中保持工具定义不变:{subject} 在 {path} 处有变化,重复计算了 {lost} 个 token。",
    ),
    (Reason.HEAD_TRIMMED, ""): (
        "Drop old turns in larger steps, such as ten at a time, or let the server truncate: {detail} "
        "blocks were cut off and {lost} tokens computed again.",
        "请成批裁剪旧消息(例如每次十条),或交由服务端截断:本次裁掉 {detail} 个内容块,重复计算 {lost} "
        "个 token。",
    ),
    (Reason.BLOCK_VANISHED, ""): (
        "Leave earlier blocks where they are: the one at {path} is gone, so {lost} tokens behind it "
        "were computed again; put reminders at the end.",
        "请不要删除已发送的内容块:{path} 已消失,其后的 {lost} 个 token 被重复计算;提醒类内容请放在末尾。",
    ),
    (Reason.BLOCK_INSERTED, ""): (
        "Append new content at the end instead of inserting it at {path}; {lost} tokens behind it "
        "were computed again.",
        "请把新内容追加到末尾,不要插入到 {path};其后的 {lost} 个 token 被重复计算。",
    ),
    (Reason.IMAGE_REPLACED, ""): (
        "Keep images in the history as they were sent, or prune several at a time: the one at {path} "
        "was replaced and {lost} tokens were computed again.",
        "请原样保留历史中的图片,或一次清理多张:{path} 的图片被替换,重复计算了 {lost} 个 token。",
    ),
    (Reason.ARG_KEY_ORDER, ""): (
        "Send tool-call arguments back byte for byte: only the order of their keys changed at "
        "{path}, and {lost} tokens were computed again.",
        "请原样回传工具调用参数:{path} 处仅键的顺序不同,却使 {lost} 个 token 被重复计算。",
    ),
    (Reason.ARG_KEY_ORDER, "SCHEMA_KEY_ORDER"): (
        "Serialise tool schemas with sorted keys: only the order changed at {path}, and {lost} "
        "tokens were computed again.",
        "请按固定键序序列化工具定义:{path} 处仅顺序不同,却使 {lost} 个 token 被重复计算。",
    ),
    (Reason.WHITESPACE_ONLY, ""): (
        "Send earlier text back unchanged, blanks and line ends included: only those differ at "
        "{path}, and {lost} tokens were computed again.",
        "请原样回传历史文本(包括空格和换行):{path} 处仅空白不同,却使 {lost} 个 token 被重复计算。",
    ),
    (Reason.HISTORY_EDITED, ""): (
        "Append corrections instead of editing the history at {path}; {lost} tokens behind it were "
        "computed again.",
        "请以追加方式更正,不要修改 {path} 处的历史内容;其后的 {lost} 个 token 被重复计算。",
    ),
    (Reason.HISTORY_EDITED, "VOLATILE_TIME"): (
        "Don't render the time at {path} anew in messages already sent; write it into the newest "
        "user message only; {lost} tokens were computed again.",
        "请不要在已发送的消息 {path} 中重新生成时间,只写入最新一条用户消息;本次重复计算了 {lost} 个 token。",
    ),
    (Reason.HISTORY_EDITED, "VOLATILE_ID"): (
        "Don't put a new id into messages already sent, as at {path}; send it in the newest message "
        "only; {lost} tokens were computed again.",
        "请不要在已发送的消息 {path} 中写入新编号,只放在最新一条消息中;本次重复计算了 {lost} 个 token。",
    ),
    (Reason.ROLE_CHANGED, ""): (
        "Keep roles and the cut of messages as first sent: {path} has the same text under another "
        "role or cut ({detail}), and {lost} tokens were computed again.",
        "请保持消息的角色与切分不变:{path} 文本相同但角色或切分有变({detail}),重复计算了 {lost} 个 token。",
    ),
    (Reason.EXPECTED_TEMPLATE, ""): (
        "This is how the model's chat template works: it renders {path} differently in later turns; "
        "nothing in the request needs to change.",
        "这是该模型对话模板的正常行为:后续轮次中 {path} 的渲染方式不同,请求无需修改。",
    ),
    (Reason.EXPECTED_TEMPLATE, "THOUGHTS_DROPPED"): (
        "The model's thoughts before {path} are dropped from the history by design; nothing in the "
        "request needs to change.",
        "按设计,{path} 之前的思考内容不会保留在历史中,请求无需修改。",
    ),
    (Reason.GENERATION_PROMPT, ""): (
        "The template opens an answer differently from how it shows it in the history at {path}; "
        "nothing in the request needs to change.",
        "该模板开始回答时的写法与它在历史 {path} 中的写法不同,请求无需修改。",
    ),
    (Reason.RETOKENISED, ""): (
        "The same text at {path} was cut into other tokens than those drawn; return answers "
        "unchanged, in the conversation they belong to.",
        "{path} 的文本相同但分词不同于生成时;请在原对话中原样回传回答。",
    ),
    (Reason.NO_MARKER, ""): (
        "This model caches marked prompts only: put cache_control at the end of the fixed part, in a "
        "content array.",
        "该模型仅支持显式缓存:请在固定内容末尾的 content 数组元素上添加 cache_control。",
    ),
    (Reason.TOO_MANY_MARKERS, ""): (
        "Send at most {most} cache markers; these did not count: {ignored}.",
        "缓存标记最多 {most} 个,以下标记未生效:{ignored}。",
    ),
    (Reason.LOOKBACK_EXCEEDED, ""): (
        "Set a marker at least every {reach} content blocks: the earlier entry is {behind} blocks "
        "behind the marker.",
        "请至少每 {reach} 个内容块设置一个标记:已有缓存位于标记之前 {behind} 个内容块,超出回溯范围。",
    ),
    (Reason.BELOW_MIN, ""): (
        "The fixed prefix lacks {missing} tokens to the minimum of {minimum}; move more fixed text "
        "into it, or leave it uncached.",
        "固定前缀距最小长度 {minimum} 还差 {missing} 个 token;请把更多固定内容移入前缀,或不使用缓存。",
    ),
    (Reason.WRITE_ONLY, ""): (
        "Move the marker from the text that is always new to the end of the fixed part: {writes} "
        "entries in a row were written and none was read.",
        "请把标记从每次都变的内容移到固定内容末尾:已连续写入 {writes} 次缓存,从未命中。",
    ),
    (Reason.FROZEN_MARKERS, ""): (
        "Let the last marker follow the conversation: it stayed in place, so {lost} tokens behind it "
        "are computed with every request.",
        "请让最后一个标记随对话后移:它一直停在原处,其后的 {lost} 个 token 每次都要重新计算。",
    ),
    (Reason.MODE_CONFLICT, ""): (
        "Use one cache mode a request ({conflict} were mixed): markers in Chat, the session header "
        "in Responses.",
        "每个请求只能使用一种缓存模式(混用了 {conflict}):Chat 接口使用标记,Responses 接口使用会话缓存"
        "请求头。",
    ),
    (Reason.MODEL_NOT_SUPPORTED, ""): (
        "This model has no explicit cache, so cache_control was ignored; choose a model that has "
        "one, or drop the markers.",
        "该模型不支持显式缓存,cache_control 已被忽略;请换用支持的模型或去掉标记。",
    ),
    (Reason.COLD_FIRST_USE, ""): (
        "This prefix was used for the first time; the next request with it can read it.",
        "该前缀首次使用,后续相同前缀的请求即可命中。",
    ),
    (Reason.COLD_FIRST_USE, "MARKER_MOVED"): (
        "Keep a marker where an entry was already written: all markers now lie before the end of the "
        "earlier entry.",
        "请在已写入缓存的位置保留标记:当前所有标记都位于已有缓存末尾之前。",
    ),
    (Reason.WRITE_PENDING, ""): (
        "Wait for the first answer before sending more requests with the same prefix: its entry was "
        "still being written.",
        "请在首个请求返回后再发送相同前缀的请求:该缓存当时仍在写入。",
    ),
    (Reason.TTL_EXPIRED, ""): (
        "Send the next request sooner, refresh the cache by name, or choose a longer lifetime: the "
        "entry ended {age} s ago.",
        "请缩短请求间隔、按名称续期或选择更长的有效期:该缓存已于 {age} 秒前过期。",
    ),
    (Reason.EVICTED, ""): (
        "The prefix had to make room ({detail}); pin it as a named cache, or give the cache more memory.",
        "该前缀因空间不足被淘汰({detail});请将其固定为命名缓存,或增大缓存内存。",
    ),
    (Reason.EVICTED, "TENANT_QUOTA"): (
        "The prefix had to make room within this tenant's quota; raise the quota or use fewer "
        "different prefixes.",
        "该前缀因超出租户配额被淘汰;请提高配额或减少不同前缀的数量。",
    ),
    (Reason.EVICTED, "TOO_BIG"): (
        "The prefix is larger than the cache may hold; shorten it, or give the cache more memory.",
        "该前缀超出缓存容量;请缩短前缀或增大缓存内存。",
    ),
    (Reason.FLUSHED, ""): (
        "The cache was emptied because {cause} changed; warm up the fixed prefixes after such a change.",
        "因 {cause} 变更,缓存已清空;此类变更后请预热固定前缀。",
    ),
    (Reason.STORE_FAILED, ""): (
        "The prefix could not be kept ({cause}); see the server's log, and give the cache more room.",
        "该前缀未能写入缓存({cause});请查看服务端日志并增大缓存空间。",
    ),
    (Reason.RESTART_LOST, ""): (
        "The server restarted without this prefix; list it for warm-up at start.",
        "服务重启后该前缀已丢失;请将其加入启动预热列表。",
    ),
    (Reason.BELOW_BLOCK, ""): (
        "The shared prefix has {shared} tokens, and the engine reuses no fewer than {block}; "
        "lengthen the fixed part.",
        "共享前缀仅 {shared} 个 token,低于引擎最小复用单位 {block};请加长固定内容。",
    ),
    (Reason.NO_ROLLBACK, ""): (
        "The model's {kind} layers can't go back to where the prompts part; append to conversations "
        "instead of branching them.",
        "该模型的 {kind} 层无法回退到分叉处;请以追加方式继续对话,避免分叉。",
    ),
    (Reason.STATE_MISSING, ""): (
        "The cached prefix is incomplete ({what} is missing) and was computed again; it is whole "
        "from now on.",
        "缓存的前缀不完整(缺少 {what}),已重新计算,此后可正常命中。",
    ),
    (Reason.FEATURE_DISABLED, ""): (
        "Caching is switched off here ({name}); ask the operator to switch it on.",
        "此处缓存已关闭({name});请联系管理员开启。",
    ),
    (Reason.ROUTED_ELSEWHERE, ""): (
        "The request went to {worker}, which does not have the prefix; route a conversation by its "
        "session id.",
        "请求被路由到 {worker},该处没有此前缀;请按会话标识固定路由。",
    ),
    (Reason.ROUTER_BLIND, ""): (
        "The router could not see the prefix ({cause}); check that workers and router hash alike.",
        "路由器无法识别前缀({cause});请检查路由器与各节点的哈希方式是否一致。",
    ),
    (Reason.TENANT_ISOLATED, ""): (
        "Tenants don't share prefixes; an operator can publish common prompts in the public zone.",
        "租户之间不共享前缀;管理员可将公共提示词发布到公共区。",
    ),
    (Reason.BEST_EFFORT, ""): (
        "The provider promises no hits in this mode; use an explicit cache where hits matter.",
        "服务商不保证该模式命中;需要确定命中时请使用显式缓存。",
    ),
    (Reason.UNKNOWN, ""): (
        "The prefix did not change and the store has no record of why it was not read; see the "
        "server's metrics.",
        "前缀未变化,存储中也没有未命中的记录;请查看服务端指标。",
    ),
    (Reason.NOT_REPORTED, ""): (
        "The provider did not report cached tokens for this request, so nothing is known about hits.",
        "服务商未返回该请求的缓存命中数,无法判断是否命中。",
    ),
}
