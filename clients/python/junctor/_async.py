"""The client for programs on asyncio."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, AsyncIterator, Awaitable, Callable, List, Mapping, Optional, Sequence, TypeVar, overload

from ._client import GatewayClient, Json, Words
from ._logs import LogStream, Since
from ._results import Result
from ._run import Conversation, RunResult

T = TypeVar("T")

#: Asks the model, as in :meth:`GatewayClient.run`, but awaited.
AsyncAsk = Callable[[List[Any], Any], Awaitable[Any]]


class AsyncGatewayClient:
    """Talks to a Junctor gateway from asyncio.

    Its methods are those of :class:`GatewayClient`. The standard library has
    no HTTP client for asyncio, so every request has a thread of its own.
    Cancelling a task ends its waiting at once; a tool that was called may
    still run to its end.
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
        self._client = GatewayClient(url, api_key=api_key, timeout=timeout, retries=retries, headers=headers)

    @property
    def url(self) -> str:
        return self._client.url

    async def get_tools(
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
        """Returns the tools as the provider's library takes them."""
        return await _in_thread(
            lambda: self._client.get_tools(
                provider, server, tags=tags, query=query, limit=limit, detail=detail, schema=schema, strict=strict
            )
        )

    async def list_tools(self, server: Words = None, *, tags: Words = None, query: Optional[str] = None, limit: Optional[int] = None) -> List[Json]:
        """Returns the MCP definitions of tools, each with its ``server``."""
        return await _in_thread(lambda: self._client.list_tools(server, tags=tags, query=query, limit=limit))

    async def search(self, query: str, *, limit: int = 10, server: Words = None, tags: Words = None) -> List[Json]:
        """Finds tools by what they do, the best match first."""
        return await _in_thread(lambda: self._client.search(query, limit=limit, server=server, tags=tags))

    async def context(
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
        return await _in_thread(lambda: self._client.context(provider, server, tags=tags, query=query, limit=limit, detail=detail))

    @overload
    async def execute(  # type: ignore[overload-overlap] # pyright: ignore[reportOverlappingOverload]
        self, provider: Optional[str], call: List[Any], server: Optional[str] = None
    ) -> List[Result]: ...

    @overload
    async def execute(self, provider: Optional[str], call: Any, server: Optional[str] = None) -> Result: ...

    async def execute(self, provider: Optional[str], call: Any, server: Optional[str] = None) -> Any:
        """Runs what the model called and returns what goes back to it."""
        return await _in_thread(lambda: self._client.execute(provider, call, server))

    async def call_tool(self, server: Optional[str], tool: str, arguments: Optional[Mapping[str, Any]] = None) -> Json:
        """Runs a tool by its own name and returns its MCP result."""
        return await _in_thread(lambda: self._client.call_tool(server, tool, arguments))

    async def run(
        self,
        provider: str,
        ask: AsyncAsk,
        messages: Sequence[Any],
        *,
        tools: Any = None,
        server: Optional[str] = None,
        max_steps: int = 25,
    ) -> RunResult:
        """Drives a whole tool loop around your own client of a provider."""
        if tools is None:
            tools = await self.get_tools(provider, server)
        conversation = Conversation(provider, messages, max_steps)
        while True:
            calls = conversation.take(await ask(conversation.messages, tools))
            if not calls:
                return conversation.result()
            conversation.answer(await self.execute(provider, calls, server))

    async def logs(
        self,
        *,
        server: Optional[str] = None,
        tool: Optional[str] = None,
        status: Optional[str] = None,
        since: Since = None,
        limit: Optional[int] = None,
    ) -> List[Json]:
        """Returns the call log, newest last."""
        return await _in_thread(lambda: self._client.logs(server=server, tool=tool, status=status, since=since, limit=limit))

    async def follow_logs(
        self,
        *,
        server: Optional[str] = None,
        tool: Optional[str] = None,
        status: Optional[str] = None,
        since: Since = None,
        limit: Optional[int] = None,
    ) -> AsyncIterator[Json]:
        """Follows the call log: ``async for record in client.follow_logs()``."""
        stream: LogStream = await _in_thread(
            lambda: self._client.follow_logs(server=server, tool=tool, status=status, since=since, limit=limit)
        )
        try:
            while True:
                record = await _in_thread(lambda: next(stream, None))
                if record is None:
                    return
                yield record
        finally:
            stream.close()

    async def health(self) -> Json:
        """Says how the gateway and its servers are."""
        return await _in_thread(self._client.health)

    async def ready(self) -> bool:
        """Says whether the gateway takes requests."""
        return await _in_thread(self._client.ready)


async def _in_thread(work: Callable[[], T]) -> T:
    """Runs work on a thread of its own. The threads that asyncio keeps are few,
    and a slow tool would hold one of them from everybody else."""
    loop = asyncio.get_running_loop()
    done: "asyncio.Future[T]" = loop.create_future()

    def settle(result: Optional[T], failure: Optional[BaseException]) -> None:
        if done.done():  # the awaiting task was cancelled
            return
        if failure is None:
            done.set_result(result)  # type: ignore[arg-type]
        else:
            done.set_exception(failure)

    def body() -> None:
        result: Optional[T] = None
        failure: Optional[BaseException] = None
        try:
            result = work()
        except BaseException as e:
            failure = e
        try:
            loop.call_soon_threadsafe(settle, result, failure)
        except RuntimeError:
            pass  # the loop is closed

    threading.Thread(target=body, name="junctor-request", daemon=True).start()
    return await done
