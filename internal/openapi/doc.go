// Package openapi creates an MCP server from the OpenAPI document of an HTTP
// service: every operation becomes a tool, and a call of the tool becomes one
// HTTP request.
//
// It supports OpenAPI 3.0, 3.1 and 3.2 and Swagger 2.0, in JSON and YAML.
// [Parse] reads a document and returns its operations as a [Service];
// [NewServer] returns an mcpserver.Handler that loads the document, keeps it
// up to date and sends the requests.
//
// # Design
//
// A document is kept as bytes and never decoded as a whole: the operations are
// found by scanning, and each schema is rewritten as it is copied. This keeps
// memory use low for documents of several megabytes; see
// docs/decisions/0011-openapi-documents.md. After Parse nothing refers to the
// document any more.
//
// All external input is bounded: the size, operations, files and nesting of a
// document, and the size of each tool definition and each response. A document
// may send requests only to a host in the configuration, to its own host, or
// to a host that it names itself, unless that host is in a more private
// network than the document.
//
// Argument values cannot change the structure of a request: path values are
// escaped and may not be "." or "..", header values may not contain line
// breaks. Credentials are sent only to the service's own host, and redirects
// to another host are not followed.
package openapi
