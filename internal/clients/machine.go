package clients

import "strings"

// Machine determines where clients store their files.
type Machine struct {
	OS      string              // runtime.GOOS
	Home    string              // the user's home
	Getenv  func(string) string // nil means an empty environment
	Project string              // the project folder; empty for none
}

func (m Machine) env(name string) string {
	if m.Getenv == nil {
		return ""
	}
	return m.Getenv(name)
}

// join joins a path in the syntax of the machine's operating system, which may
// differ from the one that this program runs on.
func (m Machine) join(parts ...string) string {
	sep := "/"
	if m.OS == "windows" {
		sep = `\`
	}
	joined := ""
	for i, p := range parts {
		if i == 0 {
			joined = strings.TrimRight(p, `/`+sep)
			continue
		}
		joined += sep + p
	}
	return joined
}

func (m Machine) home(parts ...string) string {
	return m.join(append([]string{m.Home}, parts...)...)
}

// configHome returns the configuration folder of the XDG specification.
func (m Machine) configHome() string {
	if dir := m.env("XDG_CONFIG_HOME"); dir != "" {
		return dir
	}
	return m.home(".config")
}

// appData returns the configuration folder of desktop programs.
func (m Machine) appData(parts ...string) string {
	var base string
	switch m.OS {
	case "windows":
		if base = m.env("APPDATA"); base == "" {
			base = m.home("AppData", "Roaming")
		}
	case "darwin":
		base = m.home("Library", "Application Support")
	default:
		base = m.configHome()
	}
	return m.join(append([]string{base}, parts...)...)
}

// user returns a file with scope User that connect writes.
func (m Machine) user(path string) []File {
	return []File{{Path: path, Scope: User, connect: true}}
}

// project returns a file of the project, or none if there is no project.
func (m Machine) project(parts ...string) []File {
	if m.Project == "" {
		return nil
	}
	return []File{{Path: m.join(append([]string{m.Project}, parts...)...), Scope: Project, connect: true}}
}
