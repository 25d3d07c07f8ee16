"""Changes in prompts: the cases of the design's test suite, by number."""

from __future__ import annotations

import pytest

from hotprefix.diagnosis.reason import Evidence, Reason
from tests.diagnosis.world import (
    Chat,
    World,
    assistant,
    call,
    common,
    result,
    rules_text,
    system,
    tool,
    turns,
    user,
)

RULES = rules_text(2000)
LETTERS = "ABCDEF"


def test_T01_a_time_before_the_rules() -> None:
    world = World()
    world.implicit(Chat([system("Report time 2031-04-05T10:00:01\n" + RULES), user("Where is box 7?")]))
    report = world.implicit(Chat([system("Report time 2031-04-05T10:00:02\n" + RULES), user("And box 9?")]))
    assert (report.reason, report.detail) == (Reason.SYSTEM_CHANGED, "VOLATILE_TIME")
    assert report.divergence is not None
    assert report.divergence.token < 20
    assert report.divergence.path == "messages[0].content"
    assert report.lost_tokens >= 1980
    assert report.avoidable
    assert report.evidence is Evidence.BYTES
    assert "10:00:01" in report.divergence.before
    assert "10:00:02" in report.divergence.after


def test_T01_after_the_advice_the_rules_are_read() -> None:
    world = World()
    for second in (1, 2):
        question = f"Where is box 7?\nReport time 2031-04-05T10:00:0{second}"
        report = world.implicit(Chat([system(RULES), user(question)]))
    assert report.reason is Reason.NONE
    assert report.matched >= 0.95 * len(Chat([system(RULES), user(question)]).prompt().token_ids)


def test_T02_a_time_at_the_end_of_the_system_prompt_costs_the_history() -> None:
    world, history = World(), turns(15)
    first = Chat([system(RULES + "Now: 09:14"), *history, user("Next?")])
    second = Chat([system(RULES + "Now: 09:15"), *history, user("Next?"), assistant("Yes."), user("And?")])
    world.implicit(first)
    report = world.implicit(second)
    ends = [span.end_token for span in second.prompt().spans]
    assert (report.reason, report.detail) == (Reason.SYSTEM_CHANGED, "VOLATILE_TIME")
    assert abs(report.matched - ends[0]) < 10
    assert report.lost_tokens >= (ends[30] - ends[0]) * 0.95
    assert str(report.lost_tokens) in report.advice_en


def test_T04_rotated_tools() -> None:
    tools = [tool(f"tool_{letter}") for letter in LETTERS]
    rotated = [*tools[1:], tools[0]]
    world = World()
    world.implicit(Chat([system(RULES), user("Hello there")], tools))
    report = world.implicit(Chat([system(RULES), user("Hello there")], rotated))
    assert (report.reason, report.detail) == (Reason.TOOLS_REORDERED, "tool_A")
    assert report.divergence is not None
    assert report.divergence.path == "tools[5]"


def test_T04_two_swapped_tools() -> None:
    tools = [tool(f"tool_{letter}") for letter in LETTERS]
    swapped = [tools[0], tools[2], tools[1], *tools[3:]]
    world = World()
    world.implicit(Chat([system(RULES), user("Hello there")], tools))
    report = world.implicit(Chat([system(RULES), user("Hello there")], swapped))
    assert (report.reason, report.detail) == (Reason.TOOLS_REORDERED, "tool_B")
    assert "tool_B" in report.advice_en
    assert "tool_B" in report.advice_zh


def test_T05_one_word_of_a_tools_description() -> None:
    tools = [tool(f"tool_{number}") for number in range(8)]
    changed = [*tools[:6], tool("tool_6", "Does something else, with a text as long as before."), tools[7]]
    world = World()
    world.implicit(Chat([system("Short."), *turns(3), user("Go")], tools))
    report = world.implicit(Chat([system("Short."), *turns(3), user("Go")], changed))
    assert (report.reason, report.detail) == (Reason.TOOLS_CHANGED, "tool_6")
    assert report.divergence is not None
    assert report.divergence.path == "tools[6].function.description"


@pytest.mark.parametrize(("old", "new", "detail"), [(3, 4, "+tool_3"), (4, 3, "-tool_3")])
def test_T05_a_tool_more_or_less(old: int, new: int, detail: str) -> None:
    tools = [tool(f"tool_{number}") for number in range(4)]
    world = World()
    world.implicit(Chat([system(RULES), *turns(3), user("Go")], tools[:old]))
    report = world.implicit(Chat([system(RULES), *turns(3), user("Go")], tools[:new]))
    assert (report.reason, report.detail) == (Reason.TOOLS_CHANGED, detail)


def test_T05_strange_and_deep_schemas() -> None:
    deep: dict[str, object] = {}
    for _ in range(400):
        deep = {"properties": deep}
    one, other = tool("odd", "A lone \ud800 surrogate and a number"), tool("odd", "A lone \ud801 surrogate")
    for each in (one, other):
        each["function"]["parameters"] = deep | {"maximum": 1 << 70}
    world = World()
    world.implicit(Chat([system(RULES), *turns(3), user("Go")], [one]))
    report = world.implicit(Chat([system(RULES), *turns(3), user("Go")], [other]))
    assert (report.reason, report.detail) == (Reason.TOOLS_CHANGED, "odd")


def test_T06_schema_keys_in_another_order() -> None:
    keys = {name: {"type": "string", "description": f"The {name} to look for"} for name in "abcdef"}
    permuted = {name: keys[name] for name in "bafedc"}
    world = World()
    world.implicit(Chat([system(RULES), user("Go")], [tool("search", properties=keys)]))
    report = world.implicit(Chat([system(RULES), user("Go")], [tool("search", properties=permuted)]))
    assert (report.reason, report.detail) == (Reason.ARG_KEY_ORDER, "SCHEMA_KEY_ORDER")
    assert report.divergence is not None
    assert report.divergence.path == "tools[0].function.parameters.properties"


def test_T06_properties_and_required_swapped() -> None:
    one, other = tool("search"), tool("search")
    one["function"]["parameters"] = {
        "type": "object",
        "required": ["b", "a"],
        "properties": {"a": {}, "b": {}},
    }
    other["function"]["parameters"] = {
        "type": "object",
        "properties": {"a": {}, "b": {}},
        "required": ["a", "b"],
    }
    world = World()
    world.implicit(Chat([system(RULES), *turns(2), user("Go")], [one]))
    report = world.implicit(Chat([system(RULES), *turns(2), user("Go")], [other]))
    assert (report.reason, report.detail) == (Reason.ARG_KEY_ORDER, "SCHEMA_KEY_ORDER")


def test_T08_arguments_in_another_key_order() -> None:
    def history(arguments: str) -> list[dict[str, object]]:
        return [
            system(RULES),
            *turns(2)[:3],
            user("Weather?"),
            call("weather", arguments),
            result("Sunny and warm. " * 20),
            assistant("It is sunny."),
        ]

    world = World()
    world.implicit(Chat([*history('{"city":"X","unit":"c"}'), user("And now?")]))
    report = world.implicit(Chat([*history('{"unit":"c","city":"X"}'), user("And now?")]))
    assert report.reason is Reason.ARG_KEY_ORDER
    assert report.divergence is not None
    assert report.divergence.path == "messages[5].tool_calls[0]"
    assert report.avoidable


def test_T08_other_arguments_are_an_edit() -> None:
    head, tail = [system(RULES), user("Weather?")], [result("Sunny and warm. " * 20), assistant("Sunny.")]
    world = World()
    world.implicit(Chat([*head, call("weather", '{"city":"X"}'), *tail, user("So?")]))
    report = world.implicit(Chat([*head, call("weather", '{"city":"Y"}'), *tail, user("So?")]))
    assert report.reason is Reason.HISTORY_EDITED


@pytest.mark.parametrize("at", [10, 5000])
def test_T10_other_scripts_count_as_ascii_does(at: int) -> None:
    base = rules_text(3000)
    for extra in ("--", "——", "仓库", "👩‍👩‍👧\u2028"):
        text = base[:at] + extra + base[at:]
        world = World()
        world.implicit(Chat([system(text), user("Where is box 7?")]))
        report = world.implicit(Chat([system(text), user("Where is box 7?")]))
        size = len(Chat([system(text), user("Where is box 7?")]).prompt().token_ids)
        assert (report.reason, report.matched) == (Reason.NONE, size - 1)


@pytest.mark.parametrize(
    "text", ["订单时间:2031年4月5日 10时", "👩‍👩‍👧 emoji\u2028 ", "\ud800 lone \x7f ", "–—« "]
)
def test_T11_strange_characters_around_a_change(text: str) -> None:
    world = World()
    world.implicit(Chat([system(text + "1" + RULES), user("Go")]))
    report = world.implicit(Chat([system(text + "2" + RULES), user("Go")]))
    assert report.reason is Reason.SYSTEM_CHANGED
    assert report.divergence is not None
    assert report.divergence.before != report.divergence.after
    assert (text + "1")[-10:] in report.divergence.before


def test_T12_a_window_of_twenty_messages() -> None:
    world, talk = World(), turns(15)
    for end in range(20, 30, 2):
        report = world.implicit(Chat([system("You help."), *talk[end - 20 : end + 1]]))
        if end > 20:
            assert report.reason is Reason.HEAD_TRIMMED
            assert report.detail == "2"
            assert report.lost_tokens > 200


def test_T12_a_window_cut_in_blocks_breaks_once() -> None:
    world, talk = World(), turns(20)
    reasons = []
    for end in range(20, 40, 2):
        start = (end - 20 + 9) // 10 * 10
        answer = str(talk[end + 1]["content"]) if end < 39 else ""
        report = world.implicit(Chat([system("You help."), *talk[start:end], talk[end]]), answer)
        reasons.append(report.reason)
    assert reasons.count(Reason.HEAD_TRIMMED) == 2
    assert set(reasons[1:]) == {Reason.HEAD_TRIMMED, Reason.NONE}


def test_T14_a_reminder_that_comes_and_goes() -> None:
    reminder = {"type": "text", "text": "Reminder: answer politely."}
    question = {"type": "text", "text": "Where does the red box go? " * 10}
    head, tail = [system(RULES)], [assistant("To aisle four."), user("And the blue one?")]
    with_it = [*head, {"role": "user", "content": [reminder, question]}]
    without = [*head, {"role": "user", "content": [question]}, *tail]
    again = [*with_it, *tail, assistant("To aisle five."), user("And green?")]
    world = World()
    world.implicit(Chat(with_it), "To aisle four.")
    gone = world.implicit(Chat(without), "To aisle five.")
    assert gone.reason is Reason.BLOCK_VANISHED
    assert gone.divergence is not None
    assert gone.divergence.path == "messages[1].content[0]"
    world.cached.pop(0)
    world.memory = _memory_of(world, without)
    back = world.implicit(Chat(again))
    assert back.reason is Reason.BLOCK_INSERTED


def _memory_of(world: World, messages: list[dict[str, object]]) -> object:
    world.memory.forget(world.tenant)
    world.memory.remember(world.tenant, Chat(messages).snapshot())
    return world.memory


@pytest.mark.parametrize(
    "constant",
    [
        "5d41402abc4b2a76b9719d911017c592",
        "2031-04-05T10:00:01Z",
        "7b0e4c1e-58a5-4c9a-9d53-2f5b8f2a6d10",
        "09:14",
    ],
)
def test_T15_a_constant_that_looks_volatile_is_never_accused(constant: str) -> None:
    text = f"Document {constant}\n{RULES}"
    world = World()
    for question in ("Where is box 7?", "Who checks the doors?", "When is noon?"):
        report = world.implicit(Chat([system(text), user(question)]))
        assert report.reason in (Reason.NONE, Reason.COLD_FIRST_USE)
    changed = world.implicit(Chat([system(text.replace("Shelf 9:", "Board 9:")), user("Where?")]))
    assert (changed.reason, changed.detail) == (Reason.SYSTEM_CHANGED, "OTHER")


def test_T36_the_answer_is_reused_with_its_prompt() -> None:
    world, talk = World(), turns(2)
    first = Chat([system(RULES), talk[0]])
    world.implicit(first, str(talk[1]["content"]))
    second = Chat([system(RULES), *talk[:3]])
    report = world.implicit(second)
    assert report.reason is Reason.NONE
    assert report.matched > len(first.prompt().token_ids) + 20


def test_T38_the_same_answer_in_other_tokens() -> None:
    world, said = World(), "Hanzi are written with a brush. " * 12
    first, second = (
        Chat([system(RULES), user("Tell me")]),
        Chat([system(RULES), user("Tell me"), assistant(said)]),
    )
    ids = second.prompt().token_ids
    start = len(first.prompt().token_ids)
    drawn = (999_999, *ids[start + 1 : -5])
    world.cached.append((*first.prompt().token_ids, *drawn))
    world.memory.remember("t", first.snapshot().answered(said, drawn))
    report = world.implicit(Chat([*second.messages, user("More")]))
    assert report.reason is Reason.RETOKENISED
    assert not report.avoidable
    assert report.divergence is not None
    assert report.divergence.token == start


def test_T39_without_thinking_nothing_avoidable_is_lost() -> None:
    world, talk = World(), turns(4)
    off = {"enable_thinking": False}
    for end in (1, 3, 5):
        report = world.implicit(Chat([system(RULES), *talk[:end]], variables=off), str(talk[end]["content"]))
        assert not report.avoidable
        expected = Reason.COLD_FIRST_USE if end == 1 else Reason.GENERATION_PROMPT
        assert report.reason is expected


def test_T39_thoughts_are_dropped_at_a_new_user_turn() -> None:
    def step(number: int) -> list[dict[str, object]]:
        thought = {"reasoning_content": f"I should look up item {number}. " * 10}
        return [
            call("find", f'{{"n": {number}}}', number) | thought,
            result(f"Found item {number}. " * 20, number),
        ]

    loop = [system(RULES), user("Find them"), *step(1), *step(2)]
    world = World()
    world.implicit(Chat(loop[:4]))
    within = world.implicit(Chat(loop))
    after = world.implicit(Chat([*loop, assistant("All found."), user("Thanks, and now?")]))
    assert within.reason is Reason.NONE
    assert after.reason is Reason.EXPECTED_TEMPLATE
    assert not after.avoidable


def test_thoughts_in_the_answer_are_dropped() -> None:
    world = World()
    answer = "<think>\nLet me see. \n</think>\n\n" + "Aisle four it is. " * 20
    world.implicit(Chat([system(RULES), user("Where?")]), answer)
    said = answer.rpartition("</think>")[2].strip()
    report = world.implicit(Chat([system(RULES), user("Where?"), assistant(said), user("So?")]))
    assert (report.reason, report.detail) == (Reason.EXPECTED_TEMPLATE, "THOUGHTS_DROPPED")


def test_whitespace_at_the_end_of_an_answer() -> None:
    world, talk = World(), turns(3)
    spaced = [dict(m) | {"content": f"{m['content']}\n\n"} if i == 1 else m for i, m in enumerate(talk)]
    world.implicit(Chat([system(RULES), *spaced, user("Go")]))
    report = world.implicit(Chat([system(RULES), *talk, user("Go"), assistant("ok"), user("on")]))
    assert report.reason is Reason.WHITESPACE_ONLY


def test_an_edit_in_the_middle() -> None:
    world, talk = World(), turns(4)
    edited = [*talk[:2], user("Something else altogether?"), *talk[3:]]
    world.implicit(Chat([system(RULES), *talk, user("Go")]))
    report = world.implicit(Chat([system(RULES), *edited, user("Go")]))
    assert report.reason is Reason.HISTORY_EDITED
    assert report.divergence is not None
    assert report.divergence.path == "messages[3].content"
    assert report.divergence.block == 3


def test_old_user_turns_with_a_new_stamp() -> None:
    def stamped(minute: int) -> list[dict[str, object]]:
        return [
            user(f"[2031-04-05 10:{minute}] {m['content']}") if m["role"] == "user" else m for m in turns(4)
        ]

    world = World()
    world.implicit(Chat([system(RULES), *stamped(14)]))
    report = world.implicit(Chat([system(RULES), *stamped(15), user("Go")]))
    assert (report.reason, report.detail) == (Reason.HISTORY_EDITED, "VOLATILE_TIME")


def test_an_image_that_became_a_pointer() -> None:
    image = {"role": "user", "content": [{"type": "text", "text": "data:image/png;base64,AAAA" * 10}]}
    pointer = {"role": "user", "content": [{"type": "text", "text": "[image saved to a file]"}]}
    world, talk = World(), turns(3)
    world.implicit(Chat([system(RULES), image, assistant("Nice."), *talk]))
    report = world.implicit(Chat([system(RULES), pointer, assistant("Nice."), *talk, user("Go")]))
    assert report.reason is Reason.IMAGE_REPLACED


def test_the_same_text_under_another_role() -> None:
    world, talk = World(), turns(3)
    other = [{"role": "developer", "content": RULES}, *talk]
    world.implicit(Chat([system(RULES), *talk, user("Go")]))
    report = world.implicit(Chat([*other, user("Go")]))
    assert (report.reason, report.detail) == (Reason.ROLE_CHANGED, "system→developer")


def test_another_model() -> None:
    world, talk = World(), turns(3)
    world.implicit(Chat([system(RULES), *talk, user("Go")]))
    report = world.implicit(Chat([system(RULES), *talk, user("Go")], model="qwen-max"), matched=0)
    assert report.reason is Reason.MODEL_CHANGED
    assert report.lost_tokens > 2000
    assert "qwen-plus became qwen-max" in report.advice_en


def test_a_parameter_that_enters_the_template() -> None:
    world, talk = World(), turns(2)
    long = str(talk[1]["content"])
    world.implicit(Chat([system(RULES), talk[0]], variables={"enable_thinking": False}), long)
    report = world.implicit(Chat([system(RULES), *talk], variables={"enable_thinking": True}))
    assert (report.reason, report.detail) == (Reason.PARAM_CHANGED, "enable_thinking")


def test_a_parameter_that_stands_in_the_key_alone_is_inferred() -> None:
    world = World()
    world.implicit(Chat([system(RULES), user("Go")], parameters={"adapter": "a"}))
    report = world.implicit(Chat([system(RULES), user("Go")], parameters={"adapter": "b"}), matched=0)
    assert (report.reason, report.detail) == (Reason.PARAM_CHANGED, "adapter")
    assert report.evidence is Evidence.INFERRED


def test_the_divergence_counts_tokens_as_the_prompts_do() -> None:
    first = Chat([system("Session 4711-a\n" + RULES), user("Go")])
    second = Chat([system("Session 4712-b\n" + RULES), user("Go")])
    world = World()
    world.implicit(first)
    report = world.implicit(second)
    assert report.divergence is not None
    assert report.divergence.token == common(first.prompt().token_ids, second.prompt().token_ids)
    assert report.detail == "VOLATILE_ID"
