/** The programs that the tests use: the real gateway and a scripted model. */

import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export const root = resolve(fileURLToPath(import.meta.url), "../../../../..");
const scratch = mkdtempSync(join(tmpdir(), "junctor-typescript-"));
const children: ChildProcess[] = [];

/** Stops everything. Call it after the tests of a file. */
export async function stopAll(): Promise<void> {
  await Promise.all(
    children.map(
      (child) =>
        new Promise<void>((done) => {
          if (child.exitCode !== null || child.signalCode !== null) return done();
          child.once("exit", () => done());
          child.kill();
          setTimeout(() => child.kill("SIGKILL"), 20_000).unref();
        }),
    ),
  );
  rmSync(scratch, { recursive: true, force: true });
}

function build(pkg: string): string {
  if (process.env["JUNCTOR_BIN"] && pkg === "./cmd/junctor") return process.env["JUNCTOR_BIN"];
  const program = join(scratch, basename(pkg));
  const built = spawnSync("go", ["build", "-o", program, pkg], { cwd: root, stdio: ["ignore", "inherit", "inherit"] });
  if (built.status !== 0) throw new Error(`go build ${pkg} failed; Go is needed to build the gateway, or set JUNCTOR_BIN`);
  return program;
}

async function firstLine(stream: NodeJS.ReadableStream, pattern: RegExp): Promise<string> {
  const seen: string[] = [];
  for await (const line of createInterface({ input: stream })) {
    seen.push(line);
    const found = pattern.exec(line)?.[1];
    if (found) {
      stream.resume(); // discard the rest
      return found;
    }
  }
  throw new Error(`the program did not start:\n${seen.join("\n")}`);
}

/** Starts the gateway with a temporary home folder and returns its URL. */
export async function startGateway(): Promise<string> {
  const home = mkdtempSync(join(scratch, "home-"));
  const config = join(home, "junctor.json");
  writeFileSync(config, JSON.stringify({ builtin: true }));
  const child = spawn(build("./cmd/junctor"), ["serve", "--listen", "127.0.0.1:0", "--log-level", "error", "--config", config], {
    cwd: home,
    env: { PATH: process.env["PATH"], HOME: home, XDG_DATA_HOME: home, XDG_CONFIG_HOME: home, XDG_STATE_HOME: home, XDG_RUNTIME_DIR: home },
    stdio: ["ignore", "ignore", "pipe"],
  });
  children.push(child);
  return firstLine(child.stderr, / is at (http:\/\/\S+)/);
}

/** Starts a scripted model and returns its URL. */
export async function startModel(script: object): Promise<string> {
  const file = join(scratch, "script.json");
  writeFileSync(file, JSON.stringify(script));
  const child = spawn(build("./internal/llm/llmtest/cmd/llmscript"), ["-script", file, "-stdin"], { stdio: ["pipe", "pipe", "inherit"] });
  children.push(child);
  return firstLine(child.stdout, /(http:\/\/\S+)/);
}
