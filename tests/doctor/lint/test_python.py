"""Programs that build requests: where what changes comes from, how it gets into prompts, what is no fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotprefix.doctor.lint.severity import Severity
from tests.doctor.lint.support import code, ids, only

HEAD = """
import glob, json, os, random, socket, subprocess, time, uuid
import datetime as clock
from datetime import date, datetime
from pathlib import Path
from string import Template
RULES = "Goods are weighed at the gate and stored in the hall. " * 120
"""


def system(expression: str, before: str = "") -> str:
    """A program that sends `expression` as its system prompt."""
    indented = "".join(f"    {line}\n" for line in before.splitlines())
    return (
        f"{HEAD}\ndef ask(client, history, question, cfg):\n{indented}"
        f"    return client.chat.completions.create(model='qwen-plus', messages=[\n"
        f"        {{'role': 'system', 'content': {expression}}}, *history,\n"
        f"        {{'role': 'user', 'content': question}}])\n"
    )


@pytest.mark.parametrize(
    ("expression", "rule"),
    [
        ("f'Now {datetime.now()} {RULES}'", "HP101"),
        ("'Now ' + str(datetime.utcnow()) + RULES", "HP101"),
        ("'Now {} {}'.format(clock.datetime.now().isoformat(), RULES)", "HP101"),
        ("'Now {at}'.format(at=time.strftime('%H:%M')) + RULES", "HP101"),
        ("'Now %s %s' % (time.ctime(), RULES)", "HP101"),
        ("'Now %(at)s' % {'at': time.time()} + RULES", "HP101"),
        ("Template('Now $at').substitute(at=datetime.now()) + RULES", "HP101"),
        ("RULES.replace('gate', str(datetime.now()))", "HP101"),
        ("'\\n'.join(['Now', str(datetime.now()), RULES])", "HP101"),
        ("f'Run {uuid.uuid4().hex[:8]} {RULES}'", "HP102"),
        ("f'Run {random.randint(1, 9)} {RULES}'", "HP102"),
        ("f'For {cfg.user_id}. {RULES}'", "HP102"),
        ("f\"For {os.environ['USER_ID']}. {RULES}\"", "HP102"),
        ("f'In {os.getcwd()}. {RULES}'", "HP103"),
        ("f'In {Path.cwd().name}. {RULES}'", "HP103"),
        ("f'On {socket.gethostname()}. {RULES}'", "HP103"),
        ("f\"By {os.getenv('USER')}. {RULES}\"", "HP103"),
        ("subprocess.run(['git', 'status'], capture_output=True).stdout.decode() + RULES", "HP103"),
        ("', '.join({'a', 'b'}) + RULES", "HP501"),
        ("', '.join(set(cfg)) + RULES", "HP501"),
        ("'\\n'.join(os.listdir('prompts')) + RULES", "HP501"),
        ("'\\n'.join(p.name for p in Path('x').iterdir()) + RULES", "HP501"),
        ("json.dumps(cfg) + RULES", "HP502"),
    ],
)
def test_sources(tmp_path: Path, expression: str, rule: str) -> None:
    finding = only(code(tmp_path, system(expression)), rule)
    assert finding.place.line > 8
    assert finding.place.column > 1


@pytest.mark.parametrize(
    "before",
    [
        "def now():\n    return datetime.now()\ntext = f'{now()} {RULES}'",
        "at = datetime.now()\ntext = RULES\ntext = f'{at:%H:%M} ' + text",
        "text = ''\nif cfg:\n    text += f'{datetime.now()}'\ntext += RULES",
        "parts = []\nparts.append(f'{datetime.now()}')\nparts.append(RULES)\ntext = ' '.join(parts)",
        "values = {'at': datetime.now()}\ntext = '{at}'.format(**values) + RULES",
        "with open('x') as file:\n    text = f'{datetime.now()}' + file.read() + RULES",
        "try:\n    text = f'{datetime.now()} {RULES}'\nexcept ValueError:\n    text = RULES",
    ],
)
def test_ways_into_the_prompt(tmp_path: Path, before: str) -> None:
    only(code(tmp_path, system("text", before)), "HP101")


@pytest.mark.parametrize(
    "expression",
    [
        "RULES",
        "RULES + 'Version ' + '2031-04-05'",
        "RULES + Path('system.txt').read_text()",
        "RULES + ', '.join(sorted({'a', 'b'}))",
        "RULES + '\\n'.join(sorted(os.listdir('prompts')))",
        "RULES + json.dumps(cfg, sort_keys=True)",
        "RULES + json.dumps({'type': 'object', 'properties': {'a': {'type': 'string'}}})",
        "RULES + os.environ['COMPANY']",
        "RULES + cfg.language + cfg.name",
        "RULES + str(len({'a', 'b'}))",
    ],
)
def test_what_is_no_fault(tmp_path: Path, expression: str) -> None:
    assert code(tmp_path, system(expression)) == []


def test_only_the_day_is_worth_less(tmp_path: Path) -> None:
    for text in (
        "f'{date.today()} {RULES}'",
        "datetime.now().strftime('%Y-%m-%d') + RULES",
        "f'{datetime.now():%d.%m.} {RULES}'",
    ):
        assert only(code(tmp_path, system(text)), "HP101").severity is Severity.INFO


def test_what_is_computed_once_for_a_process_is_worth_less(tmp_path: Path) -> None:
    source = HEAD + "STARTED = datetime.now()\n" + system("f'{STARTED} {RULES}'").removeprefix(HEAD)
    assert only(code(tmp_path, source), "HP101").severity is Severity.INFO


def test_the_newest_turn_may_have_all_of_it(tmp_path: Path) -> None:
    source = f"""{HEAD}
def ask(client, history, question, user_id):
    messages = [{{"role": "system", "content": RULES}}]
    messages.extend(history)
    text = f"{{datetime.now()}} {{os.getcwd()}} {{user_id}} {{question}}"
    messages.append({{"role": "user", "content": text}})
    return client.chat.completions.create(model="qwen-plus", messages=messages)
"""
    assert code(tmp_path, source) == []


def test_a_loop_of_a_terminal_stamps_each_turn_once(tmp_path: Path) -> None:
    source = f"""{HEAD}
def talk(client):
    messages = [{{"role": "system", "content": RULES}}]
    while True:
        messages.append({{"role": "user", "content": f"[{{datetime.now()}}] {{input()}}"}})
        answer = client.chat.completions.create(model="qwen-plus", messages=messages)
        messages.append({{"role": "assistant", "content": answer.choices[0].message.content}})
"""
    assert code(tmp_path, source) == []


def test_history_that_is_written_anew(tmp_path: Path) -> None:
    source = f"""{HEAD}
def ask(client, history):
    messages = [{{"role": "system", "content": RULES}}]
    for turn in history:
        messages.append({{"role": turn.role, "content": f"[{{datetime.now()}}] {{turn.text}}"}})
    return client.chat.completions.create(model="qwen-plus", messages=messages)
"""
    assert only(code(tmp_path, source), "HP106").place.line == 12


def test_a_clock_within_a_marked_block_is_an_error(tmp_path: Path) -> None:
    source = f"""{HEAD}
class Agent:
    def __init__(self, client):
        self.client = client
        self.system_prompt = f"{{datetime.now()}} {{RULES}}"

    def ask(self, question):
        return self.client.messages.create(
            model="claude-sonnet-4-6", max_tokens=99, messages=[{{"role": "user", "content": question}}],
            system=[{{"type": "text", "text": self.system_prompt, "cache_control": {{"type": "ephemeral"}}}}],
        )
"""
    finding = only(code(tmp_path, source), "HP101")
    assert finding.severity is Severity.ERROR
    assert finding.place.line == 12


@pytest.mark.parametrize(
    ("call", "rules"),
    [
        (
            "client.chat.completions.create(model='qwen-plus', max_tokens=9, temperature=1, stream=True,\n"
            "    messages=[\n"
            "    {'role': 'system', 'content': RULES}, {'role': 'user', 'content': question}])",
            ["HP701", "HP703"],
        ),
        (
            "client.responses.create(model='qwen3-max', instructions=RULES, input=question,\n"
            "    extra_body={'cache_id': 1})",
            ["HP407"],
        ),
        (
            "client.responses.create(model='gpt-5.2', instructions=RULES, input=question,\n"
            "    prompt_cache_key=f'k-{uuid.uuid4()}')",
            ["HP603"],
        ),
        (
            "requests.post(URL + '/chat/completions', json={'model': 'qwen-plus', 'messages': [\n"
            "    {'role': 'system', 'content': RULES, 'cache_control': {'type': 'ephemeral'}},\n"
            "    {'role': 'user', 'content': question}]})",
            ["HP301"],
        ),
        (
            "httpx.post(URL, data=json.dumps({'model': 'qwen-plus', 'messages': [\n"
            "    {'role': 'system', 'content': str(datetime.now()) + RULES},\n"
            "    {'role': 'user', 'content': question}]}))",
            ["HP101"],
        ),
        (
            "dashscope.Generation.call(model='qwen-plus', result_format='text', tools=[t for t in {1, 2}],\n"
            "    messages=[\n"
            "    {'role': 'system', 'content': [{'text': RULES}]}, {'role': 'user', 'content': question}])",
            ["HP501", "HP704"],
        ),
        ("Agent(name='a', instructions=f'{datetime.now()} {RULES}')", ["HP101"]),
        ("[SystemMessage(content=f'{datetime.now()} {RULES}'), HumanMessage(content=question)]", ["HP101"]),
        (
            "ChatPromptTemplate.from_messages([('system', '{current_time} ' + RULES),\n"
            "    ('human', '{question}')])",
            ["HP101"],
        ),
    ],
)
def test_calls_of_many_libraries(tmp_path: Path, call: str, rules: list[str]) -> None:
    imports = "import dashscope, httpx, requests"
    source = f"{HEAD}\n{imports}\n\ndef ask(client, question):\n    found = {call}\n    return found\n"
    assert ids(code(tmp_path, source)) == rules


def test_variable_text_before_fixed_text(tmp_path: Path) -> None:
    source = f"""{HEAD}
def ask(client, question):
    return client.chat.completions.create(model="llama", messages=[
        {{"role": "user", "content": f"Question: {{question}}\\n\\n{{RULES}}"}}])
"""
    finding = only(code(tmp_path, source), "HP107")
    assert int(finding.words["lost"]) > 1_000


def test_columns_count_characters(tmp_path: Path) -> None:
    source = (
        HEAD
        + "def ask(client, q):\n    system_prompt = '仓库规则:' + f'{datetime.now()}' + RULES\n"
        + "    return system_prompt\n"
    )
    finding = only(code(tmp_path, source), "HP101")
    line = source.splitlines()[finding.place.line - 1]
    assert line[finding.place.column - 1 :].startswith("datetime.now()")


def test_comments_switch_rules_off(tmp_path: Path) -> None:
    plain = system("f'{datetime.now()} {os.getcwd()} {RULES}'")
    assert ids(code(tmp_path, plain)) == ["HP101", "HP103"]
    line = next(line for line in plain.splitlines() if "getcwd()" in line)
    assert ids(code(tmp_path, plain.replace(line, f"{line}  # hotprefix: ignore[HP101]"))) == ["HP103"]
    assert code(tmp_path, plain.replace(line, f"{line}  # hotprefix: ignore")) == []
    above = f"        # hotprefix: ignore[volatile-env]\n{line}"
    assert ids(code(tmp_path, plain.replace(line, above))) == ["HP101"]
    assert code(tmp_path, f"# hotprefix: ignore-file\n{plain}") == []
    end = plain.rstrip() + "  # hotprefix: ignore[HP101, HP103]\n"
    assert code(tmp_path, end) == []  # the end of the statement


def test_programs_that_can_not_be_read(tmp_path: Path) -> None:
    finding = only(code(tmp_path, "prompt = (\n"), "HP901")
    assert finding.place.line == 1
    assert code(tmp_path, "x = 1\n") == []


def test_deep_and_endless_programs_end(tmp_path: Path) -> None:
    deep = "system_prompt = " + "(" * 150 + "1" + ")" * 150
    code(tmp_path, deep)
    code(tmp_path, "def a():\n    return b()\ndef b():\n    return a()\nsystem_prompt = a()\n")
    code(tmp_path, "system_prompt = " + " + ".join(["'x'"] * 3_000))


def test_what_holds_itself_ends(tmp_path: Path) -> None:
    source = """
import json
parts, facts = [], {}
parts.append(parts)
facts["self"], facts["parts"] = facts, parts
parts.append(facts)
parts.insert(0, [parts, parts])
facts.update({"again": facts})
copy = list(parts)
copy.append(parts)
system_prompt = f"{parts} {facts}" + json.dumps(facts)
messages = [{"role": "system", "content": parts}, {"role": "user", "content": facts}]
"""
    assert "HP901" not in ids(code(tmp_path, source))
