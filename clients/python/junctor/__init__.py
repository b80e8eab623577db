"""Client of the Junctor gateway: the tools of MCP servers for any model.

    from junctor import GatewayClient

    gateway = GatewayClient("http://127.0.0.1:8787")
    tools = gateway.get_tools("openai")              # give these to the provider
    result = gateway.execute("openai", tool_call)    # give this back to it

Only the standard library is used, so any provider's own library fits beside it.
"""

from ._async import AsyncGatewayClient
from ._client import GatewayClient
from ._errors import (
    AuthenticationError,
    GatewayConnectionError,
    GatewayError,
    GatewayTimeout,
    InvalidRequestError,
    NotFoundError,
    PermissionDeniedError,
    RateLimitError,
    UpstreamError,
)
from ._logs import LogStream
from ._results import Result, ToolConfig, ToolList
from ._run import RunLimitError, RunResult

__all__ = [
    "AsyncGatewayClient",
    "AuthenticationError",
    "GatewayClient",
    "GatewayConnectionError",
    "GatewayError",
    "GatewayTimeout",
    "InvalidRequestError",
    "LogStream",
    "NotFoundError",
    "PermissionDeniedError",
    "RateLimitError",
    "Result",
    "RunLimitError",
    "RunResult",
    "ToolConfig",
    "ToolList",
    "UpstreamError",
]

__version__ = "0.1.0"
