package attach_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"junctor/internal/attach"
)

const socketVariable = "JUNCTOR_TEST_SOCKET"

// TestDescendantProcess acts as a server that tries to get the gateway's
// rights.
func TestDescendantProcess(t *testing.T) {
	path := os.Getenv(socketVariable)
	if path == "" {
		t.Skip("it is run by TestDescendantsAreRefused")
	}
	_, err := attach.Open(t.Context(), path, attach.StreamRequest{})
	refused, ok := errors.AsType[*attach.Refused](err)
	fmt.Printf("stream refused=%v %v\n", ok, refused)
	res, err := attach.Client(path).Post("http://junctor/api/keys", "application/json", strings.NewReader(`{"name":"evil","admin":true}`))
	if err != nil {
		fmt.Println("request", err)
		return
	}
	body, _ := io.ReadAll(res.Body)
	fmt.Println("request", res.StatusCode, string(body))
}

// TestDescendantsAreRefused starts programs as the gateway starts its servers,
// directly and in a PID namespace. They ask for a key at its socket.
func TestDescendantsAreRefused(t *testing.T) {
	dir, err := os.MkdirTemp("", "j") // short, because it contains a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s.sock")
	ln, err := attach.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	reached := make(chan struct{}, 10)
	server := attach.New(attach.Options{
		HTTP: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached <- struct{}{} }), Log: slog.New(slog.DiscardHandler),
	})
	go func() { done <- server.Serve(ctx, ln) }()
	t.Cleanup(func() { cancel(); <-done })
	for name, attr := range map[string]*syscall.SysProcAttr{
		"child":                  {},
		"session of its own":     {Setsid: true},
		"PID namespace":          {Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWUSER, UidMappings: own(os.Getuid()), GidMappings: own(os.Getgid())},
		"PID namespace as root":  {Cloneflags: syscall.CLONE_NEWPID},
		"grandchild of a shell":  nil,
		"short environment only": {Setpgid: true},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestDescendantProcess$")
			if attr == nil {
				cmd = exec.Command("sh", "-c", `"$0" -test.run=^TestDescendantProcess$; :`, os.Args[0])
			}
			cmd.Env, cmd.SysProcAttr = []string{socketVariable + "=" + path, "GORACE=atexit_sleep_ms=10"}, attr
			out, err := cmd.CombinedOutput()
			if err != nil && errors.Is(err, syscall.EPERM) {
				t.Skipf("the system allows no namespace: %v", err)
			}
			if !strings.Contains(string(out), "stream refused=true") || !strings.Contains(string(out), "request 403") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	select {
	case <-reached:
		t.Error("a request of a descendant got through")
	default:
	}
	// The gateway's own process, and programs that it did not start, are
	// allowed.
	res, err := attach.Client(path).Get("http://junctor/")
	if err != nil || res.StatusCode != 200 {
		t.Errorf("another program of the user: %v %v", res, err)
	}
}

func own(id int) []syscall.SysProcIDMap {
	return []syscall.SysProcIDMap{{ContainerID: id, HostID: id, Size: 1}}
}
