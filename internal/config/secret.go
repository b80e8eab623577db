package config

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"junctor/internal/telemetry"
)

// LooksSecret reports whether a value is likely a secret in plain text, judging
// by the value and its name. Values with a variable and placeholders such as
// <token> are not. In addition to what the redactor masks, it recognizes a few
// more names, because a false positive is cheap in a configuration.
func LooksSecret(name, value string) bool {
	if value == "" || strings.Contains(value, "${") || strings.HasSuffix(value, ">") && strings.Contains(value, "<") {
		return false
	}
	var r telemetry.Redactor
	if r.String(value) != value || isRandom(value) {
		return true
	}
	return (telemetry.SecretName(name) || isKeyName(name)) && len(value) >= 6 && !isHarmless(value)
}

// isSecret reports whether the value of a setting or a variable is masked
// wherever it appears. A false positive masks ordinary text in every record, so
// the rules are stricter than those of LooksSecret.
func isSecret(name, value string) bool {
	var r telemetry.Redactor
	switch {
	case len(value) < 6 || isHarmless(value):
		return r.String(value) != value
	case telemetry.SecretName(name) || isRandom(value) || r.String(value) != value:
		return true
	}
	return isKeyName(name) && len(value) >= 16 && strings.ContainsAny(value, "0123456789")
}

// Secrets returns the values that must not appear in logs, traces, records and
// responses: those of secret settings, environment variables and headers of
// servers that look secret by name or form, and values of variables that do.
func (c *Config) Secrets() []telemetry.Secret {
	var out []telemetry.Secret
	add := func(name string, value telemetry.Secret) {
		if isSecret(name, value.Reveal()) {
			out = append(out, value)
			if _, credential, ok := strings.Cut(value.Reveal(), " "); ok && strings.EqualFold(name, "Authorization") {
				out = append(out, telemetry.Secret(credential))
			}
		}
	}
	eachSecret(reflect.ValueOf(*c), "", "", func(field, name string, value telemetry.Secret) {
		if field == "env" || field == "headers" { // most of them are not secret
			add(name, value)
		} else {
			out = append(out, value)
		}
	})
	if c.env != nil {
		out = append(out, c.env.secrets...)
	}
	return out
}

// SecretInFile reports whether the configuration file contains a secret itself
// and not only references to variables.
func (c *Config) SecretInFile() bool {
	found := c.env != nil && c.env.literalKey
	c.eachSetting(func(v reflect.Value, key, field, name string) {
		if n := c.from[key]; n != nil && n.offset >= 0 && n.source == "" {
			found = found || isLiteralSecret(v, key, field, name, n)
		}
	})
	return found
}

// isLiteralSecret reports whether the value v of a setting is a secret that is
// in the text of n.
func isLiteralSecret(v reflect.Value, key, field, name string, n *node) bool {
	text := literal(n.text)
	switch {
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.String: // args of a server
		list := make([]string, len(n.elems))
		for i, e := range n.elems {
			if strings.Contains(e.text, "${") && LooksSecret("", literal(e.text)) {
				return true
			} else if !strings.Contains(e.text, "${") {
				list[i] = e.text
			}
		}
		return strings.HasPrefix(key, "mcpServers") && !slices.Equal(MaskArgs(list), list)
	case v.Kind() != reflect.String || v.String() != n.value: // n may name the file that contains the value
		return false
	case v.Type() != reflect.TypeFor[telemetry.Secret]() || strings.Contains(n.text, "${"):
		return LooksSecret("", text) // what surrounds a variable, such as "Bearer "
	case field == "env" || field == "headers": // most of them are not secret
		return LooksSecret(name, text)
	}
	return text != ""
}

// literal returns a value without the variables in it.
func literal(text string) string { return (&expansion{env: &environment{}}).expand(text).text }

// eachSecret calls f for every Secret in v, with the key of its field and, if
// that is a map, its key in the map.
func eachSecret(v reflect.Value, field, name string, f func(field, name string, value telemetry.Secret)) {
	switch v.Kind() {
	case reflect.String:
		if s, ok := v.Interface().(telemetry.Secret); ok {
			f(field, name, s)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			eachSecret(v.Elem(), field, name, f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if sf := v.Type().Field(i); sf.IsExported() {
				eachSecret(v.Field(i), jsonName(sf), "", f)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachSecret(v.Index(i), field, name, f)
		}
	case reflect.Map:
		for key, value := range v.Seq2() {
			eachSecret(value, field, key.String(), f)
		}
	}
}

// isRandom reports whether value looks generated: at least 32 characters,
// letters and digits, without separators other than _ and -.
func isRandom(value string) bool {
	if len(value) < 32 {
		return false
	}
	letters, digits := false, false
	for i := range len(value) {
		switch c := value[i]; {
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z':
			letters = true
		case '0' <= c && c <= '9':
			digits = true
		case c != '_' && c != '-':
			return false
		}
	}
	return letters && digits
}

// isKeyName reports whether the last word of a name is key, pat or dsn, as in
// X-Key. These words are too common to be masked in logs.
func isKeyName(name string) bool {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !('a' <= r && r <= 'z' || '0' <= r && r <= '9') })
	return len(words) > 0 && slices.Contains([]string{"key", "pat", "dsn"}, words[len(words)-1])
}

// isHarmless reports whether a value is not a secret even if its name suggests
// one: a switch, a number, a path to a file, a URL.
func isHarmless(value string) bool {
	switch strings.ToLower(value) {
	case "true", "false", "none", "required", "optional", "disabled", "enabled", "default":
		return true
	}
	if strings.Trim(value, "0123456789.") == "" {
		return true
	}
	return strings.HasPrefix(value, "/") || strings.HasPrefix(value, "./") || strings.HasPrefix(value, "~") ||
		strings.HasPrefix(value, "http://") || strings.HasPrefix(value, "https://")
}

// MaskArgs masks the arguments of a program that look secret by themselves,
// after a flag such as --api-key, or after NAME= or a header name.
func MaskArgs(args []string) []string {
	var r telemetry.Redactor
	out := make([]string, len(args))
	flag := ""
	for i, a := range args {
		out[i] = r.String(a)
		if out[i] == a && LooksSecret(flag, a) {
			out[i] = telemetry.Redacted
		}
		if name, value, ok := strings.Cut(a, "="); ok && out[i] == a && LooksSecret(strings.TrimLeft(name, "-"), value) {
			out[i] = name + "=" + telemetry.Redacted
		}
		if name, value, ok := strings.Cut(a, ": "); ok && out[i] == a && LooksSecret(name, value) { // a header
			out[i] = name + ": " + telemetry.Redacted
		}
		flag = ""
		if strings.HasPrefix(a, "-") && !strings.Contains(a, "=") {
			flag = strings.TrimLeft(a, "-")
		}
	}
	// Given all arguments together, the redactor also recognizes pairs of them.
	if raw, err := json.Marshal(out); err == nil {
		var again []string
		if json.Unmarshal(r.JSON(raw), &again) == nil && len(again) == len(out) {
			return again
		}
	}
	return out
}
