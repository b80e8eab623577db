// Package agentify is the face for IDEs: plain words in, one call of the
// right backend out. It is also the debug interface, which shows the log and
// the messages exchanged with the backends (package mcptrace keeps those).
//
// Search narrows all tools to those that matter for the words and for what
// the user is looking at; the model gets them with their real schemas and
// must choose exactly one, or decline. Its arguments are completed from the
// context and checked against the schema, and a wrong choice may be repaired
// once. What comes of it is a [Plan], which the executor executes like
// any other call.
//
// It promises that nothing is called unless the choice was one, was offered
// and fits its schema, and that a refusal says why and what was nearest. It
// speaks its own protocol and MCP on one stream, and decides nothing that
// the executor decides: rights, rules, approval and limits are there.
package agentify
