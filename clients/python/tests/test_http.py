"""Timeouts, retries and errors, against a server that misbehaves; and the
objects of the providers' libraries."""

from __future__ import annotations

import dataclasses
import http.server
import json
import threading
import types
import unittest
from unittest import mock

from junctor import (
    AuthenticationError, GatewayClient, GatewayConnectionError, GatewayError, GatewayTimeout, PermissionDeniedError,
    RateLimitError, Result, UpstreamError,
)
from junctor._plain import get, plain


class Stub:
    """A server that answers with what it was given, in turn."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests = []
        stub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self):
                length = int(self.headers.get("Content-Length") or 0)
                stub.requests.append((self.command, self.path, dict(self.headers), self.rfile.read(length)))
                status, headers, body = stub.answers.pop(0) if len(stub.answers) > 1 else stub.answers[0]
                if status == "hang":
                    stub.held.wait(30)
                    return
                if status == "drop":
                    self.connection.close()
                    return
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                missing = 1 if status == "cut" else 0  # of the body, when the connection is closed
                self.send_response(200 if missing else status)
                for k, v in headers.items():
                    self.send_header(k, v)
                self.send_header("Content-Length", str(len(data) + missing))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = answer

            def log_message(self, *_):
                pass

        self.held = threading.Event()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.held.set()
        self.server.shutdown()
        self.server.server_close()


def error(status, code, headers=None):
    return status, headers or {}, {"error": "E", "message": "what to do", "code": code, "requestId": "r1", "details": {"a": 1}}


OK = (200, {}, {"ok": True, "servers": []})


class Http(unittest.TestCase):
    def setUp(self) -> None:
        sleep = mock.patch("junctor._http.time.sleep")
        self.sleep = sleep.start()
        self.addCleanup(sleep.stop)

    def test_errors_have_their_own_exceptions(self) -> None:
        for status, code, kind in (
            (401, "UNAUTHENTICATED", AuthenticationError), (403, "TOOL_DISABLED", PermissionDeniedError),
            (429, "RATE_LIMITED", RateLimitError), (502, "UPSTREAM_ERROR", UpstreamError), (500, "INTERNAL", GatewayError),
        ):
            with Stub(error(status, code, {"Retry-After": "7"})) as stub, self.assertRaises(kind) as caught:
                GatewayClient(stub.url, retries=0).health()
            e = caught.exception
            self.assertEqual((status, code, "what to do", "r1", {"a": 1}, 7.0), (e.status, e.code, e.message, e.request_id, e.details, e.retry_after))
            self.assertEqual(f"{code}: what to do", str(e))

    def test_errors_that_are_not_json(self) -> None:
        with Stub((500, {"Retry-After": "soon"}, b"<html>")) as stub, self.assertRaises(GatewayError) as caught:
            GatewayClient(stub.url, retries=0).health()
        self.assertEqual("the gateway answered with status 500", str(caught.exception))
        with Stub((200, {}, b"<html>")) as stub, self.assertRaisesRegex(GatewayError, "is it a Junctor gateway"):
            GatewayClient(stub.url).health()

    def test_reads_are_retried(self) -> None:
        with Stub(error(503, "UNAVAILABLE"), ("drop", {}, None), OK) as stub:
            self.assertTrue(GatewayClient(stub.url, retries=2).health()["ok"])
            self.assertEqual(3, len(stub.requests))
        with Stub(error(504, "TIMEOUT")) as stub, self.assertRaises(UpstreamError):
            GatewayClient(stub.url, retries=2).health()
        self.assertEqual(3, len(stub.requests))
        cut = ("cut", {}, b'{"ok":')
        with Stub(cut, OK) as stub:
            self.assertTrue(GatewayClient(stub.url, retries=1).health()["ok"])
            self.assertEqual(2, len(stub.requests))
        with Stub(cut) as stub, self.assertRaisesRegex(GatewayConnectionError, "cannot reach the gateway"):
            GatewayClient(stub.url, retries=1).health()
        self.assertEqual(2, len(stub.requests))

    def test_calls_are_retried_only_if_they_have_not_run(self) -> None:
        done = (200, {}, {"result": {"content": []}})
        for answer, tries in ((error(429, "RATE_LIMITED", {"Retry-After": "3"}), 2), (error(503, "CIRCUIT_OPEN", {"Retry-After": "2"}), 2)):
            with Stub(answer, done) as stub:
                GatewayClient(stub.url).call_tool("s", "t")
                self.assertEqual(tries, len(stub.requests))
        self.assertEqual([mock.call(3.0), mock.call(2.0)], self.sleep.call_args_list)
        for answer in (error(502, "UPSTREAM_ERROR"), error(504, "TIMEOUT"), ("drop", {}, None), ("cut", {}, b'{"res'), error(429, "RATE_LIMITED", {"Retry-After": "999"})):
            with Stub(answer, done) as stub, self.assertRaises(GatewayError):
                GatewayClient(stub.url).call_tool("s", "t")
            self.assertEqual(1, len(stub.requests))

    def test_timeouts(self) -> None:
        with Stub(("hang", {}, None)) as stub, self.assertRaises(GatewayTimeout):
            GatewayClient(stub.url, timeout=0.2, retries=0).call_tool("s", "t")

    def test_unreachable_gateway(self) -> None:
        with Stub(OK) as stub:
            url = stub.url
        with self.assertRaisesRegex(GatewayConnectionError, "is junctor serve running"):
            GatewayClient(url, retries=1).health()
        self.assertFalse(GatewayClient(url, retries=0).ready())
        with self.assertRaises(ValueError):
            GatewayClient("127.0.0.1:8787")

    def test_headers_and_queries_are_sent(self) -> None:
        with Stub((200, {}, {"tools": []})) as stub:
            client = GatewayClient(stub.url + "/", api_key="secret", headers={"X-Request-Id": "mine"})
            client.get_tools("openai", ["a", "b"], tags="t", strict=True, limit=3)
            method, path, headers, _ = stub.requests[0]
        self.assertEqual(("GET", "/tools/openai?server=a%2Cb&tags=t&limit=3&strict=true"), (method, path))
        self.assertEqual(("Bearer secret", "mine"), (headers["Authorization"], headers["X-Request-Id"]))

    def test_followed_log_reconnects(self) -> None:
        def stream(*events):
            return 200, {"Content-Type": "text/event-stream"}, "".join(f"event: {n}\ndata: {json.dumps(d)}\n\n" for n, d in events).encode()

        with Stub(
            stream(("open", {"after": 4}), ("call", {"seq": 5})),
            stream(("open", {"after": 5}), ("call", {"seq": 6})),
            stream(("open", {"after": 6}), ("error", {"message": "gone", "code": "INTERNAL"})),
        ) as stub:
            with GatewayClient(stub.url).follow_logs() as log:
                self.assertEqual([5, 6], [next(log)["seq"], next(log)["seq"]])
                with self.assertRaises(GatewayError):
                    next(log)
            self.assertEqual([], list(log))
            self.assertEqual(["/logs", "/logs?after=5", "/logs?after=6"], [r[1] for r in stub.requests])

    def test_followed_log_continues_after_outage(self) -> None:
        def stream(*events):
            return 200, {"Content-Type": "text/event-stream"}, "".join(f"event: {n}\ndata: {json.dumps(d)}\n\n" for n, d in events).encode()

        with Stub(
            stream(("open", {"after": 4})),
            (503, {}, {"message": "not yet"}),
            ("drop", {}, b""),
            stream(("open", {"after": 4}), ("call", {"seq": 5})),
            (401, {}, {"message": "the key was revoked"}),
        ) as stub, mock.patch("junctor._logs.MAX_PAUSE", 0.01):
            with GatewayClient(stub.url, retries=0).follow_logs() as log:
                self.assertEqual(5, next(log)["seq"])
                with self.assertRaises(AuthenticationError):
                    next(log)
            self.assertEqual(["/logs"] + 3 * ["/logs?after=4"] + ["/logs?after=5"], [r[1] for r in stub.requests])


class Objects(unittest.TestCase):
    def test_plain(self) -> None:
        @dataclasses.dataclass
        class Data:
            x: int

        class Model:
            def model_dump(self, mode):
                assert mode == "json"
                return {"name": "n", "arguments": "{}", "status": None}

        class Dict:
            def to_dict(self):
                return {"z": 1}

        class Bag:
            def __init__(self):
                self.shown, self._hidden = 1, 2

        self.assertEqual({"name": "n", "arguments": "{}"}, plain(Model()))
        self.assertEqual([{"x": 1}, {"z": 1}, {"shown": 1}], plain((Data(1), Dict(), Bag())))
        self.assertEqual({"name": "n", "args": {"a": [1, 2]}, "id": "i"}, plain(types.SimpleNamespace(name="n", args={"a": (1, 2)}, id="i")))
        self.assertEqual({"b": "AAE="}, plain({"b": b"\x00\x01", "none": None}))
        self.assertEqual([0, 1], plain(iter([0, 1])))
        with self.assertRaises(TypeError):
            plain(object())
        deep: list = []
        for _ in range(100):
            deep = [deep]
        with self.assertRaises(ValueError):
            plain(deep)

    def test_arguments_keep_null(self) -> None:
        given = {"assignee": None, "labels": [{"color": None}]}
        for call in (
            {"type": "tool_use", "id": "1", "name": "n", "input": given},
            {"functionCall": {"name": "n", "args": given}},
            {"toolUse": {"toolUseId": "1", "name": "n", "input": given}},
            {"function": {"name": "n", "arguments": given}},
        ):
            self.assertEqual(call, plain({**call, "unset": None}))
        self.assertEqual({"name": "n", "args": given}, plain(types.SimpleNamespace(name="n", args=given)))

    def test_get(self) -> None:
        self.assertEqual(1, get({"b": 1}, "a", "b"))
        self.assertEqual(2, get(types.SimpleNamespace(a=2), "a"))
        self.assertIsNone(get(None, "a"))

    def test_results(self) -> None:
        bedrock = Result("bedrock", {"toolResult": {"toolUseId": "t", "status": "error", "content": [{"image": {"source": {"bytes": "AAE="}}}]}})
        self.assertEqual(b"\x00\x01", bedrock["toolResult"]["content"][0]["image"]["source"]["bytes"])
        self.assertTrue(bedrock.is_error)
        own = {"bytes": "100", "image": {"source": {"bytes": "1024"}}}
        blocks = Result("bedrock", {"toolResult": {"content": [{"json": own}, {"text": "bytes"}, {"document": {"source": {"bytes": "AAE="}}}]}})["toolResult"]["content"]
        self.assertEqual({"bytes": "100", "image": {"source": {"bytes": "1024"}}}, blocks[0]["json"])
        self.assertEqual(b"\x00\x01", blocks[2]["document"]["source"]["bytes"])
        self.assertTrue(Result("gemini", {"functionResponse": {"response": {"error": "no"}}}).is_error)
        self.assertTrue(Result("openai", {"content": "Error: no"}).is_error)
        self.assertFalse(Result("openai", {"content": "Error rate: 0 %"}).is_error)
        self.assertFalse(Result("openai-responses", {"output": [{"type": "input_image"}]}).is_error)
        failed = [{"type": "input_text", "text": "Error:"}, {"type": "input_image"}]
        self.assertTrue(Result("openai-responses", {"output": failed}).is_error)
        self.assertFalse(Result("openai-responses", {"output": [{"type": "input_text", "text": "a plan"}, *failed]}).is_error)


if __name__ == "__main__":
    unittest.main()
