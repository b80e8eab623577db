package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a part of the benchmark in a separate process.
type process struct {
	cmd  *exec.Cmd
	addr string // the address on which it listens; empty for none

	profiles int // CPU profiles that were taken
}

// start starts a program and, with printsAddress, reads the address that it
// prints first.
func (b *bench) start(env []string, printsAddress bool, name string, args ...string) (*process, error) {
	cmd := exec.CommandContext(b.ctx, name, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir}, env...)
	cmd.Dir = b.dir
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if name == b.junctor || name == b.before {
		if out, err = cmd.StderrPipe(); err != nil {
			return nil, err
		}
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd}
	b.children = append(b.children, p)
	if printsAddress {
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			return nil, fmt.Errorf("%s printed no address: %w", filepath.Base(name), err)
		}
		_, p.addr, _ = strings.Cut(strings.TrimSpace(line), "http://")
	}
	go func() { // discard the rest, so that the process does not block
		s := bufio.NewScanner(out)
		for s.Scan() {
		}
	}()
	return p, nil
}

// role starts this program in another role.
func (b *bench) role(role string, args ...string) (*process, error) {
	return b.start(nil, true, b.self, append([]string{"-role", role}, args...)...)
}

// gateway starts junctor with a configuration.
func (b *bench) gateway(binary, config string) (*process, error) {
	home, err := os.MkdirTemp(b.dir, "home")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(home, "junctor.json")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	return b.start([]string{"JUNCTOR_PROFILE=" + b.profile, "XDG_DATA_HOME=" + home, "XDG_CONFIG_HOME=" + home, "XDG_RUNTIME_DIR=" + home}, true,
		binary, "--config", file, "serve", "--listen", "127.0.0.1:0", "--log-level", "info")
}

// profileSignal starts and stops a CPU profile of a gateway that was built with
// support for that; see cmd/junctor/profile.go.
const profileSignal = syscall.Signal(10)

func (p *process) beginProfile() error { return p.cmd.Process.Signal(profileSignal) }

// endProfile waits until the profile is written to the folder.
func (p *process) endProfile(dir string) (file string, err error) {
	if err := p.cmd.Process.Signal(profileSignal); err != nil {
		return "", err
	}
	p.profiles++
	file = filepath.Join(dir, fmt.Sprintf("%d-%d.pprof", p.cmd.Process.Pid, p.profiles))
	for range 100 {
		if _, err = os.Stat(file); err == nil {
			return file, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return "", err
}

// stop stops all processes, and kills them after five seconds.
func (b *bench) stop() {
	for _, p := range b.children {
		_ = p.cmd.Process.Signal(os.Interrupt)
	}
	for _, p := range b.children {
		kill := time.AfterFunc(5*time.Second, func() { _ = p.cmd.Process.Kill() })
		_ = p.cmd.Wait()
		kill.Stop()
	}
	b.children = nil
}

// cpu returns the CPU time that the threads of a process have used so far, in
// nanoseconds; the figure of the process itself has a resolution of 10 ms.
func (p *process) cpu() time.Duration { return cpuOf(fmt.Sprintf("/proc/%d", p.cmd.Process.Pid)) }

// cpuOf is cpu for a process by its folder under /proc.
func cpuOf(proc string) time.Duration {
	files, _ := filepath.Glob(proc + "/task/*/schedstat")
	var sum time.Duration
	for _, file := range files {
		raw, _ := os.ReadFile(file) // fails if the thread has just ended
		used, _, _ := strings.Cut(string(raw), " ")
		n, _ := strconv.ParseInt(used, 10, 64)
		sum += time.Duration(n)
	}
	return sum
}

// memory returns a figure of a process's memory in megabytes: RssAnon is its
// own memory, RssFile the pages of its program file, which the system can
// reclaim.
func (p *process) memory(figure string) float64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, figure+":"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1024
		}
	}
	return 0
}
