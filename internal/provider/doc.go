// Package provider translates to and from each model provider's format: MCP
// tools as the provider's declarations, the provider's calls as MCP calls,
// and MCP results as what the provider wants back.
//
// It promises three things. A declaration never makes the provider refuse a
// request: what a provider does not support is expressed in another way, written
// into the description or omitted, and every loss is a [Warning]. A table maps
// each name to its tool, and a name is the same after a restart. Arguments that
// match the declaration match the tool's own schema after [Tools.Restore], unless
// a warning says otherwise.
//
// The package calls no provider and no tool. The [format] of each provider holds
// all that is particular to it: its shapes and the [dialect] of its schemas.
package provider
