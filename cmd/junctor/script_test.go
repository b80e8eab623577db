package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"junctor/internal/app"
	"junctor/internal/script"
	"junctor/internal/store"
	"junctor/internal/upstream/upstreamtest"
)

// TestMain makes the test binary three programs: the tests, the command that
// the scripts call, and an MCP server that it connects to.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"junctor": main, "test-server": upstreamtest.Main})
}

// exitDelay reduces the time that the race detector waits at the exit of a
// command from one second.
const exitDelay = "atexit_sleep_ms=10"

// TestScripts runs commands like a user and checks their output.
func TestScripts(t *testing.T) {
	counters := os.Getenv("JUNCTOR_COVERDIR")
	program := "" // the folder of a junctor to use instead of the test binary
	switch {
	case counters != "": // a test binary that runs as another program does not write coverage
		program = build(t, "-cover", "-coverpkg=junctor/internal/...,junctor/cmd/...")
	case raceDetector():
		// Hundreds of short processes start four times as fast without the race
		// detector. The tests of sessions and chats run junctor with it.
		program = build(t)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Condition: func(name string) (bool, error) {
			if name != "engine" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return script.Built() || os.Getenv("CI") == "true", nil // in CI a missing prerequisite is a failure
		},
		Setup: func(e *testscript.Env) error {
			home := e.WorkDir + "/home"
			if err := os.MkdirAll(home, 0o700); err != nil {
				return err
			}
			e.Setenv("HOME", home)
			e.Setenv("XDG_CONFIG_HOME", home+"/.config")
			e.Setenv("XDG_DATA_HOME", home+"/.local/share")
			e.Setenv("XDG_RUNTIME_DIR", home)
			e.Setenv("GORACE", exitDelay)
			if program != "" {
				e.Setenv("PATH", program+string(os.PathListSeparator)+e.Getenv("PATH"))
			}
			if counters != "" {
				e.Setenv("GOCOVERDIR", counters)
			}
			return nil
		},
		RequireExplicitExec: true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"store-value": storeValue, "usage-error": usageErrorOf},
	})
}

// storeValue stores a value: store-value SPACE NAME DATA.
func storeValue(ts *testscript.TestScript, _ bool, args []string) {
	s, err := app.OpenStore(context.Background(), store.DefaultConfig(), ts.Getenv("XDG_DATA_HOME")+"/junctor", slog.New(slog.DiscardHandler))
	ts.Check(err)
	defer s.Close()
	_, err = s.PutValue(context.Background(), store.Value{Space: args[0], Name: args[1], Data: []byte(args[2])}, 0)
	ts.Check(err)
}

// usageErrorOf runs a command, which must exit with the code of a usage error:
// usage-error PROGRAM ARGUMENT…
func usageErrorOf(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[0], args[1:]...)
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != exitUsage {
		ts.Fatalf("ended with %v, want exit status %d", err, exitUsage)
	}
}

// build builds junctor and returns its folder.
func build(t *testing.T, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	args := slices.Concat([]string{"build", "-ldflags=-s -w"}, flags, []string{"-o", filepath.Join(dir, "junctor"), "."})
	cmd := exec.Command("go", args...)
	if !slices.Contains(flags, "-race") {
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // like released binaries
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

func raceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
