package clients

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"junctor/internal/config"
	"junctor/internal/telemetry"
)

// Own returns the servers in Junctor's own file, for [Compare]; none if the
// file does not exist.
func Own(o config.Options) ([]config.Entry, error) {
	place := config.Locate(o)
	if place.Path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(place.Path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	return config.Entries(place.Path, text)
}

// TakenOver is the result of TakeOver.
type TakenOver struct {
	Path    string   // the file that now contains the servers
	Names   []string // names of the imported servers
	Secrets int      // number of secrets moved to .env
	Unset   []string // variables without a value in .env
	Refused []error  // one error for each rejected server
}

// TakeOver adds the candidates to Junctor's own file. Unless asTheyAre is set,
// plain-text secrets are moved to the .env file next to it, readable only by
// its owner, and replaced by variables. Required variables without a value,
// such as those that a client asks for, are added there without one. A
// rejected server does not prevent the import of the others.
func TakeOver(o config.Options, take []Candidate, asTheyAre bool) (TakenOver, error) {
	var done TakenOver
	refused := func(c Candidate, err error) bool {
		_, bad := errors.AsType[*config.Error](err)
		if bad = bad || errors.Is(err, config.ErrServerExists); bad {
			done.Refused = append(done.Refused, fmt.Errorf("%s: %w", c.As, withoutLines(err)))
		}
		return bad
	}
	err := keep(o, func(lookup func(string) (string, bool)) (vars map[string]telemetry.Secret, err error) {
		take = slices.DeleteFunc(slices.Clone(take), func(c Candidate) bool { // before secrets are written
			return refused(c, config.Check(o, c.edit()))
		})
		if asTheyAre {
			vars = map[string]telemetry.Secret{}
		} else if take, vars, err = setVariables(lookup, take); err != nil {
			return nil, err
		}
		done.Secrets = len(vars)
		for _, c := range take {
			for _, name := range variablesIn(c.JSON) {
				_, ours := vars[name]
				if _, set := lookup(name); !set && !ours {
					vars[name] = ""
					done.Unset = append(done.Unset, name)
				}
			}
		}
		return vars, nil
	})
	if err != nil {
		return done, err
	}
	for _, c := range take {
		path, err := config.Apply(o, c.edit())
		if refused(c, err) {
			continue
		}
		if err != nil {
			return done, err
		}
		done.Path, done.Names = path, append(done.Names, c.As)
	}
	return done, nil
}

// edit returns the edit that adds the candidate to the file. A new one does
// not replace a server that was added in the meantime.
func (c Candidate) edit() config.Edit {
	if c.State == New {
		return config.Add(c.As, c.JSON)
	}
	return config.Set(c.As, c.JSON)
}

// Variables returns the lookup function for the variables of the
// configuration. It works even if the configuration is invalid.
func Variables(o config.Options) func(string) (string, bool) {
	if cfg, _, err := config.Load(o); err == nil {
		return cfg.Lookup
	}
	var beside map[string]string
	if path := config.Locate(o).Path; path != "" {
		path = filepath.Join(filepath.Dir(path), ".env")
		if text, err := readFile(path); err == nil {
			beside, _ = config.ParseDotenv(path, text) // editing it reports syntax errors
		}
	}
	return func(name string) (string, bool) {
		if o.LookupEnv != nil {
			if v, ok := o.LookupEnv(name); ok {
				return v, true
			}
		}
		v, ok := beside[name]
		return v, ok
	}
}

// variablesIn returns the variables that a server requires.
func variablesIn(server json.RawMessage) []string {
	var names []string
	mapStrings(server, func(_, s string) string {
		for _, match := range neededName.FindAllStringSubmatch(s, -1) {
			if !predefined.MatchString(match[0]) && !slices.Contains(names, match[1]) {
				names = append(names, match[1])
			}
		}
		return s
	})
	return names
}

// setVariables replaces the candidates' secrets by variables.
func setVariables(lookup func(string) (string, bool), take []Candidate) ([]Candidate, map[string]telemetry.Secret, error) {
	servers := make([]Server, len(take))
	for i, c := range take {
		servers[i] = c.Server
	}
	changed, vars, err := useVariables(servers, lookup)
	if err != nil {
		return nil, nil, err
	}
	take = slices.Clone(take)
	for i := range take {
		take[i].Server = changed[i]
	}
	return take, vars, nil
}

// keep adds the variables that choose returns to the .env file next to the
// configuration. The file is locked meanwhile, so that a name that lookup
// reports as free is not given to another value.
func keep(o config.Options, choose func(lookup func(string) (string, bool)) (map[string]telemetry.Secret, error)) error {
	return config.EditDotenv(o, func(text []byte) ([]byte, error) {
		o.Trust = nil // do not prompt while others wait for the lock; the file is trusted
		vars, err := choose(Variables(o))
		if err != nil || len(vars) == 0 {
			return text, err
		}
		return addDotenv(text, vars)
	})
}

// keepSecrets moves the secrets of servers to the .env file next to the
// configuration, and returns the servers with variables in their place.
func keepSecrets(o config.Options, servers []Server) (changed []Server, err error) {
	if !slices.ContainsFunc(servers, func(s Server) bool { return len(s.Secrets) > 0 }) {
		return servers, nil
	}
	err = keep(o, func(lookup func(string) (string, bool)) (vars map[string]telemetry.Secret, err error) {
		changed, vars, err = useVariables(servers, lookup)
		return vars, err
	})
	return changed, err
}

// Starts returns the command line of the server or its URL, with secrets
// masked.
func (s Server) Starts() string {
	var e struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
		URL     string   `json:"url"`
	}
	if json.Unmarshal(s.JSON, &e) != nil || e.Command == "" && e.URL == "" {
		return ""
	}
	words := append([]string{e.Command}, e.Args...)
	if e.URL != "" {
		words = []string{e.URL}
	}
	for i, word := range words {
		for _, secret := range s.Secrets {
			word = strings.ReplaceAll(word, secret.value.Reveal(), telemetry.Redacted)
		}
		words[i] = word
	}
	words = config.MaskArgs(words)
	for i, word := range words {
		if word == "" || strings.ContainsAny(word, " \t\n\"'") {
			words[i] = strconv.Quote(word)
		}
	}
	return strings.Join(words, " ")
}
