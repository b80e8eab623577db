package control

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"junctor/internal/listing"
	"junctor/internal/profile"
	"junctor/internal/rawjson"
	"junctor/internal/setting"
	"junctor/internal/tool"
)

// Profile is a profile, limited to what the caller may use.
type Profile struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Servers     []string        `json:"servers"`          // servers visible with the profile
	Tools       []string        `json:"tools,omitempty"`  // tools callable with the profile; absent in lists
	ToolCount   int             `json:"toolCount"`        // number of callable tools
	Config      *profile.Config `json:"config,omitempty"` // configuration of the profile; only for operators
}

func (c *Control) listProfiles(r *http.Request) (any, error) {
	caller := tool.CallerFrom(r.Context())
	if r.URL.Query().Has("wait") {
		c.awaitServers(r.Context(), &caller, nil)
	}
	list := []Profile{}
	for _, name := range c.Profiles.Usable(&caller) {
		p, err := c.describe(c.Profiles, caller, name)
		if err != nil {
			continue // removed in the meantime
		}
		p.Tools = nil
		list = append(list, p)
	}
	return map[string]any{"profiles": list}, nil
}

func (c *Control) showProfile(r *http.Request) (any, error) {
	caller := tool.CallerFrom(r.Context())
	if r.URL.Query().Has("wait") {
		c.awaitServers(r.Context(), &caller, nil)
	}
	return c.describe(c.Profiles, caller, r.PathValue("name"))
}

// previewProfile returns what a profile with the configuration in the body
// would show. Nothing is saved.
func (c *Control) previewProfile(r *http.Request, in profile.Config) (any, error) {
	if err := invalidProfile(in.Validate()); err != nil {
		return nil, err
	}
	const name = "preview"
	return c.describe(c.Profiles.With(name, in), tool.CallerFrom(r.Context()), name)
}

// invalidProfile converts a validation error of a profile to one for the
// caller.
func invalidProfile(err error) error {
	if problems := setting.Problems(err); len(problems) > 0 {
		return &tool.Error{Kind: tool.InvalidArguments, Msg: problems[0].Error()}
	}
	return err
}

// describe returns a profile as the caller can use it.
func (c *Control) describe(profiles *profile.Set, caller tool.Caller, name string) (Profile, error) {
	narrowed, err := profiles.Narrow(caller, name)
	if err != nil {
		return Profile{}, err
	}
	config := profiles.CurrentConfig()[name]
	p := Profile{Name: name, Description: config.Description, Servers: []string{}, Tools: []string{}}
	for _, s := range c.Tools.Servers(&narrowed) {
		p.Servers = append(p.Servers, s.Name)
	}
	for e := range c.Tools.List(c.Tools.Snapshot(), &narrowed, listing.Filter{AppsOnly: true}) {
		p.Tools = append(p.Tools, e.Name.String())
	}
	slices.Sort(p.Tools)
	p.ToolCount = len(p.Tools)
	if caller.IsOperator() {
		p.Config = &config
	}
	return p, nil
}

// setProfile adds or replaces a profile.
func (c *Control) setProfile(r *http.Request, in profile.Config) (any, error) {
	name, action := r.PathValue("name"), "profile.add"
	if _, ok := c.Profiles.CurrentConfig()[name]; ok {
		action = "profile.change"
	}
	err := invalidProfile(errors.Join(profile.CheckName(name), in.Validate()))
	if err == nil {
		err = c.Settings.SetValues(map[string]json.RawMessage{"profiles." + name: rawjson.MarshalOrNull(in)})
	}
	return okBody, c.finishEdit(r, err, action, in, name)
}

func (c *Control) removeProfile(r *http.Request) (any, error) {
	name := r.PathValue("name")
	err := profile.CheckName(name)
	if _, ok := c.Profiles.CurrentConfig()[name]; !ok || err != nil {
		caller := tool.CallerFrom(r.Context())
		_, err = c.Profiles.Narrow(caller, name)
	}
	if err == nil {
		err = c.Settings.SetValues(map[string]json.RawMessage{"profiles." + name: json.RawMessage("null")})
	}
	return okBody, c.finishEdit(r, err, "profile.remove", nil, name)
}
