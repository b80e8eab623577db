package clients

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"junctor/internal/config"
	"junctor/internal/jsonedit"
	"junctor/internal/rawjson"
	"junctor/internal/telemetry"
)

// settingMember is the member that wraps the value of a setting while its
// secrets are replaced. Without it, a value that is itself a secret has no
// path.
const settingMember = "value"

// wrapSetting wraps the value of a setting and finds the secrets in it.
func wrapSetting(key string, value json.RawMessage) Server {
	s := Server{Name: key, JSON: append(append([]byte(`{"`+settingMember+`":`), value...), '}')}
	for _, path := range config.SecretsIn(key, value) {
		full := append([]string{settingMember}, path...)
		raw, _ := jsonedit.Get(s.JSON, full...)
		var text string
		if json.Unmarshal(raw, &text) != nil {
			continue
		}
		s.Secrets = append(s.Secrets, Secret{
			Key: strings.Join(append([]string{key}, path...), "."), Variable: settingVariable(s.JSON, key, full),
			value: telemetry.Secret(text), path: full,
		})
	}
	return s
}

// settingVariable returns the variable for a secret, named after the object
// that contains it: OPENAI_API_KEY for the key of the provider openai.
func settingVariable(wrapped json.RawMessage, key string, path []string) string {
	word := config.VariableName(snake(path[len(path)-1]))
	if len(path) == 1 {
		return config.VariableName(strings.ReplaceAll(key, ".", "_"))
	}
	var object struct {
		Name     string `json:"name"`
		Provider string `json:"provider"`
	}
	if raw, ok := jsonedit.Get(wrapped, path[:len(path)-1]...); ok {
		_ = json.Unmarshal(raw, &object) // other objects have neither
	}
	return variable(cmp.Or(object.Name, object.Provider, strings.ReplaceAll(key, ".", "_")), word)
}

// snake converts apiKey to api_key.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && 'A' <= r && r <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func (s Server) unwrapSetting() json.RawMessage {
	raw, _ := jsonedit.Get(s.JSON, settingMember)
	return raw
}

// KeepSettingSecrets moves plain-text secrets in a setting's value to the .env
// file next to the configuration, and returns the value with variables in
// their place.
func KeepSettingSecrets(o config.Options, key string, value json.RawMessage) (json.RawMessage, error) {
	s := wrapSetting(key, value)
	if len(s.Secrets) == 0 {
		return value, nil
	}
	changed, err := keepSecrets(o, []Server{s})
	if err != nil {
		return nil, err
	}
	return changed[0].unwrapSetting(), nil
}

// HideSettingSecrets returns the value of a setting with a placeholder for
// each plain-text secret. ShowSettingSecrets is the reverse.
func HideSettingSecrets(key string, value json.RawMessage) (json.RawMessage, error) {
	s := wrapSetting(key, value)
	for n, secret := range s.Secrets {
		quoted := rawjson.MarshalOrNull(hidden(n))
		var err error
		if s.JSON, err = jsonedit.Set(s.JSON, quoted, secret.path...); err != nil {
			return nil, err
		}
	}
	return s.unwrapSetting(), nil
}

// ShowSettingSecrets replaces the placeholders from HideSettingSecrets by the
// secrets of old, even if an edit has moved them.
func ShowSettingSecrets(key string, edited, old json.RawMessage) json.RawMessage {
	if len(old) == 0 {
		return edited
	}
	return restoreMarks(edited, wrapSetting(key, old).Secrets)
}

// MaskFile returns the text of Junctor's own file for display, with the
// plain-text secrets replaced.
func MaskFile(o config.Options, text []byte, settings map[string]json.RawMessage) ([]byte, error) {
	own, err := Own(o)
	if err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		for _, secret := range wrapSetting(key, settings[key]).Secrets {
			if text, err = jsonedit.Set(text, json.RawMessage(`"`+telemetry.Redacted+`"`), append([]string{key}, secret.path[1:]...)...); err != nil {
				return nil, err
			}
		}
	}
	var secrets []Secret
	for _, e := range own {
		secrets = append(secrets, findSecrets(e.Name, e.Server)...)
	}
	return mask(text, secrets), nil
}
