"""What can go wrong, as exceptions that say what to do."""

from __future__ import annotations

from typing import Any, Optional


class GatewayError(Exception):
    """The gateway answered with an error.

    ``code`` is for programs (``TOOL_NOT_FOUND``, ``INVALID_ARGUMENTS`` …),
    ``details`` has the facts (nearest names, violations of the schema), and
    ``request_id`` is the id under which the gateway's log has the rest.
    """

    def __init__(
        self,
        message: str,
        *,
        status: Optional[int] = None,
        code: Optional[str] = None,
        details: Any = None,
        request_id: Optional[str] = None,
        retry_after: Optional[float] = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.details = details
        self.request_id = request_id
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" if self.code else self.message


class InvalidRequestError(GatewayError):
    """The request or the tool's arguments are wrong (400, 405, 413)."""


class AuthenticationError(GatewayError):
    """No or wrong credentials, here or at the upstream (401)."""


class PermissionDeniedError(GatewayError):
    """Not allowed, or the tool is disabled (403)."""


class NotFoundError(GatewayError):
    """No such server, tool or provider (404)."""


class RateLimitError(GatewayError):
    """Too many calls (429); ``retry_after`` has the seconds to wait."""


class UpstreamError(GatewayError):
    """The upstream is down, slow, or its circuit is open (502, 503, 504)."""


class GatewayConnectionError(GatewayError):
    """The gateway cannot be reached."""


class GatewayTimeout(GatewayConnectionError):
    """The gateway did not answer in time. The tool may still have run."""


_BY_STATUS = {
    400: InvalidRequestError,
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    405: InvalidRequestError,
    413: InvalidRequestError,
    429: RateLimitError,
    502: UpstreamError,
    503: UpstreamError,
    504: UpstreamError,
}


def error_for(status: int, body: Any, retry_after: Optional[float]) -> GatewayError:
    """Returns the exception for an answer that is an error."""
    fields = body if isinstance(body, dict) else {}
    message = fields.get("message") or f"the gateway answered with status {status}"
    return _BY_STATUS.get(status, GatewayError)(
        str(message),
        status=status,
        code=fields.get("code"),
        details=fields.get("details"),
        request_id=fields.get("requestId"),
        retry_after=retry_after,
    )
