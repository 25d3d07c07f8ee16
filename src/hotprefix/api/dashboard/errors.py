"""What can be wrong with a question to the dashboard."""

from __future__ import annotations

from hotprefix.base.errors import RequestError


class RequestNotFound(RequestError):
    """There is no request with this id, or it is another tenant's."""

    status = 404
    code = "request_not_found"
