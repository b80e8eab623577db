"""What the gateway returns, in forms that go straight to the providers."""

from __future__ import annotations

import base64
from typing import Any, Dict, List

Json = Dict[str, Any]


class ToolList(List[Json]):
    """Declarations as a list, with the gateway's warnings beside it."""

    warnings: List[Json]

    def __init__(self, tools: List[Json], warnings: List[Json]) -> None:
        super().__init__(tools)
        self.warnings = warnings


class ToolConfig(Dict[str, Any]):
    """Declarations as the object that Gemini (a tool) and Bedrock (a tool
    configuration) want, with the gateway's warnings beside it."""

    warnings: List[Json]

    def __init__(self, tools: Json, warnings: List[Json]) -> None:
        super().__init__(tools)
        self.warnings = warnings


class Result(Dict[str, Any]):
    """A tool's result in a provider's form.

    As a dict it is what the provider's library takes at the place where the
    result goes: the whole message or block, and for Gemini the ``response``
    of a function response. ``message`` is always the whole, with images.
    """

    provider: str
    message: Json

    def __init__(self, provider: str, message: Json) -> None:
        if provider == "bedrock":
            _decode_media(message)
        inner: Any = message
        if provider == "gemini":
            inner = message.get("functionResponse", {}).get("response", {})
        super().__init__(inner if isinstance(inner, dict) else {"output": inner})
        self.provider = provider
        self.message = message

    @property
    def is_error(self) -> bool:
        """Whether the tool failed.

        The forms of OpenAI, xAI and Ollama have no mark for it: the text of a
        failed tool begins with ``Error:``, and a tool that succeeded with such
        a text cannot be told apart from it.
        """
        if self.provider == "gemini":
            return "error" in self
        if self.provider == "bedrock":
            return bool(self.get("toolResult", {}).get("status") == "error")
        if self.provider == "anthropic":
            return bool(self.get("is_error", False))
        text = self.get("content", self.get("output", ""))
        if isinstance(text, list):
            text = next((part.get("text", "") for part in text if part.get("type") == "input_text"), "")
        return isinstance(text, str) and text.startswith("Error:")


def _decode_media(message: Json) -> None:
    """Bedrock's library wants bytes where the API has base64: in media, not in
    the JSON that a tool returned."""
    for block in message.get("toolResult", {}).get("content", []):
        for kind in ("image", "document", "video"):
            source = block.get(kind, {}).get("source", {})
            if isinstance(source.get("bytes"), str):
                source["bytes"] = base64.b64decode(source["bytes"])


def declarations(provider: str, body: Json) -> Any:
    """Returns the part of a listing that goes to the provider."""
    warnings = body.get("warnings", [])
    if "toolConfig" in body:
        return ToolConfig(body["toolConfig"], warnings)
    if "function_declarations" in body:
        return ToolConfig({"function_declarations": body["function_declarations"]}, warnings)
    return ToolList(body.get("tools", []), warnings)
