package launch

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"junctor/internal/attach"
	"junctor/internal/config"
)

// Socket returns the path of the socket at which other programs of this user
// find a gateway of this configuration, with the values that its variables have
// here. It is "" if there can be none.
func (l *Launcher) Socket(cfg *config.Config) string {
	return l.socketAt(cfg.Place(), cfg.Environment())
}

// socketAt returns the socket of the gateway of a file. It prefers the data
// folder, because agents pass HOME to the programs that they start, but not
// XDG_RUNTIME_DIR.
func (l *Launcher) socketAt(place config.Place, environment string) string {
	runtimeDir, _ := l.Lookup("XDG_RUNTIME_DIR")
	file := place.Path
	if file == "" { // a gateway without a file must still be found when the first one has been written
		file = place.New
	}
	path, err := attach.Path(file, environment, l.DataDir, runtimeDir)
	if err != nil { // no folder can contain a socket; a gateway works without one
		return ""
	}
	return path
}

// Find returns the socket of the gateway that runs with this configuration and
// the values of its variables, or "" if there is none. If variables have no
// value here, as in the reduced environment in which agents start programs, and
// no such gateway runs, Find returns the only gateway of the file.
func (l *Launcher) Find(ctx context.Context, cfg *config.Config) string {
	path := l.Socket(cfg)
	if path == "" || listens(ctx, path) {
		return path
	}
	if !cfg.Incomplete() {
		return ""
	}
	return only(listening(ctx, attach.OtherSockets(path)))
}

// FindWithInvalidConfig returns the socket of the only gateway of a file that
// has become invalid since the gateway read it, and prints err: the gateway
// keeps its configuration. It returns "" if there is no such gateway or err
// does not concern the file.
func (l *Launcher) FindWithInvalidConfig(ctx context.Context, o config.Options, err error) string {
	invalid, ok := errors.AsType[*config.Error](err)
	if !ok || invalid.OfFlags() {
		return ""
	}
	own := l.socketAt(config.Locate(o), "")
	if own == "" {
		return ""
	}
	found := only(listening(ctx, append(attach.OtherSockets(own), own)))
	if found != "" {
		l.Note("%v\nThe running gateway is used, with its previous configuration.", err)
	}
	return found
}

// Running returns a client of the gateway that runs with this configuration, or
// nil.
func (l *Launcher) Running(ctx context.Context, cfg *config.Config) *http.Client {
	if path := l.Find(ctx, cfg); path != "" {
		return attach.Client(path)
	}
	return nil
}

// InUse reports whether a gateway runs with this configuration, with any values
// of its variables.
func (l *Launcher) InUse(ctx context.Context, cfg *config.Config) bool {
	own := l.Socket(cfg)
	return own != "" && len(listening(ctx, append(attach.OtherSockets(own), own))) > 0
}

// listening returns the sockets at which a gateway listens.
func listening(ctx context.Context, paths []string) []string {
	return slices.DeleteFunc(paths, func(path string) bool { return !listens(ctx, path) })
}

// only returns the path if there is exactly one, or "".
func only(paths []string) string {
	if len(paths) != 1 {
		return ""
	}
	return paths[0]
}

// listens reports whether a gateway listens at path. It also reports true for
// any error other than attach.ErrNotRunning, which the caller gets when it uses
// the socket.
func listens(ctx context.Context, path string) bool {
	conn, err := attach.Dial(ctx, path)
	if err != nil {
		return !errors.Is(err, attach.ErrNotRunning)
	}
	_ = conn.Close()
	return true
}
