package clients

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"junctor/internal/config"
	"junctor/internal/jsonedit"
	"junctor/internal/rawjson"
)

// KeepSecrets moves plain-text secrets of servers that a person entered to the
// .env file next to the configuration, like TakeOver, and returns the servers
// with variables in their place.
func KeepSecrets(o config.Options, entries map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	var servers []Server
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		servers = append(servers, Server{Name: name, JSON: entries[name], Secrets: findSecrets(name, entries[name])})
	}
	changed, err := keepSecrets(o, servers)
	if err != nil {
		return nil, err
	}
	out := make(map[string]json.RawMessage, len(changed))
	for _, s := range changed {
		out[s.Name] = s.JSON
	}
	return out, nil
}

// KeepEdits applies KeepSecrets and KeepSettingSecrets to the servers and
// settings of edits.
func KeepEdits(o config.Options, edits []config.Edit) ([]config.Edit, error) {
	kept := make([]config.Edit, len(edits))
	for i, e := range edits {
		var err error
		kept[i], err = e.Map(func(name string, server json.RawMessage) (json.RawMessage, error) {
			out, err := KeepSecrets(o, map[string]json.RawMessage{name: server})
			return out[name], err
		}, func(key string, value json.RawMessage) (json.RawMessage, error) {
			return KeepSettingSecrets(o, key, value)
		})
		if err != nil {
			return nil, err
		}
	}
	return kept, nil
}

// hidden returns the placeholder for the n-th secret of a server.
func hidden(n int) string { return fmt.Sprintf("[hidden %d]", n+1) }

// HideSecrets returns a server with a placeholder for each plain-text secret.
// ShowSecrets is the reverse.
func HideSecrets(name string, server json.RawMessage) (json.RawMessage, error) {
	for n, secret := range findSecrets(name, server) {
		raw, ok := jsonedit.Get(server, secret.path...)
		var text string
		if !ok || json.Unmarshal(raw, &text) != nil {
			return nil, fmt.Errorf("%s of %s is not a string", secret.Key, name)
		}
		quoted := rawjson.MarshalOrNull(strings.Replace(text, secret.value.Reveal(), hidden(n), 1))
		var err error
		if server, err = jsonedit.Set(server, quoted, secret.path...); err != nil {
			return nil, err
		}
	}
	return server, nil
}

// ShowSecrets replaces the placeholders from HideSecrets by the secrets of
// old, even if an edit has moved them.
func ShowSecrets(name string, edited, old json.RawMessage) json.RawMessage {
	return restoreMarks(edited, findSecrets(name, old))
}

func restoreMarks(edited json.RawMessage, secrets []Secret) json.RawMessage {
	return mapStrings(edited, func(_, s string) string {
		for n, secret := range secrets {
			s = strings.ReplaceAll(s, hidden(n), secret.value.Reveal())
		}
		return s
	})
}
