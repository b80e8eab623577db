package doctor

import (
	"strings"
	"testing"

	"junctor/internal/control"
	"junctor/internal/upstream"
)

func TestBrokenNpxCache(t *testing.T) {
	for name, tt := range map[string]struct{ stderr, folder string }{
		"missing module": {"node:internal/modules/package_json_reader:256\nError [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /home/me/.npm/_npx/a3241bba59c344f5/node_modules/@modelcontextprotocol/sdk/dist/x.js", "/home/me/.npm/_npx/a3241bba59c344f5"},
		"file URL":       {"Error: Cannot find module 'file:///home/me/.npm/_npx/0f/node_modules/x/index.js'", "/home/me/.npm/_npx/0f"},
		"stale lock":     {"npm error code ECOMPROMISED\nnpm error Lock compromised\nnpm error path /home/me/.npm/_npx/0f/concurrency.lock", "/home/me/.npm/_npx/0f"},
		"Windows":        {`Error: Cannot find module 'C:\Users\me\AppData\Local\npm-cache\_npx\0f\node_modules\x'`, `C:\Users\me\AppData\Local\npm-cache\_npx\0f`},
		"own module":     {"Error: Cannot find module '/srv/server.js'", ""},
		"other fault":    {"TypeError: x at /home/me/.npm/_npx/0f/node_modules/x/index.js:1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Report{}
			r.servers(Facts{Servers: []control.Server{{Status: upstream.Status{
				Name: "fs", State: upstream.Disconnected, Reason: "it exited with code 1", Stderr: strings.Split(tt.stderr, "\n"),
			}}}})
			f := r.Findings[0]
			if broken := strings.Contains(f.What, "npx cache is corrupt"); broken != (tt.folder != "") || !strings.Contains(f.What, "code 1") {
				t.Errorf("what: %s", f.What)
			}
			if tt.folder != "" && !strings.HasPrefix(f.Do, "delete "+tt.folder+", ") {
				t.Errorf("do: %s", f.Do)
			}
		})
	}
}
