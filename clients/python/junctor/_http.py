"""Requests with timeouts and retries, on the standard library alone."""

from __future__ import annotations

import http.client
import json
import random
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Callable, Iterator, Mapping, Optional, Tuple

from ._errors import GatewayConnectionError, GatewayError, GatewayTimeout, error_for

#: The longest Retry-After that is honoured, in seconds.
MAX_WAIT = 30.0


class Transport:
    def __init__(self, url: str, headers: Mapping[str, str], timeout: float, retries: int) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ValueError(f"{url!r} is not the URL of a gateway, such as http://127.0.0.1:8787")
        self.url = url.rstrip("/")
        self.headers = dict(headers)
        self.timeout = timeout
        self.retries = retries
        proxies = {} if parts.hostname in ("localhost", "127.0.0.1", "::1") else None
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler(proxies))

    def json(self, method: str, path: str, query: Optional[Mapping[str, Any]] = None, body: Any = None) -> Any:
        def attempt() -> bytes:
            with self._once(method, path, query, body, "application/json", None) as response:
                try:
                    return bytes(response.read())
                except (OSError, http.client.HTTPException) as e:
                    raise _unreachable(self.url, e) from e

        data = self._retried(method, attempt)
        try:
            return json.loads(data)
        except ValueError as e:
            raise GatewayError(f"the answer of {self.url} is not JSON; is it a Junctor gateway?") from e

    def open(
        self,
        method: str,
        path: str,
        query: Optional[Mapping[str, Any]],
        body: Any,
        accept: str,
        timeout: Optional[float] = None,
    ) -> Any:
        """Returns the open response of a request that succeeded."""
        return self._retried(method, lambda: self._once(method, path, query, body, accept, timeout))

    def _retried(self, method: str, attempt: Callable[[], Any]) -> Any:
        """What only reads is tried again after any transient failure. What
        runs a tool is tried again only when the tool has certainly not run."""
        tries = 0
        while True:
            try:
                return attempt()
            except GatewayError as e:
                tries += 1
                if tries > self.retries or not _passes(e, safe=method == "GET"):
                    raise
                time.sleep(_wait(e, tries))

    def _once(
        self,
        method: str,
        path: str,
        query: Optional[Mapping[str, Any]],
        body: Any,
        accept: str,
        timeout: Optional[float],
    ) -> Any:
        url = self.url + path + _query(query)
        headers = {**self.headers, "Accept": accept}
        data = None
        if body is not None:
            data = json.dumps(body, ensure_ascii=False).encode()
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(url, data=data, headers=headers, method=method)
        try:
            return self._opener.open(request, timeout=self.timeout if timeout is None else timeout)
        except urllib.error.HTTPError as e:
            with e:
                raise error_for(e.code, _error_body(e), _retry_after(e.headers.get("Retry-After"))) from None
        except (OSError, http.client.HTTPException) as e:
            raise _unreachable(self.url, e) from e


def _query(query: Optional[Mapping[str, Any]]) -> str:
    pairs = []
    for key, value in (query or {}).items():
        if value is None:
            continue
        if isinstance(value, bool):
            value = "true" if value else "false"
        elif isinstance(value, (list, tuple, set, frozenset)):
            value = ",".join(str(v) for v in value)
        pairs.append((key, str(value)))
    return "?" + urllib.parse.urlencode(pairs) if pairs else ""


def _error_body(e: urllib.error.HTTPError) -> Any:
    try:
        return json.loads(e.read(1 << 20))
    except (ValueError, OSError, http.client.HTTPException):
        return None


def _retry_after(header: Optional[str]) -> Optional[float]:
    try:
        return max(0.0, float(header)) if header else None
    except ValueError:
        return None


def _unreachable(url: str, e: Exception) -> GatewayConnectionError:
    cause = e.reason if isinstance(e, urllib.error.URLError) else e
    if isinstance(cause, (socket.timeout, TimeoutError)):
        return GatewayTimeout(f"{url} did not answer in time; raise timeout= for slow tools")
    refused = GatewayConnectionError(f"cannot reach the gateway at {url}: {cause}; is junctor serve running there?")
    refused.code = "REFUSED" if isinstance(cause, (ConnectionRefusedError, socket.gaierror)) else None
    return refused


def _passes(e: GatewayError, safe: bool) -> bool:
    """Whether trying again makes sense and does no harm."""
    if isinstance(e, GatewayConnectionError):
        return safe or e.code == "REFUSED"
    if e.status == 429 or e.code == "CIRCUIT_OPEN":
        return (e.retry_after or 0) <= MAX_WAIT
    return safe and e.status in (502, 503, 504)


def _wait(e: GatewayError, attempt: int) -> float:
    if e.retry_after is not None:
        return min(e.retry_after, MAX_WAIT)
    return min(0.2 * 2 ** (attempt - 1), 5.0) * (0.5 + random.random())


def events(response: Any) -> Iterator[Tuple[str, Any]]:
    """Yields the name and the JSON of each server-sent event."""
    name = "message"
    data = []
    for raw in response:
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if not line:
            if data:
                yield name, json.loads("\n".join(data))
            name, data = "message", []
        elif line.startswith("event:"):
            name = line[6:].strip()
        elif line.startswith("data:"):
            data.append(line[5:].lstrip(" "))

