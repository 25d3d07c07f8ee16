"""The error tree: what the API relies on when it turns an error into an answer."""

from __future__ import annotations

import inspect

import pytest

from hotprefix.base import errors

ALL = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == errors.__name__]


@pytest.mark.parametrize("kind", ALL)
def test_every_error_is_in_the_tree(kind: type[Exception]) -> None:
    assert issubclass(kind, errors.HotprefixError)
    assert kind.__doc__


@pytest.mark.parametrize("kind", [kind for kind in ALL if issubclass(kind, errors.RequestError)])
def test_request_errors_are_the_clients(kind: type[errors.RequestError]) -> None:
    error = kind("message", param="messages.0", code=None)
    assert 400 <= error.status < 500
    assert (str(error), error.param) == ("message", "messages.0")
    assert kind("x", code="own").code == "own"
    assert kind("x").code == kind.code


def test_statuses_and_codes() -> None:
    expected = {
        errors.InvalidRequest: (400, "invalid_value"),
        errors.ContextLengthExceeded: (400, "context_length_exceeded"),
        errors.ModelNotFound: (404, "model_not_found"),
        errors.PayloadTooLarge: (413, "payload_too_large"),
        errors.Overloaded: (503, "overloaded"),
        errors.Draining: (503, "shutting_down"),
    }
    assert {kind: (kind.status, kind.code) for kind in expected} == expected


def test_unavailable_says_when_to_come_back() -> None:
    assert errors.Overloaded("full").retry_after == 1
    assert errors.Draining("bye", retry_after=30).retry_after == 30


def test_a_bug_is_never_the_clients_fault() -> None:
    assert not issubclass(errors.LogicError, errors.RequestError | errors.Unavailable)
