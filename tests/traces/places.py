"""Where the traces for the tests are."""

from __future__ import annotations

from pathlib import Path

DATA = Path(__file__).parent / "data"
CONVERSATION = DATA / "mooncake" / "conversation_trace.jsonl.xz"
SYNTHETIC = DATA / "mooncake" / "synthetic_trace.jsonl.xz"
SESSIONS = DATA / "agent_sessions"
AZURE = DATA / "azure" / "conv.csv.xz"
