"""The client of a Junctor gateway."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Union, overload

from ._errors import GatewayError
from ._http import Transport
from ._logs import LogStream, Since, log_query
from ._plain import get, plain
from ._results import Result, declarations
from ._run import Ask, RunResult, run

Json = Dict[str, Any]
Words = Union[str, Sequence[str], None]


class GatewayClient:
    """Talks to a Junctor gateway.

    ``timeout`` is in seconds, for one request; ``retries`` is how often a
    request is tried again that can be without harm. The client holds no
    connection and may be shared between threads.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8787",
        *,
        api_key: Optional[str] = None,
        timeout: float = 120.0,
        retries: int = 2,
        headers: Optional[Mapping[str, str]] = None,
    ) -> None:
        all_headers = {"User-Agent": "junctor-python/0.1.0", **(headers or {})}
        if api_key:
            all_headers["Authorization"] = f"Bearer {api_key}"
        self._http = Transport(url, all_headers, timeout, retries)

    @property
    def url(self) -> str:
        return self._http.url

    # Tools

    def get_tools(
        self,
        provider: str,
        server: Words = None,
        *,
        tags: Words = None,
        query: Optional[str] = None,
        limit: Optional[int] = None,
        detail: Optional[str] = None,
        schema: Optional[str] = None,
        strict: Optional[bool] = None,
    ) -> Any:
        """Returns the tools as the provider's library takes them.

        A list for OpenAI, xAI, Anthropic and Ollama; for Gemini one tool with
        ``function_declarations``; for Bedrock a tool configuration. ``.warnings``
        says what the provider could not be told. (The type is Any because the
        libraries have types of their own, which no other type fits.)
        """
        body = self._http.json(
            "GET",
            f"/tools/{_segment(provider)}",
            {"server": server, "tags": tags, "query": query, "limit": limit, "detail": detail, "schema": schema, "strict": strict},
        )
        return declarations(provider, body)

    def list_tools(self, server: Words = None, *, tags: Words = None, query: Optional[str] = None, limit: Optional[int] = None) -> List[Json]:
        """Returns the MCP definitions of tools, each with its ``server``."""
        body = self._http.json("GET", "/tools", {"server": server, "tags": tags, "query": query, "limit": limit})
        return list(body["tools"])

    def search(self, query: str, *, limit: int = 10, server: Words = None, tags: Words = None) -> List[Json]:
        """Finds tools by what they do, the best match first."""
        return self.list_tools(server, tags=tags, query=query, limit=limit)

    def context(
        self,
        provider: str,
        server: Words = None,
        *,
        tags: Words = None,
        query: Optional[str] = None,
        limit: Optional[int] = None,
        detail: str = "concise",
    ) -> str:
        """Returns the tools as text for a prompt."""
        body = self._http.json(
            "GET",
            f"/tools/{_segment(provider)}/context",
            {"server": server, "tags": tags, "query": query, "limit": limit, "detail": detail},
        )
        return str(body["context"])

    # Calls

    # The overlap is intentional: only a list of calls has several results.
    @overload
    def execute(  # type: ignore[overload-overlap] # pyright: ignore[reportOverlappingOverload]
        self, provider: Optional[str], call: List[Any], server: Optional[str] = None
    ) -> List[Result]: ...

    @overload
    def execute(self, provider: Optional[str], call: Any, server: Optional[str] = None) -> Result: ...

    def execute(self, provider: Optional[str], call: Any, server: Optional[str] = None) -> Any:
        """Runs what the model called and returns what goes back to it.

        ``call`` is the call as the provider's library returned it (a part or
        a block that holds one is fine too), or a dict, or a list of parallel
        ones. A single call that cannot be run raises;
        in a list each call has its own result, failures too, because a
        conversation needs an answer to every call.
        """
        many = isinstance(call, (list, tuple))
        body: Json = {"call": plain(call)}
        if provider:
            body["provider"] = provider
        if server:
            body["server"] = server
        answer = self._http.json("POST", "/execute", body=body)
        if many:
            return [Result(provider or _form(a), a) for a in answer]
        return Result(provider or _form(answer), answer)

    def call_tool(self, server: Optional[str], tool: str, arguments: Optional[Mapping[str, Any]] = None) -> Json:
        """Runs a tool by its own name and returns its MCP result."""
        body: Json = {"tool": tool, "arguments": dict(arguments or {})}
        if server:
            body["server"] = server
        return dict(self._http.json("POST", "/call_tool", body=body)["result"])

    def run(
        self,
        provider: str,
        ask: Ask,
        messages: Sequence[Any],
        *,
        tools: Any = None,
        server: Optional[str] = None,
        max_steps: int = 25,
    ) -> RunResult:
        """Drives a whole tool loop around your own client of a provider.

        ``ask(messages, tools)`` calls the model and returns the response as
        the provider's library gave it. The loop runs what the model calls,
        appends results in the provider's form, and ends with the first
        response without calls.
        """
        if tools is None:
            tools = self.get_tools(provider, server)
        return run(self, provider, ask, messages, tools, server, max_steps)

    # Log and health

    def logs(
        self,
        *,
        server: Optional[str] = None,
        tool: Optional[str] = None,
        status: Optional[str] = None,
        since: Since = None,
        limit: Optional[int] = None,
    ) -> List[Json]:
        """Returns the call log, newest last."""
        return list(self._http.json("GET", "/logs", log_query(server, tool, status, since, limit)))

    def follow_logs(
        self,
        *,
        server: Optional[str] = None,
        tool: Optional[str] = None,
        status: Optional[str] = None,
        since: Since = None,
        limit: Optional[int] = None,
    ) -> LogStream:
        """Follows the call log: an iterator of records as calls are made.

        ``since`` or ``limit`` bring past records first. The stream is
        connected when this returns; close it, or use it in a with statement.
        """
        return LogStream(self._http, log_query(server, tool, status, since, limit))

    def health(self) -> Json:
        """Says how the gateway and its servers are."""
        return dict(self._http.json("GET", "/health"))

    def ready(self) -> bool:
        """Says whether the gateway takes requests."""
        try:
            return bool(self._http.json("GET", "/health/ready")["ok"])
        except GatewayError:
            return False


def _segment(provider: str) -> str:
    if not provider or not all(c.isalnum() or c in "-_" for c in provider):
        raise ValueError(f"{provider!r} is not the name of a provider")
    return provider


def _form(answer: Any) -> str:
    """Whose form an answer has, where the provider was recognised."""
    for key, provider in (("functionResponse", "gemini"), ("toolResult", "bedrock"), ("tool_use_id", "anthropic"), ("tool_name", "ollama"), ("call_id", "openai-responses")):
        if get(answer, key) is not None:
            return provider
    return "openai"
