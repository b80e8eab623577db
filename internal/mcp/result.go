package mcp

import (
	"encoding/json"
	"junctor/internal/rawjson"
)

// ResultIsError reports whether a decoded result has isError set.
func ResultIsError(result json.RawMessage) bool {
	return string(rawjson.TrustedField(result, "isError")) == "true"
}

// MayNameTask reports whether a decoded result has a member that can contain
// the id of a task.
func MayNameTask(result json.RawMessage) bool {
	for m := range rawjson.TrustedPositions(result) {
		switch string(m.Name(result)) {
		case "task", "taskId", "_meta":
			return true
		}
	}
	return false
}
