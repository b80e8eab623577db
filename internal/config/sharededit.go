package config

import (
	"encoding/json"
	"fmt"

	"junctor/internal/rawjson"
)

// Whole reports whether the result of the edit does not depend on the previous
// content of the server or the setting.
func (e Edit) Whole() bool { return e.kind != merge && e.kind != rule }

// Without returns the part of an edit that a later edit of the same server or
// rule does not override, and whether there is any: the keys of a patch that
// the later patch does not have.
func (e Edit) Without(later Edit) (rest Edit, some bool) {
	if e.kind != later.kind || e.kind != merge && e.kind != rule {
		return Edit{}, false
	}
	var keys map[string]json.RawMessage
	if json.Unmarshal(e.value, &keys) != nil {
		return Edit{}, false
	}
	for key := range rawjson.Members(later.value) {
		delete(keys, key)
	}
	e.value = rawjson.MarshalOrNull(keys)
	return e, len(keys) > 0
}

// Map returns the edit with its content replaced by the result of server, if it
// sets a server, or of setting, if it sets a setting. It returns other edits
// unchanged.
func (e Edit) Map(server, setting func(name string, content json.RawMessage) (json.RawMessage, error)) (Edit, error) {
	var err error
	switch e.kind {
	case set:
		e.value, err = server(e.name, e.value)
	case setValue:
		e.value, err = setting(e.name, e.value)
	}
	return e, err
}

// editText is the JSON form of an Edit, which other processes read.
type editText struct {
	Kind   editKind        `json:"kind"`
	Name   string          `json:"name"`
	Server json.RawMessage `json:"server,omitempty"`
}

// MarshalJSON encodes an edit for other processes.
func (e Edit) MarshalJSON() ([]byte, error) { return json.Marshal(editText{e.kind, e.name, e.value}) }

// UnmarshalJSON parses the output of MarshalJSON.
func (e *Edit) UnmarshalJSON(data []byte) error {
	var t editText
	if err := json.Unmarshal(data, &t); err != nil {
		return err
	}
	if t.Kind < set || t.Kind > setValue {
		return fmt.Errorf("edit of %s: unknown kind of edit; upgrade this node", t.Name)
	}
	*e = Edit{t.Kind, t.Name, t.Server}
	return nil
}
