// Writes what engine.go embeds: QuickJS as WebAssembly, and Sucrase as one
// script that defines __strip, both compressed.
import { build } from "esbuild"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { gzipSync } from "node:zlib"

const at = (path) => fileURLToPath(new URL(path, import.meta.url))
const write = (name, data) => writeFileSync(at(`dist/${name}.gz`), gzipSync(data, { level: 9 }))

const stripper = await build({
  stdin: {
    contents: `
      import { transform } from "sucrase"
      globalThis.__strip = (code) =>
        transform(code, { transforms: ["typescript"], disableESTransforms: true, production: true }).code`,
    resolveDir: at("."),
  },
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  write: false,
})

mkdirSync(at("dist"), { recursive: true })
write("sucrase.js", stripper.outputFiles[0].contents)
write("quickjs.wasm", readFileSync(at("node_modules/quickjs-wasi/quickjs.wasm")))
