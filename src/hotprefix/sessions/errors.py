"""What can go wrong with sessions."""

from __future__ import annotations

from hotprefix.base.errors import HotprefixError, RequestError, Unavailable


class ResponseNotFound(RequestError):
    """No such response, or somebody else's: the two can't be told apart."""

    status = 404
    code = "response_not_found"


class ResponseExpired(RequestError):
    """The caller had such a response, but it is kept no longer."""

    status = 404
    code = "response_expired"


class PreviousResponseNotFound(RequestError):
    """`previous_response_id` names no response of the caller's."""

    code = "previous_response_not_found"


class PreviousResponseExpired(RequestError):
    """`previous_response_id` names a response whose chain is kept no longer."""

    code = "previous_response_expired"


class SessionsUnavailable(Unavailable):
    """Responses can't be stored or read now: the file or its disk is at fault."""

    code = "sessions_unavailable"


class SessionStoreError(HotprefixError):
    """The file with the stored responses can't be opened."""
