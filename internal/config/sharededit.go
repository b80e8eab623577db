package config

import (
	"encoding/json"
	"fmt"

	"junctor/internal/rawjson"
)

// Whole reports whether what the server or the setting was before does not
// matter.
func (e Edit) Whole() bool { return e.kind != merge && e.kind != rule }

// Without returns what remains of an edit when a later one of the same server or
// rule has been made, and whether anything does: of a patch, the keys that the
// later one does not have.
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

// Map returns the edit with what server makes of the server that it sets, or
// setting of the value of a setting, in its place. Other edits stay as they are.
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

// MarshalJSON lets an edit be made elsewhere too.
func (e Edit) MarshalJSON() ([]byte, error) { return json.Marshal(editText{e.kind, e.name, e.value}) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (e *Edit) UnmarshalJSON(data []byte) error {
	var t editText
	if err := json.Unmarshal(data, &t); err != nil {
		return err
	}
	if t.Kind < set || t.Kind > setValue {
		return fmt.Errorf("edit of %s: of a kind that this version does not know", t.Name)
	}
	*e = Edit{t.Kind, t.Name, t.Server}
	return nil
}
