"""Rewrites of requests in JSON and YAML; what they are not for stays byte for byte."""

from __future__ import annotations

import json
from dataclasses import dataclass

from hotprefix.doctor.lint.edits import Edit, Fix
from hotprefix.doctor.lint.spans import Member, SpanNode, find

_MARKER = "cache_control"


@dataclass(frozen=True, slots=True)
class Tree:
    """A request's place in a file: `root` is the body in the file's `text`."""

    text: str
    root: SpanNode

    def find(self, path: str) -> SpanNode | None:
        """The value at a path of the request."""
        return find(self.root, path)

    def source(self, node: SpanNode) -> str:
        """A value as written."""
        return self.text[node.start : node.end]


def remove_member(tree: Tree, owner: str, key: str) -> Fix | None:
    """Take a key out of an object."""
    node = tree.find(owner)
    edit = _removal(tree, node, key) if node is not None else None
    return Fix((edit,)) if edit is not None else None


def move_into_string(tree: Tree, owner: str) -> Fix | None:
    """A string content with a marker beside it → an array of one text block that carries the marker."""
    node = tree.find(owner)
    content = node.member("content") if node is not None else None
    marker = node.member(_MARKER) if node is not None else None
    if node is None or content is None or marker is None or content.value.text is None:
        return None
    removal = _removal(tree, node, _MARKER)
    block = _block(tree, content, marker)
    if removal is None or block is None:
        return None
    start = content.value.start
    if block.startswith("\n"):
        start = len(tree.text[:start].rstrip(" "))
    return Fix((removal, Edit(start, content.value.end, block)))


def move_into_last_block(tree: Tree, owner: str) -> Fix | None:
    """A marker beside an array of blocks → on the last of them."""
    node = tree.find(owner)
    content = node.member("content") if node is not None else None
    marker = node.member(_MARKER) if node is not None else None
    if node is None or content is None or marker is None or not content.value.items:
        return None
    last = content.value.items[-1]
    removal = _removal(tree, node, _MARKER)
    if removal is None or not last.members:
        return None
    if last.member(_MARKER) is not None:
        return Fix((removal,))
    end = last.members[-1].value.end
    if last.is_block:
        indent = last.members[0].start - tree.text.rfind("\n", 0, last.members[0].start) - 1
        end = len(tree.text[:end].rstrip("\n"))
        added = f"\n{' ' * indent}{_MARKER}: {_flow(tree, marker.value)}"
    else:
        quote = '"' if tree.text[last.members[0].start] == '"' else ""
        added = f", {quote}{_MARKER}{quote}: {_flow(tree, marker.value)}"
    return Fix((removal, Edit(end, end, added)))


def sort_items(tree: Tree, path: str, order: list[int]) -> Fix | None:
    """Put the elements of an array into another order; what stands between them stays."""
    node = tree.find(path)
    if node is None or node.is_block or len(order) != len(node.items) or order == sorted(order):
        return None
    edits = (
        Edit(slot.start, slot.end, tree.source(node.items[number]))
        for slot, number in zip(node.items, order, strict=True)
        if node.items[number] is not slot
    )
    return Fix(tuple(edits))


def sort_keys(tree: Tree, path: str) -> Fix | None:
    """Put the keys of an object into order, at every depth; blanks and line ends stay where they are."""
    node = tree.find(path)
    if node is None or node.is_block:
        return None
    written, done = tree.source(node), _sorted(tree, node)
    return Fix((Edit(node.start, node.end, done),)) if written != done else None


def sort_keys_in_string(tree: Tree, path: str) -> Fix | None:
    """The same for JSON that is written within a string."""
    node = tree.find(path)
    if node is None or node.text is None or node.style != '"' or node.is_block:
        return None
    try:
        value = json.loads(node.text)
    except ValueError:
        return None
    separators = (", ", ": ") if '": ' in node.text else (",", ":")
    done = json.dumps(value, sort_keys=True, ensure_ascii=node.text.isascii(), separators=separators)
    if done == node.text:
        return None
    return Fix((Edit(node.start, node.end, json.dumps(done, ensure_ascii=tree.source(node).isascii())),))


def _sorted(tree: Tree, node: SpanNode) -> str:
    if node.members:
        slots = node.members
        order = sorted(slots, key=lambda member: member.key)
        pieces = [tree.text[node.start : slots[0].start]]
        for number, (slot, member) in enumerate(zip(slots, order, strict=True)):
            pieces.append(tree.text[member.start : member.value.start] + _sorted(tree, member.value))
            end = slots[number + 1].start if number + 1 < len(slots) else node.end
            pieces.append(tree.text[slot.value.end : end])
        return "".join(pieces)
    if node.items:
        pieces, at = [], node.start
        for item in node.items:
            pieces += [tree.text[at : item.start], _sorted(tree, item)]
            at = item.end
        return "".join([*pieces, tree.text[at : node.end]])
    return tree.source(node)


def _removal(tree: Tree, node: SpanNode, key: str) -> Edit | None:
    member = node.member(key)
    if member is None:
        return None
    number = node.members.index(member)
    if number + 1 < len(node.members):
        return Edit(member.start, node.members[number + 1].start, "")
    end = len(tree.text[: member.value.end].rstrip("\n"))
    if node.is_block:
        line = tree.text.rfind("\n", 0, member.start)
        return Edit(line, end, "") if number and line >= 0 else None
    start = node.members[number - 1].value.end if number else member.start
    return Edit(start, end, "")


def _block(tree: Tree, content: Member, marker: Member) -> str | None:
    """The array that takes the place of a string."""
    node, flow = content.value, _flow(tree, marker.value)
    is_quoted_key = tree.text[content.start] == '"'
    if node.style in ("|", ">"):
        return _literal_block(tree, content, flow)
    text = tree.source(node) if node.style == '"' else json.dumps(node.text, ensure_ascii=False)
    if is_quoted_key:
        return f'[{{"type": "text", "text": {text}, "{_MARKER}": {flow}}}]'
    return f"[{{type: text, text: {text}, {_MARKER}: {flow}}}]"


def _literal_block(tree: Tree, content: Member, flow: str) -> str | None:
    """YAML's block scalars keep their lines, four columns further right."""
    head, _, body = tree.source(content.value).partition("\n")
    if any(character.isdigit() for character in head):
        return None  # a written-out indentation would have to be counted anew
    indent = " " * (content.start - tree.text.rfind("\n", 0, content.start) - 1)
    lines = [f"    {line}" if line.strip() else line for line in body.split("\n")]
    if lines and not lines[-1].strip():
        lines.pop()
    text = "\n".join(lines)
    return f"\n{indent}  - type: text\n{indent}    text: {head}\n{text}\n{indent}    {_MARKER}: {flow}\n"


def _flow(tree: Tree, node: SpanNode) -> str:
    """A marker in brackets."""
    if not node.is_block:
        return tree.source(node)
    pairs = ", ".join(f"{member.key}: {tree.source(member.value).strip()}" for member in node.members)
    return f"{{{pairs}}}"
