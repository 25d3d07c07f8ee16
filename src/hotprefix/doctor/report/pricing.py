"""What calls cost, by the dated price tables of the profiles."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from fnmatch import fnmatchcase

from hotprefix.doctor.report.call import Call, Source
from hotprefix.doctor.report.trouble import Trouble, Troubles
from hotprefix.doctor.report.usage import UNNAMED_TTL
from hotprefix.profiles.loader import ProfileBook
from hotprefix.profiles.price import Price, price_of, price_row
from hotprefix.profiles.profile import Profile

_ATTO = 10**18
_PICO = 10**6
"""Atto-units in a pico-unit."""

_VENDORS = {
    "openai": ("gpt-*", "chatgpt-*", "o[1-9]*", "codex-*"),
    "anthropic": ("claude*",),
    "dashscope": ("qwen*", "qwq*", "qvq*"),
}


@dataclass(frozen=True, slots=True)
class Rate:
    """Atto-units of `currency` for a token; `write` by TTL name."""

    currency: str
    input: int
    output: int
    read: dict[str, int]
    write: dict[str, int]

    def saved(self, mode: str | None) -> int:
        """What a token costs less when it is read than when it is computed."""
        return self.input - self.read_in(mode)

    def read_in(self, mode: str | None) -> int:
        """A token read through the cache of that mode."""
        return self.read.get(mode or "implicit", self.read["implicit"])

    def written_for(self, ttl: str) -> int:
        """A token written; tables without a price for that have none but the one of input."""
        return self.write.get(ttl, self.write.get(UNNAMED_TTL, self.input))


Notes = tuple[tuple[Trouble, str], ...]


class Pricing:
    """Prices calls, and notes what is doubtful in that. `profile` prices all of them, else each has the table
    that its vendor had on its day."""

    def __init__(self, book: ProfileBook, troubles: Troubles, profile: str | None = None) -> None:
        self._book = book
        self._troubles = troubles
        self._chosen = None if profile is None else book.get(profile)
        self._known: dict[tuple[str | None, str | None, str, date | None], tuple[Rate | None, Notes]] = {}

    def price(self, call: Call) -> None:
        """Fill in the money of a call, unless the log tells it itself."""
        if call.money is not None or call.prompt is None or call.output is None or call.read is None:
            # Where it is not known what was read at a discount, neither is the price.
            return
        rate, notes = self._told(call.model, call.provider, call.source, call.at)
        for kind, subject in notes:
            self._troubles.add(kind, subject=subject)
        if rate is None:
            return
        written = call.by_ttl or {}
        computed = call.prompt - call.read - sum(written.values())
        total = computed * rate.input + call.output * rate.output + call.read * rate.read_in(call.mode)
        total += sum(tokens * rate.written_for(ttl) for ttl, tokens in written.items())
        call.money, call.currency = rounded(total), rate.currency

    def rate(self, model: str | None, provider: str | None, source: str, at: float | None) -> Rate | None:
        """The rate of a model on the day of a call; None if no table is for it."""
        return self._told(model, provider, source, at)[0]

    def _told(
        self, model: str | None, provider: str | None, source: str, at: float | None
    ) -> tuple[Rate | None, Notes]:
        day = datetime.fromtimestamp(at, UTC).date() if at is not None else None
        key = model, provider, source, day
        if key not in self._known:
            self._known[key] = self._found(*key)
        return self._known[key]

    def _found(
        self, model: str | None, provider: str | None, source: str, day: date | None
    ) -> tuple[Rate | None, Notes]:
        profile = self._chosen
        vendor = vendor_of(model, provider, source)
        if profile is None and vendor is not None:
            profile = _in_force(vendor, self._book, day)
        if profile is None or not model:
            return None, ((Trouble.UNPRICED, model or ""),)
        name = model.rsplit("/", 1)[-1]
        day = day or profile.dated
        row = price_row(profile, name, day)
        notes = []
        if row.model == "*" and self._chosen is None:
            notes.append((Trouble.ASSUMED_PRICE, f"{name} · {profile.name}"))
        if row.since > day:
            notes.append((Trouble.EARLY_PRICE, f"{profile.name} {row.since.isoformat()}"))
        return _rate(profile, price_of(profile, name, day)), tuple(notes)


def _in_force(vendor: str, book: ProfileBook, day: date | None) -> Profile | None:
    """The vendor's newest profile on that day; before the first of them, the first."""
    found = sorted((p for p in book.profiles.values() if p.vendor == vendor), key=lambda p: (p.dated, p.name))
    begun = [profile for profile in found if day is None or profile.dated <= day]
    return begun[-1] if begun else next(iter(found), None)


def vendor_of(model: str | None, provider: str | None, source: str) -> str | None:
    """Whose prices count: by the model's name, else by what the log says, else by the dialect."""
    name = (model or "").lower().rsplit("/", 1)[-1]
    for vendor, patterns in _VENDORS.items():
        if any(fnmatchcase(name, pattern) for pattern in patterns):
            return vendor
    told = (provider or "").lower()
    # "openai" is said of everything that speaks its dialect, so its models have to be known by name.
    for vendor in ("anthropic", "dashscope"):
        if vendor in told:
            return vendor
    return {Source.ANTHROPIC.value: "anthropic", Source.DASHSCOPE.value: "dashscope"}.get(source)


def _rate(profile: Profile, price: Price) -> Rate:
    write = {ttl: _atto(amount) for ttl, amount in price.write.items()}
    rules = profile.explicit
    if rules is not None and rules.default_ttl in write:
        write[UNNAMED_TTL] = write[rules.default_ttl]
    read = {
        "implicit": _atto(price.read_implicit if profile.implicit is not None else price.read_explicit),
        "explicit": _atto(price.read_explicit if profile.explicit is not None else price.read_implicit),
        "session": _atto(price.read_session if profile.session is not None else price.read_implicit),
    }
    return Rate(price.currency, _atto(price.input), _atto(price.output), read, write)


def _atto(money: Decimal) -> int:
    return int((money * _ATTO).to_integral_value())


def rounded(atto: int) -> int:
    """Atto-units as pico-units, halves to even as the ledger rounds."""
    whole, rest = divmod(atto, _PICO)
    if rest * 2 > _PICO or (rest * 2 == _PICO and whole % 2):
        whole += 1
    return whole
