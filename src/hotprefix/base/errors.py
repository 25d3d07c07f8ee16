"""Every error Hotprefix raises on purpose, in one tree.

HotprefixError
├── RequestError              the client's request can't be served as it is (4xx)
│   ├── InvalidRequest        a field is missing, of the wrong type or out of range
│   ├── ContextLengthExceeded prompt (plus answer) is longer than the model or the arena holds
│   ├── ModelNotFound         the request names a model that is not served here
│   ├── Unauthenticated       there is no credential, or it is not (or no longer) valid
│   ├── Forbidden             the credential is valid and does not allow this
│   └── PayloadTooLarge       the body is over the limit
├── Unavailable               the server can't take the request now (503)
│   ├── Overloaded            the waiting line is full
│   ├── RateLimited           this credential or tenant has asked for too much for now (429)
│   └── Draining              the server is shutting down
├── ModelError                a model can't be fetched, read or compiled
│   ├── UnknownModel          no such name or path
│   ├── BrokenModelFile       truncated, corrupt or not a model file
│   ├── UnsupportedModel      readable, but an architecture or format that is not served
│   └── FetchFailed           the download did not finish
├── MissingExtra              an optional dependency is not installed
└── LogicError                an invariant is broken: a bug in Hotprefix
"""

from __future__ import annotations


class HotprefixError(Exception):
    """Root of all errors raised on purpose. `str(error)` says what to do."""


class RequestError(HotprefixError):
    """The request can't be served as it is.

    `param` is the JSON path of the field at fault, `code` a stable machine-readable word.
    """

    status = 400
    code: str | None = None

    def __init__(self, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.param = param
        if code is not None:
            self.code = code


class InvalidRequest(RequestError):
    """A field is missing, of the wrong type or out of range."""

    code = "invalid_value"


class ContextLengthExceeded(RequestError):
    """The prompt is longer than the model's context or the KV arena."""

    code = "context_length_exceeded"


class ModelNotFound(RequestError):
    """The request names a model that is not served here."""

    status = 404
    code = "model_not_found"


class Unauthenticated(RequestError):
    """There is no credential, or it is not (or no longer) valid."""

    status = 401
    code = "invalid_api_key"


class Forbidden(RequestError):
    """The credential is valid and does not allow this."""

    status = 403
    code = "permission_denied"


class PayloadTooLarge(RequestError):
    """The body is over the limit."""

    status = 413
    code = "payload_too_large"


class Unavailable(HotprefixError):
    """The server can't take the request now; `retry_after` is in seconds."""

    status = 503
    code = "unavailable"

    def __init__(self, message: str, *, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Overloaded(Unavailable):
    """The waiting line is full."""

    code = "overloaded"


class RateLimited(Unavailable):
    """A limit of this credential or tenant is reached; the message names it."""

    status = 429
    code = "rate_limit_exceeded"


class Draining(Unavailable):
    """The server is shutting down."""

    code = "shutting_down"


class ModelError(HotprefixError):
    """A model can't be fetched, read or compiled."""


class UnknownModel(ModelError):
    """No such model name or path."""


class BrokenModelFile(ModelError):
    """The file is truncated, corrupt or not a model file at all."""


class UnsupportedModel(ModelError):
    """The file is readable, but its architecture or format is not served."""


class FetchFailed(ModelError):
    """The download did not finish or its digest is wrong."""


class MissingExtra(HotprefixError):
    """An optional dependency is not installed."""


class LogicError(HotprefixError):
    """An invariant is broken: a bug in Hotprefix, never the user's fault."""
