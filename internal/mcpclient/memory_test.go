package mcpclient

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// Only the body of a single result is read into lent memory: errors and the
// other messages of a batch outlive the call.
func TestLentMemoryHoldsResultsAlone(t *testing.T) {
	text := strings.Repeat("x", 100_000)
	for name, tt := range map[string]struct {
		answer string // %s is the id
		lent   bool
	}{
		"a result":          {`{"jsonrpc":"2.0","id":%s,"result":{"text":"` + text + `"}}`, true},
		"an error":          {`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"no","data":"` + text + `"}}`, false},
		"a batch":           {`[{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"` + text + `"}},{"jsonrpc":"2.0","id":%s,"result":{}}]`, false},
		"a wrong id":        {`{"jsonrpc":"2.0","id":9%s,"result":{"text":"` + text + `"}}`, false},
		"no message at all": {`{"id":%s,"text":"` + text + `"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				w.Header().Set("Content-Type", "application/json")
				answer := tt.answer
				if rawjson.FieldString(body, "method") == "server/discover" {
					answer = `{"jsonrpc":"2.0","id":%s,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"},"resultType":"complete"}}`
				}
				fmt.Fprintf(w, answer, rawjson.Field(body, "id"))
			}))
			defer srv.Close()
			c, err := Connect(t.Context(), NewHTTP(HTTPOptions{URL: srv.URL}), Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			m := new(tool.ResultMemory)
			_, err = c.Do(t.Context(), tool.Request{Method: "tools/call", Params: []byte(`{"name":"x"}`), Exchange: tool.Exchange{Memory: m}})
			if m.Lent() != tt.lent {
				t.Errorf("lent = %v (error %.100v)", m.Lent(), err)
			}
		})
	}
}
