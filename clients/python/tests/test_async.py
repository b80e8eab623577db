"""The client for asyncio, against the real gateway and a server that hangs."""

from __future__ import annotations

import asyncio
import json
import time
import unittest

from junctor import AsyncGatewayClient, GatewayClient, NotFoundError, RunLimitError

import programs
from test_http import Stub


class Async(unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.url = programs.start_gateway()

    def setUp(self) -> None:
        self.gateway = AsyncGatewayClient(self.url)

    async def test_same_operations_as_the_synchronous_client(self) -> None:
        gateway = self.gateway
        self.assertEqual(self.url, gateway.url)
        for name in (n for n in vars(GatewayClient) if not n.startswith("_")):
            self.assertTrue(hasattr(gateway, name), name)
        tools = await gateway.get_tools("openai", query="arithmetic", limit=1)
        self.assertEqual(["junctor__calculate"], [t["function"]["name"] for t in tools])
        self.assertEqual("calculate", (await gateway.search("evaluate an expression"))[0]["name"])
        self.assertEqual(4, len(await gateway.list_tools("junctor")))
        self.assertIn("junctor__calculate", await gateway.context("gemini"))
        self.assertTrue((await gateway.health())["ok"])
        self.assertTrue(await gateway.ready())
        result = await gateway.call_tool("junctor", "calculate", {"expression": "6*7"})
        self.assertEqual("42", result["content"][0]["text"])
        self.assertEqual("calculate", (await gateway.logs(limit=1))[0]["tool"])
        with self.assertRaises(NotFoundError):
            await gateway.execute("gemini", {"name": "nothing", "args": {}})

    async def test_calls_run_concurrently(self) -> None:
        call = {"type": "tool_use", "id": "1", "name": "junctor__calculate", "input": {"expression": "1+1"}}
        results = await asyncio.gather(*(self.gateway.execute("anthropic", call) for _ in range(40)))
        self.assertEqual({"2"}, {r["content"][0]["text"] for r in results})

    async def test_run(self) -> None:
        answers = [
            {"choices": [{"message": {"role": "assistant", "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "junctor__calculate", "arguments": json.dumps({"expression": "19+23"})}}]}}]},
            {"choices": [{"message": {"role": "assistant", "content": "done"}}]},
        ]

        async def ask(messages, tools):
            await asyncio.sleep(0)
            self.assertTrue(tools)
            return answers[len(messages) // 2]

        done = await self.gateway.run("openai", ask, [{"role": "user", "content": "add"}])
        self.assertEqual(["user", "assistant", "tool", "assistant"], [m["role"] for m in done.messages])
        self.assertEqual("42", done.messages[2]["content"])
        self.assertEqual(1, done.steps)
        with self.assertRaises(RunLimitError):
            await self.gateway.run("openai", ask, [{"role": "user", "content": "add"}], max_steps=0)
        with self.assertRaises(ValueError):
            await self.gateway.run("acme", ask, [], tools=[])

    async def test_logs_can_be_followed(self) -> None:
        async def first() -> dict:
            async for record in self.gateway.follow_logs(tool="text", limit=1):
                return record
            raise AssertionError("the stream ended")

        await self.gateway.call_tool("junctor", "text", {"operation": "upper", "text": "a"})
        self.assertEqual("upper", (await asyncio.wait_for(first(), 60))["input"]["operation"])

    async def test_cancelling_ends_the_wait(self) -> None:
        with Stub(("hang", {}, b"")) as stub:
            started = time.monotonic()
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(AsyncGatewayClient(stub.url, retries=0).health(), 0.2)
            self.assertLess(time.monotonic() - started, 25)

    async def test_following_can_be_cancelled(self) -> None:
        async def follow() -> None:
            async for _ in self.gateway.follow_logs(tool="none"):
                pass

        task = asyncio.create_task(follow())
        while not task.done() and not await self.gateway.ready():
            await asyncio.sleep(0)
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task


if __name__ == "__main__":
    unittest.main()
