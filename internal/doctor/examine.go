package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"time"

	"junctor/internal/auth"
	"junctor/internal/config"
	"junctor/internal/control"
	"junctor/internal/openapi"
	"junctor/internal/terminal"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// Facts describe a setup for Examine.
type Facts struct {
	Place  config.Place
	Config *config.Config // nil if it could not be read
	Err    error          // why it could not be read
	Notes  []config.Note

	Environ []string // from which the servers' programs inherit
	HasKey  bool     // there is an API key or an administrator's key
	Running bool     // a gateway is running with this configuration

	// The state of a gateway that is running or was started for this. Gateway
	// is the reason if there is none.
	Gateway error
	Begun   time.Time
	Servers []control.Server
	Tools   []tool.Definition
	Changed []string // tools that are changed since approval
	Flagged []control.Tool

	Store    string // the file of the embedded store; empty with PostgreSQL
	StoreErr error  // why the store cannot be used; the gateway was then started without it
	Model    string // the model of the chat; empty if there is none
}

// Probes are functions that examine the machine. Checks whose probe is nil are
// skipped.
type Probes struct {
	OS string
	// Look looks up a program in the PATH of an environment.
	Look func(program string, environ []string) (string, error)
	// Version runs a program and returns the first line that it prints.
	Version func(ctx context.Context, program string, args ...string) (string, error)
	Stat    func(path string) (fs.FileInfo, error)
	// Listen checks whether an address can be listened on.
	Listen func(address string) error
	// Date returns the time of a web server.
	Date func(ctx context.Context, address string) (time.Time, error)
	// Free returns the free space on the disk of a file, in bytes.
	Free func(path string) (uint64, error)
	Now  func() time.Time
	// Document reads the OpenAPI document of a server.
	Document func(context.Context, upstream.Config) (*openapi.Service, error)
	// Progress is called with each area before it is examined.
	Progress func(area string)
}

// Examine checks a setup and reports what is wrong with it.
func Examine(ctx context.Context, f Facts, p Probes) *Report {
	r := &Report{progress: p.Progress}
	r.begin("configuration")
	r.configuration(f)
	if f.Config == nil {
		return r
	}
	r.begin("runtimes")
	r.runtimes(ctx, f, p)
	r.begin("documents")
	r.documents(ctx, f, p)
	r.begin("servers")
	r.servers(f)
	r.begin("tools")
	r.names(f.Tools)
	r.clashes(f.Tools)
	r.schemas(f.Tools)
	r.flagged(f.Flagged, f.Tools)
	r.begin("providers")
	r.providers(f.Tools)
	r.begin("safety")
	r.safety(f.Tools)
	r.approval(f.Tools, f.Config.ToolRules)
	r.changed(f.Changed)
	if p.OS == "linux" {
		r.dataFolder(f.Servers)
	}
	r.begin("network")
	r.network(f, p)
	r.begin("files")
	r.files(f, p)
	r.begin("clock")
	r.clock(ctx, f, p)
	r.begin("store")
	r.store(f, p)
	return r
}

func (r *Report) configuration(f Facts) {
	const area = "configuration"
	if f.Err != nil {
		if broken, ok := errors.AsType[*config.Error](f.Err); ok {
			for _, p := range broken.Problems {
				r.Add(Finding{Severity: Problem, Area: area, What: p.String(), Do: "fix the file, then run junctor config check"})
			}
			return
		}
		r.Add(Finding{Severity: Problem, Area: area, What: f.Err.Error()})
		return
	}
	switch {
	case f.Place.Path == "":
		r.Add(Finding{Severity: Info, Area: area, What: "no configuration file; only the built-in server is available", Do: "import servers with junctor import, or add one with junctor servers add"})
	default:
		r.Add(Finding{Severity: OK, Area: area, Subject: f.Place.Path, What: fmt.Sprintf("is valid, %s", terminal.Count(len(f.Config.Servers), "server"))})
	}
	for _, n := range f.Notes {
		r.Add(Finding{Severity: Warning, Area: area, What: n.String()})
	}
	if f.Model == "" {
		r.Add(Finding{Severity: Info, Area: area, What: "no model for the chat", Do: "set llm in the configuration, or a provider's API key in the environment"})
	} else {
		r.Add(Finding{Severity: OK, Area: area, What: "the chat uses " + f.Model})
	}
}

// slowStart is how long a server may take to connect before that is reported.
const slowStart = 5 * time.Second

func (r *Report) servers(f Facts) {
	const area = "servers"
	if f.Gateway != nil {
		r.Add(Finding{Severity: Problem, Area: area, What: "the gateway does not start: " + f.Gateway.Error()})
		return
	}
	for _, s := range f.Servers {
		took := s.Since.Sub(f.Begun)
		if f.Running || took < 0 {
			took = 0
		}
		v := Finding{Area: area, Subject: s.Name}
		switch s.State {
		case upstream.Connected:
			v.Severity = OK
			v.What = fmt.Sprintf("connected, %s, protocol %s", terminal.Count(s.Tools, "tool"), s.Protocol)
			v.TookMs = millis(took)
			if took > slowStart {
				v.Severity, v.What = Warning, v.What+", but slow to start"
				v.Do = "install the program instead of fetching it each time (npm install -g, uv tool install), or raise startTimeoutMs"
			}
		case upstream.AuthRequired:
			v.Severity, v.What, v.Do = Warning, "requires a sign-in", "junctor servers login "+s.Name
		case upstream.Disabled:
			v.Severity, v.What = Info, "is disabled"
		case upstream.Connecting:
			v.Severity, v.What, v.Do = Problem, "did not connect in time", "raise startTimeoutMs, or start its command in a terminal and see what it waits for"
			v.Details = s.Stderr
		case upstream.Disconnected:
			if r.explained[s.Name] {
				continue // the cause is already reported
			}
			v.Severity, v.What, v.Details = Problem, s.Reason, s.Stderr
			v.Do = "test it with: junctor servers test " + s.Name
		}
		if do, broken := brokenNpxCache(s.Stderr); broken && v.Severity == Problem {
			v.What, v.Do = "the npx cache is corrupt, probably after an interrupted install: "+v.What, do
		}
		r.Add(v)
		for _, p := range s.Problems {
			r.Add(Finding{Severity: Warning, Area: area, Subject: s.Name, What: p, Do: "report it to its author; junctor servers test " + s.Name + " shows everything"})
		}
		if s.Stray > 0 {
			r.Add(Finding{
				Severity: Warning, Area: area, Subject: s.Name, What: terminal.Count(int(s.Stray), "line") + " on its stdout between protocol messages", Details: []string{s.LastStray},
				Do: "its author should write to stderr; Junctor drops these lines, but other clients may fail",
			})
		}
	}
}

func (r *Report) changed(names []string) {
	if len(names) == 0 {
		return
	}
	r.Add(Finding{
		Severity: Warning, Area: "safety", What: terminal.Count(len(names), "tool") + " changed since approval", Details: names,
		Do: "see junctor servers diff, then approve with junctor servers approve NAME",
	})
}

// dataFolder reports the servers whose programs can read the gateway's own
// files.
func (r *Report) dataFolder(servers []control.Server) {
	var details []string
	for _, s := range servers {
		if s.SeesData != "" {
			details = append(details, s.Name+": "+s.SeesData)
		}
	}
	if len(details) == 0 {
		return
	}
	r.Add(Finding{
		Severity: Info, Area: "safety", What: "the data folder, with the store and its key, is visible to " + terminal.Count(len(details), "server"), Details: details,
		Do: "keep the files of servers outside the data folder; run servers that you do not trust as another user or in a container",
	})
}

func (r *Report) network(f Facts, p Probes) {
	const area = "network"
	if err := auth.Ready(f.Config.Listen, f.Config.Auth, f.HasKey); err != nil {
		r.Add(Finding{Severity: Problem, Area: area, Subject: f.Config.Listen, What: err.Error()})
	}
	if auth.IsLoopback(f.Config.Listen) && f.Config.Auth.Loopback != auth.LoopbackKey {
		v := Finding{Severity: Info, Area: area, Subject: f.Config.Listen, What: "every user of this machine may call tools here", Do: "behind a reverse proxy, or with several users, set auth.loopback to \"key\""}
		if len(f.Config.Auth.TrustedProxies) > 0 {
			v.Severity, v.What = Warning, "is behind a proxy and does not require a key"
		}
		r.Add(v)
	}
	switch {
	case f.Running:
		r.Add(Finding{Severity: OK, Area: area, What: "a gateway is running with this configuration"})
	case p.Listen == nil:
	default:
		if err := p.Listen(f.Config.Listen); err != nil {
			r.Add(Finding{
				Severity: Warning, Area: area, Subject: f.Config.Listen, What: "is not available: " + err.Error(),
				Do: "stop the program that uses it, or set listen (or --listen) to another address; junctor mcp does not need it",
			})
		} else {
			r.Add(Finding{Severity: OK, Area: area, Subject: f.Config.Listen, What: "is free"})
		}
	}
}

// files checks whether other users can read or change the gateway's files.
func (r *Report) files(f Facts, p Probes) {
	const area = "files"
	if p.Stat == nil || p.OS == "windows" {
		return
	}
	type file struct {
		path   string
		secret bool
	}
	var list []file
	if f.Place.Path != "" {
		list = append(list, file{f.Place.Path, f.Config.SecretInFile()}, file{filepath.Join(filepath.Dir(f.Place.Path), ".env"), true})
	}
	if f.Store != "" {
		list = append(list, file{f.Store, true})
	}
	bad := 0
	for _, file := range list {
		info, err := p.Stat(file.path)
		if err != nil {
			continue // no such file
		}
		mode := info.Mode().Perm()
		switch {
		case mode&0o022 != 0:
			bad++
			r.Add(Finding{
				Severity: Problem, Area: area, Subject: file.path, What: fmt.Sprintf("writable by other users (%v), who could run programs as you", mode),
				Do: "chmod go-w " + file.path,
			})
		case file.secret && mode&0o044 != 0:
			bad++
			r.Add(Finding{Severity: Warning, Area: area, Subject: file.path, What: fmt.Sprintf("contains secrets and is readable by other users (%v)", mode), Do: "chmod 600 " + file.path})
		}
	}
	if bad == 0 && len(list) > 0 {
		r.Add(Finding{Severity: OK, Area: area, What: "secrets and configuration are accessible only to you"})
	}
}

// maxClockSkew is the clock skew from which tokens may be refused.
const maxClockSkew = 60 * time.Second

func (r *Report) clock(ctx context.Context, f Facts, p Probes) {
	if p.Now == nil || p.Date == nil {
		return
	}
	for _, s := range f.Config.Servers {
		u, err := url.Parse(s.URL)
		if err != nil || !s.Enabled || u.Scheme != "https" {
			continue
		}
		before := p.Now()
		theirs, err := p.Date(ctx, u.Scheme+"://"+u.Host+"/")
		if err != nil {
			continue
		}
		if off := before.Sub(theirs).Abs(); off > maxClockSkew {
			r.Add(Finding{
				Severity: Warning, Area: "clock", What: fmt.Sprintf("this machine's clock differs by %s from that of %s", off.Round(time.Second), u.Host),
				Do: "correct it (timedatectl set-ntp true): with a wrong clock, tokens and certificates are rejected",
			})
		} else {
			r.Add(Finding{Severity: OK, Area: "clock", What: "agrees with " + u.Host})
		}
		return
	}
	if p.Now().Year() < 2026 {
		r.Add(Finding{Severity: Warning, Area: "clock", What: "is set to " + p.Now().Format(time.DateOnly), Do: "correct it: with a wrong clock, tokens and certificates are rejected"})
	}
}

// minFreeSpace is the free disk space below which a warning is reported, in
// bytes.
const minFreeSpace = 200 << 20

func (r *Report) store(f Facts, p Probes) {
	if f.StoreErr != nil {
		r.Add(Finding{
			Severity: Problem, Area: "store", What: f.StoreErr.Error(),
			Do: "junctor does not start until this is fixed; the servers above were tested without the store, so they may ask for a sign-in again",
		})
		return
	}
	if f.Gateway != nil {
		return // reported for the area of the servers
	}
	if f.Store == "" {
		r.Add(Finding{Severity: OK, Area: "store", What: "PostgreSQL answers"})
		return
	}
	r.Add(Finding{Severity: OK, Area: "store", Subject: f.Store, What: "is writable"})
	if p.Free == nil {
		return
	}
	if free, err := p.Free(f.Store); err == nil && free < minFreeSpace {
		r.Add(Finding{
			Severity: Warning, Area: "store", Subject: f.Store, What: fmt.Sprintf("only %d MB free on its disk", free>>20),
			Do: "free disk space, or lower store.retention",
		})
	}
}
