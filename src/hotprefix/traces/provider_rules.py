"""A vendor's rules as a replay applies them: what of a hit is reported, and what all of it costs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum

from hotprefix.profiles.price import Price, price_of
from hotprefix.profiles.profile import Profile
from hotprefix.traces.errors import BadReplay


class BillingMode(StrEnum):
    """How prefixes come to be cached at the vendor."""

    IMPLICIT = "implicit"
    EXPLICIT = "explicit"


@dataclass(slots=True)
class Bill:
    """Tokens by what they cost. All but `output` are of prompts."""

    computed: int = 0
    read: int = 0
    written: int = 0
    output: int = 0


@dataclass(frozen=True, slots=True)
class ProviderRules:
    """Least tokens of a hit, its steps, the lifetime that every use renews, and prices.

    In `explicit` mode every prompt is taken to end with one marker: what it does not read, it writes.
    """

    name: str
    mode: BillingMode
    minimum: int
    quantum: int
    lifetime: float | None
    price: Price
    written_price: Decimal

    def reported(self, hit: int) -> int:
        """Tokens of a hit that the vendor counts as read."""
        return 0 if hit < self.minimum else hit - hit % self.quantum

    def book(self, bill: Bill, prompt: int, hit: int, output: int) -> None:
        """Add a request whose first `hit` tokens were known."""
        read = self.reported(hit)
        bill.read += read
        bill.output += output
        if self.mode is BillingMode.EXPLICIT and prompt >= self.minimum:
            bill.written += prompt - read
        else:
            bill.computed += prompt - read

    def cost(self, bill: Bill) -> Decimal:
        """Money for all that was booked."""
        price = self.price
        read = price.read_implicit if self.mode is BillingMode.IMPLICIT else price.read_explicit
        return (
            bill.computed * price.input
            + bill.read * read
            + bill.written * self.written_price
            + bill.output * price.output
        )


def rules_of(profile: Profile, model: str, day: date, mode: BillingMode | None = None) -> ProviderRules:
    """A profile's rules for a model; the mode is implicit where the vendor has that, unless one is named."""
    implicit, explicit = profile.implicit, profile.explicit
    if mode is None:
        mode = BillingMode.IMPLICIT if implicit is not None else BillingMode.EXPLICIT
    price = price_of(profile, model, day)
    if mode is BillingMode.IMPLICIT and implicit is not None:
        return ProviderRules(
            profile.name, mode, implicit.minimum_for(model), implicit.quantum, None, price, price.input
        )
    if mode is BillingMode.EXPLICIT and explicit is not None:
        ttl = explicit.default_ttl
        return ProviderRules(
            profile.name, mode, explicit.minimum_for(model), 1, explicit.ttls[ttl], price, price.write[ttl]
        )
    raise BadReplay(f"Profile {profile.name} has no {mode} cache. Choose another --mode or --profile.")
