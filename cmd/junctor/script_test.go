package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"junctor/internal/upstream/upstreamtest"
)

// TestMain lets the test binary be three things: the tests, the command
// itself as the scripts call it, and an MCP server for it to connect to.
func TestMain(m *testing.M) {
	upstreamtest.Main()
	testscript.Main(m, map[string]func(){"junctor": main})
}

// TestScripts types commands as a user would and looks at what comes back.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			home := e.WorkDir + "/home"
			if err := os.MkdirAll(home, 0o700); err != nil {
				return err
			}
			e.Setenv("HOME", home)
			e.Setenv("XDG_CONFIG_HOME", home+"/.config")
			e.Setenv("XDG_DATA_HOME", home+"/.local/share")
			e.Setenv("XDG_RUNTIME_DIR", home)
			return nil
		},
		RequireExplicitExec: true,
	})
}
