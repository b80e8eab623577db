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

// Own returns the servers in Junctor's own file, for [Compare]; none when
// there is no file yet.
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

// TakenOver is what TakeOver did.
type TakenOver struct {
	Path    string   // the file that has the servers now
	Names   []string // theirs
	Secrets int      // how many secrets went into .env beside it
	Unset   []string // the variables that are in .env without a value
	Refused []error  // why a server was not taken, one for each
}

// TakeOver writes the candidates into Junctor's own file. Unless they are to
// stay as they are, secrets in plain text go into the .env beside it, readable
// by its owner alone, and variables stand in their place. Variables that have
// no value here, as those that a client asks for, get a line there to be
// filled in. A server that cannot be taken keeps no other from it.
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
		take = slices.DeleteFunc(slices.Clone(take), func(c Candidate) bool { // before its secrets are written
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

// edit writes the candidate into the file; a new one replaces no server that was
// added meanwhile.
func (c Candidate) edit() config.Edit {
	if c.State == New {
		return config.Add(c.As, c.JSON)
	}
	return config.Set(c.As, c.JSON)
}

// Variables returns the lookup of the variables that the configuration uses, or
// would use if it were valid.
func Variables(o config.Options) func(string) (string, bool) {
	if cfg, _, err := config.Load(o); err == nil {
		return cfg.Lookup
	}
	var beside map[string]string
	if path := config.Locate(o).Path; path != "" {
		path = filepath.Join(filepath.Dir(path), ".env")
		if text, err := readFile(path); err == nil {
			beside, _ = config.ParseDotenv(path, text) // whoever edits it reports what is wrong
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

// variablesIn lists the variables that a server requires.
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

// setVariables puts variables in the place of the candidates' secrets.
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

// keep adds the variables that choose returns to the .env beside the
// configuration. Nothing else edits it meanwhile: a name that is free by lookup
// is not given to another value.
func keep(o config.Options, choose func(lookup func(string) (string, bool)) (map[string]telemetry.Secret, error)) error {
	return config.EditDotenv(o, func(text []byte) ([]byte, error) {
		o.Trust = nil // nobody is asked while others wait; the file is trusted
		vars, err := choose(Variables(o))
		if err != nil || len(vars) == 0 {
			return text, err
		}
		return addDotenv(text, vars)
	})
}

// keepSecrets moves the secrets of servers into the .env beside the
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

// Starts is what the server runs, with its arguments, or the address that it
// is reached at. Secrets are masked.
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
