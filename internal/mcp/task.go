package mcp

import "encoding/json"

// MissingTasksExtension returns the error for a request about tasks from a
// client of the stateless era that does not declare the extension.
func MissingTasksExtension() *Error {
	return &Error{
		Code: CodeMissingCapability, Message: "declare the extension " + ExtensionTasks + " in the client's capabilities",
		Data: json.RawMessage(`{"requiredCapabilities":{"extensions":{"` + ExtensionTasks + `":{}}}}`),
	}
}
