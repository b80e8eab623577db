package clients

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"junctor/internal/config"
	"junctor/internal/jsonedit"
	"junctor/internal/rawjson"
	"junctor/internal/telemetry"
)

// Secret is a plain-text secret and the variable that can replace it.
type Secret struct {
	Key      string `json:"key"`      // its location: env.GITHUB_TOKEN, args[3]
	Variable string `json:"variable"` // suggested replacement

	value telemetry.Secret
	path  []string // of the string that contains it
}

// String returns the location of the secret and not its value. Without it fmt
// would print the value, because fmt does not call methods of unexported
// fields.
func (s Secret) String() string { return s.Key + " as ${" + s.Variable + "}" }

// GoString implements fmt.GoStringer, for %#v.
func (s Secret) GoString() string { return s.String() }

// findSecrets returns the strings in a server that look like secrets.
func findSecrets(server string, raw json.RawMessage) []Secret {
	var s struct {
		Env     map[string]string `json:"env"`
		Headers map[string]string `json:"headers"`
		Args    []string          `json:"args"`
		URL     string            `json:"url"`
		Token   string            `json:"authorization_token"`
		OAuth   struct {
			Secret string `json:"clientSecret"`
		} `json:"oauth"`
	}
	// Values of other types are not strings and thus not secrets.
	_ = json.Unmarshal(raw, &s)

	var all []Secret
	add := func(key, env, value string, path ...string) {
		all = append(all, Secret{Key: key, Variable: env, value: telemetry.Secret(value), path: path})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if config.LooksSecret(name, s.Env[name]) {
			add("env."+name, config.VariableName(name), s.Env[name], "env", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		if config.LooksSecret(name, s.Headers[name]) {
			add("headers."+name, headerVariable(server, name), bare(s.Headers[name]), "headers", name)
		}
	}
	if config.LooksSecret("token", s.Token) {
		add("authorization_token", variable(server, "token"), s.Token, "authorization_token")
	}
	if config.LooksSecret("secret", s.OAuth.Secret) {
		add("oauth.clientSecret", variable(server, "client_secret"), s.OAuth.Secret, "oauth", "clientSecret")
	}
	flag := ""
	for i, a := range s.Args {
		key, path := "args["+strconv.Itoa(i)+"]", []string{"args", strconv.Itoa(i)}
		name, value, assigned := strings.Cut(a, "=")
		header, field, isHeader := strings.Cut(a, ":")
		field = strings.TrimSpace(field)
		switch {
		case assigned && !strings.Contains(name, "://") && config.LooksSecret(strings.TrimLeft(name, "-"), value):
			env := config.VariableName(name)
			if strings.HasPrefix(name, "-") {
				env = variable(server, strings.TrimLeft(name, "-"))
			}
			add(key, env, value, path...)
		case isHeader && !strings.HasPrefix(field, "//") && config.LooksSecret(header, field):
			add(key, headerVariable(server, header), bare(field), path...)
		case config.LooksSecret(flag, a):
			add(key, variable(server, cmp.Or(flag, "secret")), a, path...)
		default:
			for _, q := range secretQuery(a) {
				add(key, variable(server, q.key), q.value, path...)
			}
		}
		flag = ""
		if strings.HasPrefix(a, "-") && !assigned {
			flag = strings.TrimLeft(a, "-")
		}
	}
	for _, q := range secretQuery(s.URL) {
		add("url", variable(server, q.key), q.value, "url")
	}
	return all
}

// headerVariable returns the name of the variable for a header.
func headerVariable(server, name string) string {
	if strings.EqualFold(name, "Authorization") {
		return variable(server, "token")
	}
	return variable(server, strings.TrimPrefix(strings.TrimPrefix(name, "X-"), "x-"))
}

// variable returns the name of the variable for a setting of a server, without
// repeating the server's name.
func variable(server, word string) string {
	name, prefix := config.VariableName(word), config.VariableName(server)
	if name == prefix || strings.HasPrefix(name, prefix+"_") {
		return name
	}
	return prefix + "_" + name
}

// bare removes the scheme from the value of a header. The secret follows it,
// unless what follows is too short to be found in a text.
func bare(value string) string {
	for _, scheme := range []string{"Bearer ", "Basic ", "token ", "Token "} {
		if rest, ok := strings.CutPrefix(value, scheme); ok && len(strings.TrimSpace(rest)) >= minMasked {
			return rest
		}
	}
	return value
}

// secretQuery returns the parameters of a URL that look like secrets.
func secretQuery(s string) []struct{ key, value string } {
	var all []struct{ key, value string }
	if !strings.Contains(s, "://") {
		return nil
	}
	u, err := url.Parse(s)
	if err != nil {
		return nil
	}
	for _, pair := range strings.Split(u.RawQuery, "&") {
		if name, value, ok := strings.Cut(pair, "="); ok && config.LooksSecret(name, value) {
			all = append(all, struct{ key, value string }{name, value})
		}
	}
	return all
}

// useVariables replaces the secrets of all servers by ${VAR} and returns the
// variables with their values. Different secrets with the same variable name
// get different names, and so does a secret whose name is taken: taken returns
// the current value of a variable.
func useVariables(servers []Server, taken func(string) (string, bool)) ([]Server, map[string]telemetry.Secret, error) {
	vars := map[string]telemetry.Secret{}
	free := func(name string, value telemetry.Secret) bool {
		if have, ok := vars[name]; ok {
			return have == value
		}
		if taken != nil {
			if have, ok := taken(name); ok {
				return have == value.Reveal()
			}
		}
		return true
	}
	out := slices.Clone(servers)
	for i, s := range out {
		out[i].Secrets = slices.Clone(s.Secrets)
		for j, secret := range s.Secrets {
			name := secret.Variable
			if !free(name, secret.value) {
				name = variable(s.Name, secret.Variable)
			}
			for n := 2; !free(name, secret.value); n++ {
				name = variable(s.Name, secret.Variable) + "_" + strconv.Itoa(n)
			}
			raw, ok := jsonedit.Get(out[i].JSON, secret.path...)
			var text string
			if !ok || json.Unmarshal(raw, &text) != nil {
				return nil, nil, fmt.Errorf("%s of %s no longer exists", secret.Key, s.Name)
			}
			quoted := rawjson.MarshalOrNull(strings.Replace(text, secret.value.Reveal(), "${"+name+"}", 1))
			var err error
			if out[i].JSON, err = jsonedit.Set(out[i].JSON, quoted, secret.path...); err != nil {
				return nil, nil, err
			}
			vars[name] = secret.value
			out[i].Secrets[j].Variable = name
		}
	}
	return out, vars, nil
}

// addDotenv adds variables to the text of a .env file, quoted so that their
// values are preserved. Existing variables are not changed.
func addDotenv(text []byte, vars map[string]telemetry.Secret) ([]byte, error) {
	have, err := config.ParseDotenv(".env", text)
	if err != nil {
		return nil, err
	}
	out := string(text)
	if out != "" && !strings.HasSuffix(out, "\n") {
		out += "\n"
	}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if _, ok := have[name]; ok {
			continue
		}
		value := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(vars[name].Reveal())
		out += name + `="` + value + "\"\n"
	}
	return []byte(out), nil
}
