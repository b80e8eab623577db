package main

import (
	"slices"
	"testing"
)

func TestGatewayCommandUnderNpx(t *testing.T) {
	for name, tt := range map[string]struct {
		goos, command string
		want          []string
	}{
		"installed":  {"linux", "/usr/bin/junctor", []string{"/usr/bin/junctor", "mcp"}},
		"npx":        {"linux", "/home/me/.npm/_npx/0a1b/node_modules/@junctor/linux-x64/bin/junctor", []string{"npx", "-y", "junctor", "mcp"}},
		"on windows": {"windows", "C:/npm-cache/_npx/0a1b/junctor.exe", []string{"cmd", "/c", "npx", "-y", "junctor", "mcp"}},
	} {
		t.Run(name, func(t *testing.T) {
			command, args := throughNpx(tt.goos, tt.command, []string{"mcp"})
			if got := append([]string{command}, args...); !slices.Equal(got, tt.want) {
				t.Errorf("throughNpx = %q, want %q", got, tt.want)
			}
		})
	}
}
