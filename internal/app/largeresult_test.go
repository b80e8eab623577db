package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/results"
	"junctor/internal/upstream/upstreamtest"
)

// The buffers of large results are reused. No response, record, trace or
// cached result may show one result in place of another. With the race
// detector, free buffers are overwritten.
func TestLargeResultsStayApart(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]string{
		"recorded whole": `{"maxRecordBytes":2000000}`,
		"truncated":      `{"maxRecordBytes":2000000,"maxResultBytes":68000}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			far := upstreamtest.Listen(t, upstreamtest.Script{})
			r := start(t, fmt.Sprintf(`{"mcpServers":{"far":%s},"limits":%s}`, entry(t, far.Config("far")), limits), t.TempDir())
			var wg sync.WaitGroup
			for caller := range 3 {
				wg.Go(func() {
					for n := range 3 {
						mark := fmt.Sprintf("c%dn%d.", caller, n)
						text := strings.Repeat(mark, (70_000+n*4_000)/len(mark))
						result, id := callFar(t, r, text)
						if got := results.Text(results.Value(result)); name == "recorded whole" && got != `{"text":"`+text+`"}` || !strings.HasPrefix(got, `{"text":"`+mark+mark) {
							t.Errorf("%s: the response has %.40q…", mark, got)
						}
						code, record := r.ask("GET", "/api/calls/"+id, "")
						if code != http.StatusOK || !strings.Contains(record, mark+mark) || strings.Contains(record, "###") {
							t.Errorf("%s: the record is %d %.200s…", mark, code, record)
						}
					}
				})
			}
			wg.Wait()
			if code, trace := r.ask("GET", "/api/mcptrace", ""); code != http.StatusOK || !strings.Contains(trace, "c0n0.c0n0.") || strings.Contains(trace, "###") {
				t.Errorf("the trace is %d %.200s…", code, trace)
			}
		})
	}
}

// callFar calls the tool echo of the server far and returns the result and the
// id of the request.
func callFar(t *testing.T, r *fixture, text string) (result json.RawMessage, id string) {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":%q},"_meta":{%q:%q,%q:{}}}}`,
		text, mcp.MetaProtocolVersion, mcp.Version20260728, mcp.MetaClientCapabilities)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"/mcp/far", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"X-API-Key": "admin-key-for-the-tests", "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": mcp.Version20260728, "Mcp-Method": "tools/call", "Mcp-Name": "echo",
	} {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return nil, ""
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("%s %v %.200s", res.Status, err, answer)
	}
	return rawjson.Field(answer, "result"), res.Header.Get("X-Request-Id")
}
