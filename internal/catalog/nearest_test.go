package catalog

import (
	"fmt"
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	servers := []string{"git", "panw", "perplexity-tool", "terraform-mcp-server", "Hang-InThere-mcp", "github"}
	tools := []string{"fs:edit_file", "fs:read_file", "fs:write_file", "fs:move_file", "everything:echo", "everything:get-env", "everything:get-sum"}
	for want, tt := range map[string]struct {
		names []string
		near  string
	}{
		"gihtub":                         {servers, "github"},
		"Git":                            {servers, "git"},
		"git_hub":                        {servers, "github git"},
		"perplexity":                     {servers, "perplexity-tool"},
		"hang":                           {servers, "Hang-InThere-mcp"},
		"exit":                           {servers, ""}, // in the middle of perplexity, and two letters from git
		"err":                            {servers, ""},
		"many":                           {servers, ""},
		"edit_fil":                       {tools, "fs:edit_file"},
		"files:read_file":                {tools, "fs:read_file"},
		"everything__echo":               {tools, "everything:echo everything:get-env everything:get-sum"},
		"get_sm":                         {tools, "everything:get-sum"},
		"":                               {tools, ""},
		strings.Repeat("read_file", 100): {tools, ""},
	} {
		if got := strings.Join(Nearest(want, tt.names, 5), " "); got != tt.near {
			t.Errorf("Nearest(%.40q) = %q, want %q", want, got, tt.near)
		}
	}
}

func BenchmarkNearest(b *testing.B) {
	var names []string
	for i := range 5000 {
		names = append(names, fmt.Sprintf("server_%d:%s_%s_%d", i%100, []string{"get", "list", "create", "delete"}[i%4], []string{"issue", "calendar_event", "file", "customer_record"}[i/4%4], i))
	}
	for b.Loop() {
		Nearest("server_3:delete_calender_evnt_77", names, 5)
	}
}
