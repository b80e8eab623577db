"""Reads the objects of the providers' libraries without knowing them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any


def get(value: Any, *names: str) -> Any:
    """Returns the first of the named fields that value has, else None."""
    for name in names:
        if isinstance(value, Mapping):
            found = value.get(name)
        else:
            found = getattr(value, name, None)
        if found is not None:
            return found
    return None


# The fields that hold a call's arguments in the providers' formats.
_ARGUMENTS = frozenset(("args", "arguments", "input"))


def plain(value: Any, depth: int = 0, in_arguments: bool = False) -> Any:
    """Turns an object of a provider's library into plain JSON values.

    Fields without a value are left out, because the libraries have many. In
    the arguments of a call None is a value that the model chose, and stays.
    """
    if depth > 64:
        raise ValueError("the call is nested too deep")
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {
            str(k): plain(v, depth + 1, in_arguments or k in _ARGUMENTS)
            for k, v in value.items()
            if v is not None or in_arguments
        }
    if isinstance(value, (list, tuple, set)):
        return [plain(v, depth + 1, in_arguments) for v in value]
    if hasattr(value, "model_dump"):  # pydantic 2: openai, anthropic, google-genai, ollama
        return plain(value.model_dump(mode="json"), depth + 1)
    fields = getattr(value, "__dataclass_fields__", None)
    if fields is not None:
        return plain({name: getattr(value, name) for name in fields}, depth + 1)
    if get(value, "name") is not None and hasattr(value, "args"):  # google-generativeai
        call = {"name": value.name, "args": plain(dict(value.args or {}), depth + 1, True)}
        if get(value, "id"):
            call["id"] = value.id
        return call
    if hasattr(value, "to_dict"):
        return plain(value.to_dict(), depth + 1)
    if hasattr(value, "__iter__"):  # repeated fields of protocol buffers
        return [plain(v, depth + 1) for v in value]
    if hasattr(value, "__dict__"):
        return plain({k: v for k, v in vars(value).items() if not k.startswith("_")}, depth + 1)
    raise TypeError(f"cannot read a {type(value).__name__}; pass the call as the provider's library returned it, or as a dict")
