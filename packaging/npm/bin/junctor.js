#!/usr/bin/env node
// Starts the binary of this platform, which came as an optional dependency.
// The binary gets this process's own streams and arguments, its signals are
// handed on, and its exit code is this one's.
"use strict";

const { spawn } = require("node:child_process");

const name = `@junctor/${process.platform}-${process.arch}`;
const file = process.platform === "win32" ? "junctor.exe" : "junctor";

let binary = process.env.JUNCTOR_BINARY;
if (!binary) {
  try {
    binary = require.resolve(`${name}/bin/${file}`);
  } catch {
    console.error(
      `junctor: the package ${name} is not installed. Either there is no binary for ${process.platform} on ${process.arch}, ` +
        "or npm was told to leave optional dependencies out (--omit=optional). Install again without that, " +
        "or set JUNCTOR_BINARY to a binary of your own.",
    );
    process.exit(1);
  }
}

const child = spawn(binary, process.argv.slice(2), { stdio: "inherit", windowsHide: true });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (err) => {
  console.error(`junctor: start ${binary}: ${err.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  process.exitCode = signal ? 1 : code;
  process.exit();
});
