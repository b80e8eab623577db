"""The client against the real gateway."""

from __future__ import annotations

import datetime
import threading
import types
import unittest

from junctor import GatewayClient, InvalidRequestError, NotFoundError, Result

import programs


class Gateway(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.gateway = GatewayClient(programs.start_gateway())

    def test_tools_are_accepted_by_each_provider(self) -> None:
        for provider in ("openai", "xai", "ollama"):
            tools = self.gateway.get_tools(provider)
            self.assertIsInstance(tools, list)
            self.assertIn("junctor__calculate", [t["function"]["name"] for t in tools])
        self.assertIn("junctor__time", [t["name"] for t in self.gateway.get_tools("anthropic", "junctor")])
        self.assertEqual([False] * 4, [t["strict"] for t in self.gateway.get_tools("openai-responses")])
        gemini = self.gateway.get_tools("gemini", server="junctor")
        self.assertEqual(["function_declarations"], list(gemini))
        self.assertIn("parametersJsonSchema", gemini["function_declarations"][0])
        older = self.gateway.get_tools("gemini", schema="openapi")
        self.assertEqual("OBJECT", older["function_declarations"][0]["parameters"]["type"])
        self.assertEqual("lowered", older.warnings[0]["code"])
        self.assertIn("toolSpec", self.gateway.get_tools("bedrock")["tools"][0])

    def test_filters(self) -> None:
        tools = self.gateway.get_tools("openai", query="arithmetic", limit=1, detail="concise")
        self.assertEqual(["junctor__calculate"], [t["function"]["name"] for t in tools])
        strict = self.gateway.get_tools("openai", strict=True, limit=1)
        self.assertTrue(strict[0]["function"]["strict"])
        self.assertEqual("limit", strict.warnings[-1]["code"])
        self.assertEqual([], self.gateway.get_tools("openai", tags=["none", "such"]))
        self.assertEqual("calculate", self.gateway.search("evaluate an expression")[0]["name"])
        self.assertEqual({"junctor"}, {t["server"] for t in self.gateway.list_tools()})
        self.assertIn("junctor__calculate(expression*)", self.gateway.context("gemini"))
        self.assertGreater(len(self.gateway.context("gemini", detail="full")), len(self.gateway.context("gemini")))

    def test_execute_first_example(self) -> None:
        # An object with a name and args, as in google.generativeai.
        fc = types.SimpleNamespace(name="calculate", args={"expression": "6*7"})
        result = self.gateway.execute("gemini", fc, server="junctor")
        self.assertEqual({"result": "42", "exact": True}, result["output"])
        part = {"function_response": {"name": fc.name, "response": result}}
        self.assertEqual("42", part["function_response"]["response"]["output"]["result"])
        self.assertEqual("calculate", result.message["functionResponse"]["name"])
        self.assertFalse(result.is_error)

    def test_execute_in_every_provider_format(self) -> None:
        args = '{"expression": "1+1"}'
        for provider, call, want in (
            ("openai", {"id": "c", "type": "function", "function": {"name": "junctor__calculate", "arguments": args}}, {"role": "tool", "tool_call_id": "c", "content": "2"}),
            (None, {"type": "function_call", "call_id": "c", "name": "junctor__calculate", "arguments": args}, {"type": "function_call_output", "call_id": "c", "output": "2"}),
            (None, {"type": "tool_use", "id": "c", "name": "junctor__calculate", "input": {"expression": "1+1"}}, {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "2"}]}),
            (None, {"function": {"name": "junctor__calculate", "arguments": {"expression": "1+1"}}}, {"role": "tool", "tool_name": "junctor__calculate", "content": "2"}),
        ):
            result = self.gateway.execute(provider, call)
            self.assertEqual(want, dict(result))
            self.assertEqual(want, result.message)
            self.assertFalse(result.is_error)
        bedrock = self.gateway.execute("bedrock", {"toolUseId": "c", "name": "junctor__calculate", "input": {"expression": "1+1"}})
        self.assertEqual("success", bedrock["toolResult"]["status"])

    def test_parallel_calls_have_their_own_results(self) -> None:
        results = self.gateway.execute("anthropic", [
            {"type": "tool_use", "id": "1", "name": "junctor__calculate", "input": {"expression": "2^10"}},
            {"type": "tool_use", "id": "2", "name": "junctor__nothing", "input": {}},
        ])
        self.assertEqual("1024", results[0]["content"][0]["text"])
        self.assertEqual([False, True], [r.is_error for r in results])
        self.assertIsInstance(results[1], Result)

    def test_failures_are_reported(self) -> None:
        with self.assertRaises(NotFoundError) as caught:
            self.gateway.execute("gemini", {"name": "junctor__calculatr", "args": {}})
        self.assertEqual("TOOL_NOT_FOUND", caught.exception.code)
        self.assertIn("junctor:calculate", caught.exception.details["nearest"])
        self.assertTrue(caught.exception.request_id)
        with self.assertRaises(InvalidRequestError) as wrong:
            self.gateway.call_tool("junctor", "calculate", {"expression": 7})
        self.assertEqual("INVALID_ARGUMENTS", wrong.exception.code)
        with self.assertRaises(NotFoundError):
            self.gateway.get_tools("acme")
        with self.assertRaises(ValueError):
            self.gateway.get_tools("../secrets")

    def test_call_tool(self) -> None:
        result = self.gateway.call_tool("junctor", "text", {"operation": "upper", "text": "é"})
        self.assertEqual("É", result["content"][0]["text"])
        failed = self.gateway.call_tool(None, "calculate", {"expression": "1/"})
        self.assertTrue(failed["isError"])

    def test_logs(self) -> None:
        before = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=5)
        self.gateway.call_tool("junctor", "calculate", {"expression": "40+2"})
        entry = self.gateway.logs(server="junctor", tool="calculate", since=before, limit=1)[-1]
        self.assertEqual({"expression": "40+2"}, entry["input"])
        self.assertEqual("ok", entry["status"])
        self.assertEqual([], self.gateway.logs(status="failed", since="2999-01-01"))
        with self.assertRaises(InvalidRequestError):
            self.gateway.logs(status="odd")

    def test_logs_can_be_followed(self) -> None:
        with self.gateway.follow_logs(tool="text") as stream:
            caller = threading.Thread(target=self.gateway.call_tool, args=("junctor", "text", {"operation": "reverse", "text": "abc"}))
            caller.start()
            entry = next(stream)
            caller.join()
        self.assertEqual("reverse", entry["input"]["operation"])
        with self.gateway.follow_logs(limit=1) as stream:
            self.assertIn("seq", next(stream))

    def test_followed_log_can_be_closed_from_another_thread(self) -> None:
        stream = self.gateway.follow_logs(tool="none")
        reader = threading.Thread(target=list, args=(stream,), daemon=True)
        reader.start()
        stream.close()
        reader.join(50)  # less than the read timeout
        self.assertFalse(reader.is_alive())

    def test_health(self) -> None:
        health = self.gateway.health()
        self.assertTrue(health["ok"])
        self.assertEqual([("junctor", "connected")], [(s["name"], s["status"]) for s in health["servers"]])
        self.assertTrue(self.gateway.ready())


if __name__ == "__main__":
    unittest.main()
