// Package agentify is the face for IDEs: it turns a task in plain words into
// one call of a backend. It also contains the debug interface, which shows the
// log and the messages exchanged with the backends (recorded by package
// mcptrace).
//
// Search selects the tools that are relevant to the query and to what the user
// is looking at. The model gets them with their real schemas and must choose
// exactly one, or decline. The arguments are completed from the context and
// validated against the schema; the model may correct an invalid choice once.
// The result is a [Plan], which the executor executes like any other call.
//
// Nothing is called unless the model chose exactly one of the offered tools
// with arguments that match its schema. A refusal contains the reason and the
// nearest tools. The face serves its own protocol and MCP on one stream.
// Rights, rules, approval and limits are left to the executor.
package agentify
