package control

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"junctor/internal/tool"
)

// Configuration is the configuration of the gateway, with secrets masked.
type Configuration struct {
	// Place is the location of the file. Settings lists the effective settings,
	// each with its source.
	Place    any `json:"place"`
	Settings any `json:"settings"`
	// Text is the content of the file, and Values is the same by top-level key.
	// Placeholders replace secrets; a change may send them back.
	Text   string                     `json:"text"`
	Values map[string]json.RawMessage `json:"values"`
	// Restart lists the keys of settings that have changed since the start and
	// take effect after a restart.
	Restart []string `json:"restart"`
}

func (c *Control) settings(r *http.Request) (any, error) {
	shown, err := c.Settings.Show()
	if err != nil {
		return nil, asInvalid(err)
	}
	if shown.Restart == nil {
		shown.Restart = []string{}
	}
	return shown, nil
}

func (c *Control) settingsSchema(_ *http.Request) (any, error) {
	return c.Settings.Schema(), nil
}

// changeSettings accepts {"set": {"log.level": "debug", "limits.maxBodyBytes":
// null}} and responds like settings.
func (c *Control) changeSettings(r *http.Request, in struct {
	Set map[string]json.RawMessage `json:"set"`
}) (any, error) {
	if len(in.Set) == 0 {
		return nil, &tool.Error{Kind: tool.InvalidArguments, Msg: `send {"set": {"log.level": "debug"}}; null removes a setting from the file`}
	}
	keys := slices.Sorted(maps.Keys(in.Set)) // values may be secrets
	if err := c.finishEdit(r, c.Settings.SetValues(in.Set), "config.change", nil, keys...); err != nil {
		return nil, err
	}
	return c.settings(r)
}
