// Makes the npm packages out of compiled binaries: one package per platform
// that carries the binary, and the package junctor that picks the right one.
//
//   node packaging/npm/build.mjs BINARIES VERSION OUT
//
// BINARIES holds linux-amd64/junctor, windows-arm64/junctor.exe and so on, as
// scripts/cross writes them. Platforms without a binary are left out. Nothing
// is published: OUT gets one folder per package, ready for npm pack.

import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "..", "..");
const [binaries, rawVersion, out] = process.argv.slice(2);
if (!binaries || !rawVersion || !out) {
  console.error("usage: node packaging/npm/build.mjs BINARIES VERSION OUT");
  process.exit(2);
}
// npm wants a semantic version; a build between releases has none.
const version = /^v?\d+\.\d+\.\d+/.test(rawVersion) ? rawVersion.replace(/^v/, "") : "0.0.0-dev";

// Go's names and npm's, which also decide what is installed where.
const platforms = [
  { go: "linux-amd64", os: "linux", cpu: "x64" },
  { go: "linux-arm64", os: "linux", cpu: "arm64" },
  { go: "darwin-amd64", os: "darwin", cpu: "x64" },
  { go: "darwin-arm64", os: "darwin", cpu: "arm64" },
  { go: "windows-amd64", os: "win32", cpu: "x64" },
  { go: "windows-arm64", os: "win32", cpu: "arm64" },
];

const shared = JSON.parse(readFileSync(join(here, "package.json"), "utf8"));
rmSync(out, { recursive: true, force: true });
const optionalDependencies = {};
for (const p of platforms) {
  const file = p.os === "win32" ? "junctor.exe" : "junctor";
  const binary = join(binaries, p.go, file);
  if (!existsSync(binary)) continue;
  const name = `@junctor/${p.os}-${p.cpu}`;
  const folder = join(out, `${p.os}-${p.cpu}`);
  mkdirSync(join(folder, "bin"), { recursive: true });
  copyFileSync(binary, join(folder, "bin", file));
  chmodSync(join(folder, "bin", file), 0o755);
  copyFileSync(join(root, "LICENSE"), join(folder, "LICENSE"));
  copyFileSync(join(root, "NOTICE"), join(folder, "NOTICE"));
  write(join(folder, "package.json"), {
    name,
    version,
    description: `The junctor binary for ${p.os} on ${p.cpu}`,
    license: shared.license,
    os: [p.os],
    cpu: [p.cpu],
    files: ["bin", "LICENSE", "NOTICE"],
    preferUnplugged: true,
  });
  optionalDependencies[name] = version;
}
if (Object.keys(optionalDependencies).length === 0) {
  console.error(`there is no binary in ${binaries}; run scripts/cross ${binaries} first`);
  process.exit(1);
}
const main = join(out, "junctor");
mkdirSync(join(main, "bin"), { recursive: true });
copyFileSync(join(here, "bin", "junctor.js"), join(main, "bin", "junctor.js"));
for (const f of ["LICENSE", "NOTICE", "README.md"]) copyFileSync(join(root, f), join(main, f));
write(join(main, "package.json"), { ...shared, version, optionalDependencies });
console.log(`made junctor@${version} for ${Object.keys(optionalDependencies).join(", ")}`);

function write(path, value) {
  writeFileSync(path, JSON.stringify(value, null, 2) + "\n");
}
