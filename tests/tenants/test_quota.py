"""Quotas and public prefixes in the database."""

from __future__ import annotations

import pytest

from hotprefix.base.clock import ManualClock
from hotprefix.kv.accounts import Limits, QuotaMode
from hotprefix.tenants.api_key import RateLimits
from hotprefix.tenants.errors import TenantError, UnknownPrefix
from hotprefix.tenants.public_prefix import PublicPrefix, read_prefix, read_raw
from hotprefix.tenants.quota import TenantQuota, granted
from hotprefix.tenants.tenancy import Tenancy


def test_a_quota_is_kept_replaced_and_forgotten(tenancy: Tenancy) -> None:
    assert tenancy.quotas.get("acme") == TenantQuota("acme")
    quota = TenantQuota("acme", 100, 2000, QuotaMode.REJECT, RateLimits(1, 2, 3))
    tenancy.quotas.set(quota)
    tenancy.quotas.set(TenantQuota("@public", 64))
    assert tenancy.quotas.list() == [TenantQuota("@public", 64), quota]
    tenancy.quotas.set(TenantQuota("acme", 7))
    assert tenancy.quotas.get("acme") == TenantQuota("acme", 7)
    tenancy.quotas.set(TenantQuota("acme"))
    assert [known.tenant for known in tenancy.quotas.list()] == ["@public"]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"floor_tokens": -1}, "0 or more"),
        ({"ceiling_tokens": -1}, "0 or more"),
        ({"floor_tokens": 10, "ceiling_tokens": 9}, "below the floor"),
        ({"tenant": "@others"}, "tenant's name"),
    ],
)
def test_nonsense_quotas(fields: dict[str, object], says: str) -> None:
    with pytest.raises(TenantError, match=says):
        TenantQuota(**({"tenant": "acme"} | fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("floor", "ceiling", "limits"),
    [
        (0, None, Limits()),
        (1, None, Limits(1)),
        (32, 64, Limits(1, 2)),
        (33, 95, Limits(2, 2)),
        (33, 40, Limits(2, 2)),
        (0, 31, Limits(0, 0)),
    ],
)
def test_tokens_become_blocks(floor: int, ceiling: int | None, limits: Limits) -> None:
    assert TenantQuota("acme", floor, ceiling).blocks(32) == limits


def test_floors_are_granted_until_the_reserve_is_used_up() -> None:
    quotas = [TenantQuota("a", 64), TenantQuota("b", 96), TenantQuota("c", 1, 5000), TenantQuota("d")]
    limits, short = granted(quotas, block_size=32, reserve=4)
    assert [limits[name].floor for name in "abcd"] == [2, 2, 0, 0]
    assert limits["c"].ceiling == 156
    assert short == ["b", "c"]
    assert granted(quotas, 32, 6)[1] == []


def test_a_text_becomes_a_system_message() -> None:
    assert read_prefix("Du bist höflich.\n".encode()) == {
        "messages": [{"role": "system", "content": "Du bist höflich."}],
        "tools": [],
    }
    assert read_raw(b"Once\n") == {"text": "Once\n"}


def test_json_messages() -> None:
    assert read_prefix(b'[{"role":"system","content":"x"}]')["messages"] == [
        {"role": "system", "content": "x"}
    ]
    both = read_prefix(b' {"messages":[{"role":"system","content":"x"}],"tools":[{"type":"function"}]}')
    assert both["tools"] == [{"type": "function"}]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "empty"),
        (b"\xff", "not UTF-8"),
        (b"[1", "is not"),
        (b"[]", "at least one"),
        (b"[1]", "at least one"),
        (b'[{"content":"x"}]', "role"),
        (b'{"messages":[{"role":"user"}],"model":"m"}', "'model'"),
        (b'{"messages":[{"role":"user"}],"tools":1}', "tools"),
    ],
)
def test_files_that_are_no_prefix(data: bytes, says: str) -> None:
    with pytest.raises(TenantError, match=says):
        read_prefix(data)


def test_prefixes_are_kept_by_their_content(tenancy: Tenancy, clock: ManualClock) -> None:
    first = tenancy.public.add(read_prefix(b"Be brief."), "brief")
    clock.advance(5)
    assert tenancy.public.add(read_prefix(b"Be brief."), "again") == first
    second = tenancy.public.add(read_raw(b"Be brief."), "raw")
    assert tenancy.public.list() == [first, second]
    assert tenancy.public.remove(first.id) == first
    assert tenancy.public.list() == [second]
    with pytest.raises(UnknownPrefix, match=first.id):
        tenancy.public.remove(first.id)


def chat(messages: object, tools: object) -> list[int]:
    """A template with a tokenizer whose tokens may join two letters."""
    text = "".join(f"<{m['role'][0]}>{m['content']}." for m in messages)  # type: ignore[attr-defined]
    return pairs(text + "<a>")


def pairs(text: str) -> list[int]:
    return [hash(text[at : at + 2]) for at in range(0, len(text), 2)]


def test_what_prompts_have_in_common() -> None:
    prefix = PublicPrefix("id", "n", 0.0, messages=({"role": "system", "content": "abcd"},))
    # "<s>abcd.<u>" has eleven letters: the sixth pair holds the first letter of what comes next.
    assert prefix.tokens(chat, pairs) == pairs("<s>abcd.<u>")[:5]
    assert PublicPrefix("id", "n", 0.0, text="abcde").tokens(chat, pairs) == pairs("abcd")
    assert PublicPrefix("id", "n", 0.0, text="abcd").tokens(chat, pairs) == pairs("abcd")
