"""What can go wrong with the ledger."""

from __future__ import annotations

from hotprefix.base.errors import HotprefixError


class LedgerError(HotprefixError):
    """The ledger can't be opened, read or written."""


class RowRefused(LedgerError):
    """A row that the database will never take, however often it is tried."""
