"""The call log as it is written."""

from __future__ import annotations

import datetime
import http.client
import socket
import threading
from typing import Any, Dict, Iterator, Optional, Union

from ._errors import GatewayConnectionError, GatewayError, error_for
from ._http import Transport, events

Json = Dict[str, Any]
Since = Union[str, datetime.datetime, None]

#: The maximum pause, in seconds, before reconnecting after a lost connection.
MAX_PAUSE = 5.0


class LogStream:
    """Records of the call log as they are written. A connection that is lost
    is made again, for as long as it takes, and no record is left out. It may
    be closed from another thread."""

    def __init__(self, http_: Transport, query: Json) -> None:
        self._http = http_
        self._query = query
        self._closed = threading.Event()
        self._last: Optional[int] = None
        self._response: Any = None
        self._connect()

    def _connect(self) -> None:
        query = dict(self._query)
        if self._last is not None:
            query.pop("since", None)
            query.pop("limit", None)
            query["after"] = self._last
        self._response = self._http.open("GET", "/logs", query, None, "text/event-stream", timeout=60.0)
        self._events = events(self._response)
        name, data = next(self._events, ("end", {}))
        if name == "open" and self._last is None and not (query.get("since") or query.get("limit")):
            self._last = int(data["after"])

    def __iter__(self) -> Iterator[Json]:
        return self

    def __next__(self) -> Json:
        pause = 0.0  # the first attempt is immediate
        while not self._closed.is_set():
            try:
                for name, data in self._events:
                    if name == "call":
                        self._last = int(data["seq"])
                        return dict(data)
                    if name == "error":
                        raise error_for(500, data, None)
            except (OSError, http.client.HTTPException, ValueError):
                pass  # the connection is lost
            self._response.close()
            if self._closed.wait(pause):
                break
            pause = min(max(2 * pause, 0.25), MAX_PAUSE)
            try:
                self._connect()
            except (OSError, http.client.HTTPException, ValueError, GatewayConnectionError):
                continue
            except GatewayError as e:
                if e.status not in (502, 503, 504):
                    raise
        raise StopIteration

    def close(self) -> None:
        """Ends the stream."""
        self._closed.set()
        # A thread that waits for the next record holds the reader's lock until
        # the connection is shut down.
        raw = getattr(getattr(self._response, "fp", None), "raw", None)
        sock = getattr(raw, "_sock", None)
        if sock is not None:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # already shut down
        self._response.close()

    def __enter__(self) -> "LogStream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def log_query(server: Optional[str], tool: Optional[str], status: Optional[str], since: Since, limit: Optional[int]) -> Json:
    if isinstance(since, datetime.datetime):
        since = since.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {"server": server, "tool": tool, "status": status, "since": since, "limit": limit}
