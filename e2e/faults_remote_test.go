package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// remoteServer is an MCP server over HTTP for the rows of TestFaultReports. It
// shares no code with the gateway and records the calls that it receives.
type remoteServer struct {
	*httptest.Server
	name string

	mu      sync.Mutex
	session int
	calls   map[string][]sentCall // by tool
}

// sentCall is a tools/call as the server received it.
type sentCall struct {
	header http.Header
	meta   map[string]any
}

func newRemoteServer(t *testing.T, name string) *remoteServer {
	r := &remoteServer{name: name, calls: map[string][]sentCall{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// sent returns the calls of a tool received so far.
func (r *remoteServer) sent(tool string) []sentCall {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls[tool]
}

func (r *remoteServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Name string         `json:"name"`
			URI  string         `json:"uri"`
			Meta map[string]any `json:"_meta"`
		} `json:"params"`
	}
	if req.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if err := json.NewDecoder(req.Body).Decode(&m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if id := req.Header.Get("Mcp-Session-Id"); id != "" && id != fmt.Sprint("s", r.session) {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	answer := func(result string) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}
	switch m.Method {
	case "initialize":
		r.session++
		w.Header().Set("Mcp-Session-Id", fmt.Sprint("s", r.session))
		answer(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"remote","version":"1"}}`)
	case "tools/list":
		var list []string
		for _, name := range []string{"show", "refuse", "lose", "fails", "pictures", "both"} {
			list = append(list, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://x"}}}`, name))
		}
		answer(`{"tools":[` + strings.Join(list, ",") + `]}`)
	case "resources/list":
		answer(`{"resources":[{"uri":"ui://x","name":"x"}]}`)
	case "resources/read":
		answer(fmt.Sprintf(`{"contents":[{"uri":%q,"text":"the interface of %s"}]}`, m.Params.URI, r.name))
	case "ping":
		answer(`{}`)
	case "tools/call":
		r.calls[m.Params.Name] = append(r.calls[m.Params.Name], sentCall{req.Header, m.Params.Meta})
		r.call(w, m.Params.Name, m.ID, answer)
	default:
		if m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown method"}}`, m.ID)
	}
}

func (r *remoteServer) call(w http.ResponseWriter, name string, id json.RawMessage, answer func(string)) {
	switch name {
	case "refuse":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32001,"message":"the session of your bank has ended"}}`, id)
	case "lose": // loses the session, once
		if len(r.calls[name]) == 1 {
			r.session++
			w.WriteHeader(http.StatusNotFound)
			return
		}
		answer(`{"content":[{"type":"text","text":"found"}]}`)
	case "fails":
		answer(`{"content":[{"type":"text","text":"no"}],"isError":true}`)
	case "pictures":
		const image = `{"type":"image","mimeType":"image/png","data":"iVBORw0KGgo="}`
		answer(`{"content":[{"type":"text","text":"first"},` + image + `,{"type":"text","text":"second"},` + image + `]}`)
	case "both":
		answer(`{"content":[{"type":"text","text":"{\"n\":4711}"}],"structuredContent":{"n":4711}}`)
	default:
		answer(`{"content":[{"type":"text","text":"ok"}]}`)
	}
}
