// Package script runs one JavaScript or TypeScript program in a sandbox.
//
// The engine is QuickJS as a WebAssembly module (engine/dist/quickjs.wasm.gz),
// which wazero compiles once. A program starts in a copy of a memory image in
// which the engine and the prelude are initialized. It has no network, files,
// processes or timers; it reaches the outside only through the functions of its
// [Host]. Types are removed, not checked, by a second program in a separate
// sandbox (engine/dist/sucrase.js.gz), because a parser on the gateway's own
// stack would be exposed to hostile input.
//
// A program cannot exceed its [Limits], whatever it does: it ends with an
// [Error] that names the limit, and nothing else is affected.
package script
