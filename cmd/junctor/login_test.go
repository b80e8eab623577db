package main

import (
	"errors"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"junctor/internal/terminal"
	"junctor/internal/tool"
)

func TestChildProcessesDoNotInheritGatewayKeys(t *testing.T) {
	got := withoutOwnKeys([]string{"A=1", "JUNCTOR_SECRET_KEY=x", "JUNCTOR_ADMIN_KEY=y", "JUNCTOR_CONFIG=z", "odd"})
	if !slices.Equal(got, []string{"A=1", "JUNCTOR_CONFIG=z", "odd"}) {
		t.Errorf("programs may inherit %v", got)
	}
}

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
		c := &cli{world: &world{Terminal: terminal.Terminal{Err: io.Discard}, lookup: func(k string) (string, bool) { v, ok := tt.env[k]; return v, ok }}}
		if got := c.openBrowser(t.Context(), "http://127.0.0.1:1/"); got != tt.want && !strings.Contains("darwin windows", runtime.GOOS) {
			t.Errorf("a browser %s: %v", name, got)
		}
	}
}

func TestPlainlyRemovesControlCharacters(t *testing.T) {
	if got := plainly(&tool.Error{Kind: tool.UpstreamFailed, Msg: "it\x1b[2J broke", Err: errors.New("because")}).Error(); got != "it[2J broke: because" {
		t.Errorf("got %q", got)
	}
	if got := plainly(errors.New("x")).Error(); got != "x" {
		t.Errorf("got %q", got)
	}
}
