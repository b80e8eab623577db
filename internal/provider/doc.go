// Package provider translates between MCP and the formats of model providers:
// tools to declarations, calls of models to MCP calls, and results of tools to
// the provider's results.
//
// It guarantees three things. A provider never rejects a request because of a
// declaration: what the provider does not support is expressed in another way,
// moved to the description or omitted, and every loss is a [Warning]. A table
// maps each declared name to its tool, and the name of a tool is the same after
// a restart. Arguments that match the declaration match the tool's own schema
// after [Tools.Restore], unless a warning says otherwise.
//
// The package calls neither providers nor tools. Everything specific to a
// provider is in its [format] and in the [dialect] of its schemas.
package provider
