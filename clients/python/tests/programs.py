"""The programs that the tests talk to: the real gateway, and a scripted model
that speaks the providers' wire formats."""

from __future__ import annotations

import atexit
import functools
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest
import urllib.request
from typing import Any, Optional

ROOT = pathlib.Path(__file__).resolve().parents[3]


@functools.lru_cache(maxsize=None)
def _scratch() -> pathlib.Path:
    folder = pathlib.Path(tempfile.mkdtemp(prefix="junctor-python-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.lru_cache(maxsize=None)
def build(package: str) -> str:
    """Builds a program of the repository. Without Go the test is skipped,
    except in CI, where that is a failure."""
    given = os.environ.get("JUNCTOR_BIN")
    if given and package == "./cmd/junctor":
        return given
    if shutil.which("go") is None:
        if os.environ.get("CI"):
            raise RuntimeError("go is needed to build the gateway")
        raise unittest.SkipTest("go is needed to build the gateway; or set JUNCTOR_BIN")
    program = _scratch() / pathlib.Path(package).name
    subprocess.run(["go", "build", "-o", str(program), package], cwd=ROOT, check=True)
    return str(program)


def start_gateway(config: Optional[dict] = None) -> str:
    """Starts the gateway with a throw-away home and returns its URL."""
    home = pathlib.Path(tempfile.mkdtemp(dir=_scratch()))
    command = [build("./cmd/junctor"), "serve", "--listen", "127.0.0.1:0", "--log-level", "error"]
    file = home / "junctor.json"
    file.write_text(json.dumps(config or {"builtin": True}))
    command += ["--config", str(file)]
    env = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "TMPDIR")}
    env.update(HOME=str(home), XDG_DATA_HOME=str(home), XDG_CONFIG_HOME=str(home), XDG_STATE_HOME=str(home), XDG_RUNTIME_DIR=str(home))
    process = subprocess.Popen(command, cwd=home, env=env, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    _stop_at_exit(process)
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if " is at http://" in line:
            return line.split(" is at ")[1].split()[0].strip()
    raise RuntimeError("the gateway did not start:\n" + "".join(lines))


def start_model(script: dict) -> str:
    """Starts a scripted model and returns its URL."""
    file = pathlib.Path(tempfile.mkdtemp(dir=_scratch())) / "script.json"
    file.write_text(json.dumps(script))
    process = subprocess.Popen(
        [build("./internal/llm/llmtest/cmd/llmscript"), "-script", str(file), "-stdin"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )
    _stop_at_exit(process)
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _stop_at_exit(process: "subprocess.Popen[str]") -> None:
    def stop() -> None:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe:
                pipe.close()

    atexit.register(stop)


def post(url: str, body: Any, **headers: str) -> Any:
    """What a provider's own library does."""
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json", **{k.replace("_", "-"): v for k, v in headers.items()}}
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=60) as response:
        return json.load(response)
