// Package codemode runs scripts that call tools: one script in place of many
// calls, whose intermediate results the model does not see.
//
// A script is JavaScript or TypeScript for [script.Engine]. Each of its calls
// goes through the executor, with the caller's rights, approval and questions,
// and has a record whose parent is the record of the script. The package adds
// what a script sees: tools, store, and declarations of tools.
package codemode
