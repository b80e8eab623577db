// Package script runs one JavaScript or TypeScript program in a sandbox.
//
// The engine is QuickJS as a WebAssembly module (engine/dist/quickjs.wasm.gz), which
// wazero compiles once; a program starts in a copy of a memory image in which
// the engine and the prelude are ready. A program has no network, files,
// processes or timers; it reaches the outside only through the functions that
// its [Host] gives it. Types are removed, not checked, by a second program in
// a sandbox of its own (engine/dist/sucrase.js.gz), because a parser on the gateway's own
// stack would be open to hostile input.
//
// It promises that a program cannot exceed its [Limits], whatever it does: the
// program ends with an [Error] that names the limit, and nothing else is
// affected.
package script
