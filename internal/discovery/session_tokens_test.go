package discovery

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/tiktoken-go/tokenizer"

	"junctor/internal/mcp"
)

// corpus returns n real tool definitions. They are stored outside the
// repository; the test is skipped if they are missing.
func corpus(t testing.TB, n int) []string {
	file, err := os.Open(filepath.FromSlash("../../../shared/search-eval/dev/tools.jsonl"))
	if err != nil {
		t.Skip("no corpus of tools: ", err)
	}
	defer file.Close()
	var tools []string
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() && len(tools) < n {
		var d struct {
			Tool        string          `json:"tool"`
			Description string          `json:"description"`
			InputSchema json.RawMessage `json:"inputSchema"`
		}
		if json.Unmarshal(lines.Bytes(), &d) != nil || len(d.InputSchema) == 0 {
			continue
		}
		tools = append(tools, string(marshal(map[string]any{
			"name": fmt.Sprintf("%s_%d", d.Tool, len(tools)), "description": d.Description, "inputSchema": d.InputSchema,
		})))
	}
	if len(tools) < n {
		t.Skipf("the corpus has %d tools with a schema, %d are needed", len(tools), n)
	}
	return tools
}

// BenchmarkSessionTokens counts the tokens that an agent reads and writes to
// find and run one tool in the meta view (list the servers, search, details,
// execute), compared with loading all definitions.
func BenchmarkSessionTokens(b *testing.B) {
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		b.Fatal(err)
	}
	for _, size := range []struct{ servers, tools int }{{20, 50}, {100, 30}} {
		b.Run(fmt.Sprintf("%dx%d", size.servers, size.tools), func(b *testing.B) {
			tools := corpus(b, size.servers*size.tools)
			servers := map[string]*testServer{}
			for i := range size.servers {
				servers[fmt.Sprintf("server-%03d", i)] = newTestServer(tools[i*size.tools : (i+1)*size.tools]...)
			}
			count := func(texts ...string) (n int) {
				for _, text := range texts {
					k, err := codec.Count(text)
					if err != nil {
						b.Fatal(err)
					}
					n += k
				}
				return n
			}
			r := newFixture(b, servers)
			eventually(b, "all tools are known", func() bool { return r.catalog.Snapshot().Len() == len(tools) })
			c := r.client(mcp.Version20251125, View{})
			var loaded, session int
			for b.Loop() {
				loaded, session = count(tools...), count(metaTools, c.Info().Instructions)
				entry := r.catalog.Snapshot().Servers()[size.servers/2].Tools[size.tools/2]
				for _, call := range []struct{ tool, arguments string }{
					{"list_mcp_servers", `{}`},
					{"search_tools", string(marshal(map[string]string{"query": entry.Summary(80)}))},
					{"get_tool_details", string(marshal(map[string]string{"server": entry.Name.Server, "tool": entry.Name.Tool}))},
				} {
					text, failed := callText(b, c, call.tool, call.arguments)
					if failed {
						b.Fatal(text)
					}
					session += count(call.tool, call.arguments, text)
				}
				session += count("execute_tool", string(marshal(map[string]any{"server": entry.Name.Server, "tool": entry.Name.Tool, "arguments": map[string]string{"a": "b"}})), "done")
			}
			b.ReportMetric(float64(loaded), "tokens-loaded")
			b.ReportMetric(float64(session), "tokens-session")
			b.ReportMetric(100*(1-float64(session)/float64(loaded)), "%saved")
		})
	}
}
