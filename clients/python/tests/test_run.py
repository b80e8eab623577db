"""The tool loop, against the real gateway and a scripted model that checks a
conversation as strictly as the provider does."""

from __future__ import annotations

import unittest

from junctor import GatewayClient, RunLimitError

import programs

SCRIPT = {
    "rules": [
        {"when": {"user": "add", "results": 0}, "reply": {"text": "Let me see.", "calls": [
            {"tool": "junctor:calculate", "args": {"expression": "19+23"}},
            {"tool": "junctor:text", "args": {"operation": "upper", "text": "sum"}}]}},
        {"when": {"user": "add", "results": 2}, "reply": {"text": "It is {{results}}."}},
        {"when": {"user": "loop"}, "reply": {"calls": [{"tool": "junctor:time"}]}},
        {"when": {"user": "wrong", "results": 0}, "reply": {"calls": [{"tool": "junctor:calculate", "args": {"expr": "1"}}]}},
        {"when": {"user": "wrong", "results": 1}, "reply": {"text": "I see: {{result}}"}},
    ]
}


class Loop(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.gateway = GatewayClient(programs.start_gateway())
        cls.model = programs.start_model(SCRIPT)

    def chat(self, messages, tools):
        return programs.post(self.model + "/v1/chat/completions", {"model": "m", "messages": messages, "tools": tools}, Authorization="Bearer k")

    def responses(self, messages, tools):
        return programs.post(self.model + "/v1/responses", {"model": "m", "input": messages, "tools": tools}, Authorization="Bearer k")

    def anthropic(self, messages, tools):
        return programs.post(
            self.model + "/v1/messages", {"model": "m", "max_tokens": 99, "messages": messages, "tools": tools},
            x_api_key="k", anthropic_version="2023-06-01",
        )

    def gemini(self, contents, tools):
        return programs.post(
            self.model + "/v1beta/models/gemini-3:generateContent", {"contents": contents, "tools": [tools]}, x_goog_api_key="k"
        )

    def test_openai(self) -> None:
        for provider in ("openai", "xai"):
            done = self.gateway.run(provider, self.chat, [{"role": "user", "content": "add please"}])
            text = done.response["choices"][0]["message"]["content"]
            self.assertIn("42", text)
            self.assertIn("SUM", text)
            self.assertEqual(["user", "assistant", "tool", "tool", "assistant"], [m["role"] for m in done.messages])
            self.assertEqual(1, done.steps)

    def test_openai_responses(self) -> None:
        done = self.gateway.run("openai-responses", self.responses, [{"role": "user", "content": "add please"}])
        self.assertIn("42", str(done.response["output"]))

    def test_anthropic(self) -> None:
        done = self.gateway.run("anthropic", self.anthropic, [{"role": "user", "content": "add please"}])
        self.assertIn("42", done.response["content"][0]["text"])
        self.assertEqual(4, len(done.messages))

    def test_gemini(self) -> None:
        for schema in ("json", "openapi"):
            tools = self.gateway.get_tools("gemini", schema=schema)
            done = self.gateway.run("gemini", self.gemini, [{"role": "user", "parts": [{"text": "add please"}]}], tools=tools)
            self.assertIn("42", str(done.response["candidates"][0]["content"]))

    def test_failed_call_is_returned_to_the_model(self) -> None:
        done = self.gateway.run("anthropic", self.anthropic, [{"role": "user", "content": "wrong"}])
        self.assertIn("INVALID_ARGUMENTS", str(done.response["content"]))

    def test_endless_loops_are_stopped(self) -> None:
        with self.assertRaises(RunLimitError) as caught:
            self.gateway.run("openai", self.chat, [{"role": "user", "content": "loop"}], max_steps=2)
        self.assertEqual(6, len(caught.exception.messages))

    def test_ollama(self) -> None:
        def ask(messages, tools):
            if messages[-1]["role"] == "tool":
                return {"message": {"role": "assistant", "content": "It is " + messages[-1]["content"]}}
            return {"message": {"role": "assistant", "content": "", "tool_calls": [
                {"function": {"name": "junctor__calculate", "arguments": {"expression": "19+23"}}}]}}

        done = self.gateway.run("ollama", ask, [{"role": "user", "content": "add"}])
        self.assertEqual("It is 42", done.response["message"]["content"])

    def test_bedrock(self) -> None:
        def ask(messages, tools):
            last = messages[-1]["content"][0]
            if "toolResult" in last:
                return {"output": {"message": {"role": "assistant", "content": [{"text": str(last["toolResult"]["content"])}]}}}
            return {"output": {"message": {"role": "assistant", "content": [
                {"toolUse": {"toolUseId": "t", "name": tools["tools"][1]["toolSpec"]["name"], "input": {"expression": "19+23"}}}]}}}

        done = self.gateway.run("bedrock", ask, [{"role": "user", "content": [{"text": "add"}]}])
        self.assertIn("42", done.response["output"]["message"]["content"][0]["text"])

    def test_unknown_provider(self) -> None:
        with self.assertRaises(ValueError):
            self.gateway.run("acme", self.chat, [], tools=[])


if __name__ == "__main__":
    unittest.main()
