// Package codemode runs scripts that call tools: one script in place of many
// calls, whose intermediate results the model does not see.
//
// A script is JavaScript or TypeScript for [script.Engine]. Every call that it
// makes is a call of the executor, with the caller's rights, approval and
// questions, and a record whose parent is the record of the script. The package
// adds what a script sees: tools, store, and declarations of tools.
package codemode
