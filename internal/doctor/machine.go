package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"junctor/internal/child"
	"junctor/internal/openapi"
)

// MachineProbes returns probes of this machine. step is called with each area
// before it is examined.
func MachineProbes(step func(string)) Probes {
	return Probes{
		OS:       runtime.GOOS,
		Look:     func(program string, environ []string) (string, error) { return child.Look(program, "", environ) },
		Version:  programVersion,
		Stat:     os.Stat,
		Listen:   tryListen,
		Date:     webDate,
		Free:     freeSpace,
		Now:      time.Now,
		Document: openapi.Dialer{UserAgent: "junctor", Proxy: http.ProxyFromEnvironment}.Inspect,
		Progress: step,
	}
}

// programVersion runs a program and returns the first line of its output.
func programVersion(ctx context.Context, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	text, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		message, _, _ := strings.Cut(strings.TrimSpace(string(exit.Stderr)), "\n")
		return "", fmt.Errorf("%w: %s", err, message)
	}
	return text, err
}

func tryListen(address string) error {
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return ln.Close()
}

// webDate returns the time in the Date header of a web server.
func webDate(ctx context.Context, address string) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, address, nil)
	if err != nil {
		return time.Time{}, err
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return time.Time{}, err
	}
	_ = res.Body.Close()
	return http.ParseTime(res.Header.Get("Date"))
}
