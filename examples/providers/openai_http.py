#!/usr/bin/env python3
"""Any server that speaks OpenAI's chat completions, without a library."""

import json
import os
import pathlib
import sys
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "clients" / "python"))

from junctor import GatewayClient  # noqa: E402

gateway = GatewayClient(os.environ.get("JUNCTOR_URL", "http://127.0.0.1:8787"), api_key=os.environ.get("JUNCTOR_KEY"))
base = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1")
model = os.environ.get("MODEL", "gpt-5.6-terra")


def ask(messages, tools):
    request = urllib.request.Request(
        base + "/chat/completions",
        json.dumps({"model": model, "messages": messages, "tools": tools}).encode(),
        {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ.get("OPENAI_API_KEY", "")},
    )
    with urllib.request.urlopen(request, timeout=120) as response:
        return json.load(response)


question = " ".join(sys.argv[1:]) or "What is 19 + 23?"
done = gateway.run("openai", ask, [{"role": "user", "content": question}])
print(done.response["choices"][0]["message"]["content"])
