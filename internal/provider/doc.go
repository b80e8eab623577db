// Package provider translates to and from each model provider's format: MCP
// tools as the provider's declarations, the provider's calls as MCP calls,
// and MCP results as what the provider wants back.
//
// It promises three things. A declaration never makes the provider refuse a
// request: what a provider cannot take is said another way, written into the
// description, or left out, and every loss is a [Warning]. A name leads back
// to its tool by a table, and is the same after a restart. And arguments that
// fit the declaration fit the tool's own schema once repaired ([Tools.Restore]),
// wherever no warning says otherwise.
//
// The package calls no provider and no tool. The [format] of each provider holds
// all that is particular to it: its shapes and the [dialect] of its schemas.
package provider
