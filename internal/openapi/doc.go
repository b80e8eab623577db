// Package openapi makes an MCP server from the OpenAPI document of an HTTP
// service: every operation becomes a tool, and a call of the tool becomes one
// HTTP request.
//
// It reads OpenAPI 3.0, 3.1 and 3.2 and Swagger 2.0, in JSON and YAML. [Parse]
// reads a document and returns its operations as a [Service]; [NewServer] makes
// an mcpserver.Handler that loads the document, keeps it up to date and sends the
// requests.
//
// # Design
//
// A document is kept as bytes and never decoded as a whole: the operations are
// found by scanning, and each schema is rewritten as it is copied. That is what
// a document of thirteen megabytes needs to stay small in memory; see
// docs/decisions/0011-openapi-documents.md. After Parse nothing refers to the
// document any more.
//
// Everything that comes from outside is bounded: the document in size, in
// operations, in files and in depth; each tool definition in bytes; each
// response in bytes. A document may send requests only to a host that the
// configuration names, or to the host that it came from or names itself, if
// that host is not in a more private network than the document.
//
// A value of an argument cannot leave its place in the request: path values are
// escaped and may not be "." or "..", header values may not contain line
// breaks. Credentials go to the service's own host only, and redirects to
// another host are refused.
package openapi
