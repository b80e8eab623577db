package main

import (
	"bufio"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

// TestHangupStopsGateway: SIGHUP, as when the terminal is closed, stops the gateway
// like SIGTERM, even if it arrives twice. A gateway that was started with SIGHUP
// ignored continues.
func TestHangupStopsGateway(t *testing.T) {
	t.Parallel()
	// A handled signal has its default action in child processes, even if these
	// tests were started with nohup.
	handled := make(chan os.Signal, 1)
	signal.Notify(handled, syscall.SIGHUP)
	defer signal.Stop(handled)
	a := newAgents(t)
	for name, ignored := range map[string]bool{"default": false, "nohup": true} {
		t.Run(name, func(t *testing.T) {
			cmd := a.command("serve", "--listen", "127.0.0.1:0")
			if ignored {
				program, err := exec.LookPath("sh")
				if err != nil {
					t.Fatal(err)
				}
				cmd.Path, cmd.Args = program, []string{"sh", "-c", `trap "" HUP; exec junctor serve --listen 127.0.0.1:0`}
			}
			cmd.Stderr = nil
			stderr, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = cmd.Process.Kill() }()
			lines := bufio.NewScanner(stderr)
			await := func(part string) {
				t.Helper()
				for lines.Scan() {
					if strings.Contains(lines.Text(), part) {
						return
					}
				}
				t.Fatalf("the log ended before %q: %v", part, cmd.Wait())
			}
			send := func(s syscall.Signal) {
				t.Helper()
				if err := cmd.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
			}
			await(" is at http://")
			if ignored {
				send(syscall.SIGHUP)
				if err := a.command("tools", "list").Run(); err != nil {
					t.Errorf("after SIGHUP: %v", err)
				}
				send(syscall.SIGTERM)
			} else {
				send(syscall.SIGHUP)
				send(syscall.SIGHUP)
			}
			await("stopping; waiting for calls in flight")
			for lines.Scan() {
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("the gateway ended with %v", err)
			}
		})
	}
}
