"""Programs of several modules, with objects and functions within functions, as people write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotprefix.doctor.lint.finding import LintFinding
from hotprefix.doctor.lint.severity import Severity
from tests.doctor.lint.support import RULES, code, ids, linter, only

SEND = "client.chat.completions.create(messages=[{'role': 'system', 'content': %s}, *history])"
ASK = f"def ask(client, history):\n    return {SEND}\n"
CLOCK = "from datetime import datetime\n"


def project(folder: Path, files: dict[str, str]) -> list[LintFinding]:
    """What is found in all files of a project."""
    (folder / "pyproject.toml").write_text("", encoding="utf-8")
    for name, text in files.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"RULES = {RULES!r}\n{text}", encoding="utf-8")
    return linter().check([folder]).findings


BUILD = f"{CLOCK}import getpass\ndef build(user):\n    return f'It is {{datetime.now()}}. {{RULES}}'\n"


@pytest.mark.parametrize(
    ("where", "imports", "call"),
    [
        ("texts", "from texts import build", "build(1)"),
        ("texts", "import texts as t", "t.build(1)"),
        ("kit/texts", "import kit.texts", "kit.texts.build(1)"),
        ("kit/texts", "from kit.texts import build as make", "make(1)"),
        ("src/kit/texts", "from kit.texts import build", "build(1)"),
    ],
)
def test_what_is_imported_is_followed(tmp_path: Path, where: str, imports: str, call: str) -> None:
    finding = only(project(tmp_path, {where: BUILD, "agent": f"{imports}\n{ASK % call}"}), "HP101")
    assert finding.place.file == str(tmp_path / f"{where}.py")
    assert (finding.place.line, finding.place.column) == (5, 21)
    assert finding.fix is None
    assert int(finding.words["lost"]) > 1_900


def test_relative_imports_and_what_a_package_passes_on(tmp_path: Path) -> None:
    files = {
        "kit/agent": f"from .texts import build\nfrom . import other\n{ASK % 'build(1)'}",
        "kit/texts/inner": BUILD,
        "kit/texts/__init__": "from .inner import build",
    }
    assert only(project(tmp_path, files), "HP101").place.file == str(tmp_path / "kit/texts/inner.py")


def test_a_fault_of_two_importers_is_told_once_where_it_is(tmp_path: Path) -> None:
    agent = f"from texts import build_system_prompt\n{ASK % 'build_system_prompt(1)'}"
    files = {"a": agent, "b": agent, "texts": BUILD.replace("build(", "build_system_prompt(")}
    assert len(project(tmp_path, files)) == 1
    files["texts"] = files["texts"].replace("RULES}'", "RULES}'  # hotprefix: ignore[HP101]")
    assert project(tmp_path, files) == []


def test_a_constant_of_another_module_is_measured(tmp_path: Path) -> None:
    send = (ASK % "SHORT").replace("*history", "{'role': 'user', 'content': history}")
    agent = "from texts import SHORT\n" + send.replace("messages=", "model='qwen-plus', messages=")
    assert ids(project(tmp_path, {"texts": "SHORT = 'Be kind.'", "agent": agent})) == ["HP202"]


def test_modules_that_import_one_another_end(tmp_path: Path) -> None:
    one = f"from two import b\n{CLOCK}def a():\n    return b() + f'{{datetime.now()}}'\n"
    two = "from one import a\ndef b():\n    return a()\n"
    only(project(tmp_path, {"one": one + "system_prompt = a() + RULES\n", "two": two}), "HP101")


def test_modules_outside_the_project_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "outside.py").write_text(BUILD, encoding="utf-8")
    (tmp_path / "inner").mkdir()
    agent = f"from outside import build\n{ASK % 'build(1)'}"
    assert project(tmp_path / "inner", {"agent": agent}) == []


HEAD = f"RULES = {RULES!r}\n{CLOCK}import uuid\nfrom openai import OpenAI\n"


@pytest.mark.parametrize(
    "program",
    [
        # a function within a function, as web frameworks want them
        f"def app():\n    client = OpenAI()\n    async def chat(history):\n"
        f"        return await {SEND % 'str(datetime.now()) + RULES'}\n    return app\n",
        "def app(client):\n    def text():\n        return str(datetime.now()) + RULES\n"
        "    def chat(history):\n"
        f"        return {SEND % 'text()'}\n",
        # an object's method, property and attribute
        "class Persona:\n    def render(self):\n        return str(datetime.now()) + RULES\n"
        f"def ask(client, history):\n    return {SEND % 'Persona().render()'}\n",
        "class Persona:\n    @property\n    def text(self):\n        return str(datetime.now()) + RULES\n"
        "class Agent:\n    def __init__(self):\n        self.who = Persona()\n"
        "    def ask(self, client, history):\n"
        f"        return {SEND % 'self.who.text'}\n",
        "class Base:\n    def text(self):\n        return str(datetime.now()) + RULES\nclass Agent(Base):\n"
        f"    def ask(self, client, history):\n        return {SEND % 'self.text()'}\n",
        # fields of a dataclass
        "class Prompt:\n    system: str\n    user: str\n    def messages(self, history):\n"
        "        return [{'role': 'system', 'content': self.system}, *history]\n"
        "def ask(history):\n    made = Prompt(str(datetime.now()) + RULES, user='x')\n"
        "    return OpenAI().chat.completions.create(messages=made.messages(history))\n",
        # a long way
        "def a():\n    return str(datetime.now())\ndef b():\n    return a() + RULES\n"
        "def c():\n    return b()\n"
        f"def d():\n    return c()\ndef ask(client, history):\n    return {SEND % 'd()'}\n",
        # whole names of functions that pass on what they get
        "import textwrap\nTEXT = textwrap.dedent('At {at}. ') + RULES\n"
        f"def ask(client, history):\n    return {SEND % 'TEXT.format(at=datetime.now())'}\n",
        "from langchain_core.prompts import ChatPromptTemplate\n"
        "made = ChatPromptTemplate.from_messages([('system', '{current_time} ' + RULES),\n"
        "    ('human', '{x}')]).partial(x=1)\n",
    ],
)
def test_ways_through_objects_and_functions(tmp_path: Path, program: str) -> None:
    only(code(tmp_path, HEAD + program), "HP101")


def test_a_name_alone_is_no_prompt_where_no_model_is(tmp_path: Path) -> None:
    source = f"{CLOCK}def stop(flash):\n    system_message = f'stopped at {{datetime.now()}}'\n"
    assert code(tmp_path, source) == []
    assert ids(code(tmp_path, f"import openai\n{source}")) == ["HP101"]


def test_what_an_object_keeps_costs_its_history_nothing(tmp_path: Path) -> None:
    source = f"""{HEAD}
class Session:
    def __init__(self):
        self.id = uuid.uuid4().hex
        self.messages = [{{"role": "system", "content": RULES + f"Began {{datetime.now()}}"}}]

    def ask(self, client, text):
        self.messages.append({{"role": "user", "content": text}})
        return client.chat.completions.create(messages=self.messages, prompt_cache_key=self.id)
"""
    found = code(tmp_path, source)
    assert ids(found) == ["HP101"]
    assert only(found, "HP101").severity is Severity.INFO


def test_a_default_text_counts(tmp_path: Path) -> None:
    source = (
        HEAD
        + "TEXT = RULES\ndef ask(client, history, text='Be kind.'):\n    return "
        + SEND % "text + str(datetime.now())"
    )
    assert int(only(code(tmp_path, source), "HP101").words["offset"]) in range(1, 9)


@pytest.mark.parametrize("day", ["str(datetime.now())[:10]", "datetime.now().isoformat().split('T')[0]"])
def test_the_first_part_of_a_moment_is_its_day(tmp_path: Path, day: str) -> None:
    source = f"{HEAD}def ask(client, history):\n    return {SEND % f'{day} + RULES'}\n"
    assert only(code(tmp_path, source), "HP101").severity is Severity.INFO


@pytest.mark.parametrize(
    "value",
    [
        "Answer.model_json_schema()",
        "json.load(open('x.json'))",
        "{'name': name, 'open': [1, 2]}",
        "[{'name': name} for name in names]",
    ],
)
def test_keys_in_the_order_of_a_class_or_a_file(tmp_path: Path, value: str) -> None:
    ask = (ASK % f"RULES + json.dumps({value})").replace("history)", "history, name, names)", 1)
    source = f"{HEAD}import json\n{ask}"
    assert code(tmp_path, source) == []


def test_arguments_that_are_written_anew_are_worth_more(tmp_path: Path) -> None:
    source = f"""{HEAD}import json
def ask(client, args, history, question):
    call = {{"id": "a", "type": "function", "function": {{"name": "f", "arguments": json.dumps(args)}}}}
    messages = [{{"role": "system", "content": RULES + json.dumps(args)}},
                {{"role": "assistant", "tool_calls": [call]}}, *history,
                {{"role": "user", "content": question}}]
    return client.chat.completions.create(messages=messages)
"""
    found = {one.place.line: one.severity for one in code(tmp_path, source) if one.rule.id == "HP502"}
    assert found == {7: Severity.WARNING, 8: Severity.INFO}
