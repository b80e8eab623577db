package main

import (
	"errors"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"junctor/internal/launch"
	"junctor/internal/terminal"
	"junctor/internal/tool"
)

func TestOpenBrowser(t *testing.T) {
	for name, tt := range map[string]struct {
		env  map[string]string
		want bool
	}{
		"of the user's own":  {map[string]string{"BROWSER": "true"}, true},
		"that is not there":  {map[string]string{"BROWSER": filepath.Join(t.TempDir(), "none")}, false},
		"without a display":  {nil, false},
		"empty counts as no": {map[string]string{"BROWSER": "", "DISPLAY": ""}, false},
	} {
		c := &cli{environment: &environment{Launcher: launch.Launcher{Terminal: terminal.Terminal{Err: io.Discard}, Lookup: func(k string) (string, bool) { v, ok := tt.env[k]; return v, ok }}}}
		if got := c.openBrowser(t.Context(), "http://127.0.0.1:1/"); got != tt.want && !strings.Contains("darwin windows", runtime.GOOS) {
			t.Errorf("a browser %s: %v", name, got)
		}
	}
}

func TestPlainlyRemovesControlCharacters(t *testing.T) {
	if got := errorWithCause(&tool.Error{Kind: tool.UpstreamFailed, Msg: "it\x1b[2J broke", Err: errors.New("because")}).Error(); got != "it[2J broke: because" {
		t.Errorf("got %q", got)
	}
	if got := errorWithCause(errors.New("x")).Error(); got != "x" {
		t.Errorf("got %q", got)
	}
}
