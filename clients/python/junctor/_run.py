"""The tool loop, around the caller's own client of a provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Callable, List, NamedTuple, Optional, Sequence, Tuple

from ._plain import get, plain

if TYPE_CHECKING:
    from ._client import GatewayClient
    from ._results import Result

#: Asks the model: gets the conversation and the tools, returns the
#: provider's response as its library gave it.
Ask = Callable[[List[Any], Any], Any]


class RunLimitError(Exception):
    """The model went on calling tools beyond ``max_steps``."""

    def __init__(self, steps: int, messages: List[Any]) -> None:
        super().__init__(f"the model still calls tools after {steps} steps; raise max_steps= or narrow the task")
        self.messages = messages


class RunResult(NamedTuple):
    """How a run ended: the model's last response and the whole conversation."""

    response: Any
    messages: List[Any]
    steps: int


def run(
    gateway: "GatewayClient",
    provider: str,
    ask: Ask,
    messages: Sequence[Any],
    tools: Any,
    server: Optional[str],
    max_steps: int,
) -> RunResult:
    conversation = Conversation(provider, messages, max_steps)
    while True:
        calls = conversation.take(ask(conversation.messages, tools))
        if not calls:
            return conversation.result()
        conversation.answer(gateway.execute(provider, calls, server=server))


class Conversation:
    """What is said in a run. It knows the provider's forms, and asks nobody."""

    def __init__(self, provider: str, messages: Sequence[Any], max_steps: int) -> None:
        turns = {
            "openai": _chat, "xai": _chat, "ollama": _chat,
            "openai-responses": _responses, "anthropic": _anthropic, "gemini": _gemini, "bedrock": _bedrock,
        }
        if provider not in turns:
            raise ValueError(f"unknown provider {provider!r}; use one of {', '.join(turns)}")
        self.messages = list(messages)
        self._provider = provider
        self._read = turns[provider]
        self._max_steps = max_steps
        self._steps = 0
        self._response: Any = None

    def take(self, response: Any) -> List[Any]:
        """Takes the model's turn and returns what it calls."""
        self._response = response
        turn, calls = self._read(response)
        self.messages.extend(turn)
        if calls and self._steps == self._max_steps:
            raise RunLimitError(self._max_steps, self.messages)
        return calls

    def answer(self, results: Sequence["Result"]) -> None:
        """Takes the results of the calls."""
        self._steps += 1
        self.messages.extend(_answers(self._provider, [r.message for r in results]))

    def result(self) -> RunResult:
        return RunResult(self._response, self.messages, self._steps)


def _chat(response: Any) -> Tuple[List[Any], List[Any]]:
    choices = get(response, "choices")
    message = get(choices[0], "message") if choices else get(response, "message")
    calls = list(get(message, "tool_calls") or [])
    return [_turn(message)], calls


def _responses(response: Any) -> Tuple[List[Any], List[Any]]:
    output = list(get(response, "output") or [])
    return [_turn(item) for item in output], [item for item in output if get(item, "type") == "function_call"]


def _anthropic(response: Any) -> Tuple[List[Any], List[Any]]:
    content = list(get(response, "content") or [])
    calls = [block for block in content if get(block, "type") == "tool_use"]
    return [{"role": "assistant", "content": [_turn(block) for block in content]}], calls


def _gemini(response: Any) -> Tuple[List[Any], List[Any]]:
    candidates = get(response, "candidates")
    content = get(candidates[0], "content") if candidates else None
    if content is None:
        return [], []
    parts = get(content, "parts") or []
    calls = [call for call in (get(part, "functionCall", "function_call") for part in parts) if call]
    # The turn is sent back unchanged: its parts carry thought signatures, and
    # the API refuses a history without them.
    return [content], calls


def _bedrock(response: Any) -> Tuple[List[Any], List[Any]]:
    message = get(get(response, "output"), "message")
    content = get(message, "content") or []
    calls = [call for call in (get(block, "toolUse") for block in content) if call]
    return [message], calls


def _turn(item: Any) -> Any:
    """A turn goes back as plain values where the library gave an object."""
    return item if isinstance(item, Mapping) else plain(item)


def _answers(provider: str, results: List[Any]) -> List[Any]:
    """Puts results where the provider wants them in a conversation."""
    if provider == "anthropic":
        return [{"role": "user", "content": results}]
    if provider == "bedrock":
        return [{"role": "user", "content": results}]
    if provider == "gemini":
        return [{"role": "user", "parts": results}]
    return results
