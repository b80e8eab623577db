package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// nginx starts an nginx with servers on sockets in the home folder, and returns
// a client for each. The values are the directives of their only location.
func (h *homeFolder) nginx(servers map[string]string) map[string]*http.Client {
	h.t.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/nginx")
	}
	if err != nil {
		unmet(h.t, "nginx is missing; run make setup")
	}
	text := "daemon off; master_process off; pid nginx.pid; error_log stderr; events {}\nhttp { access_log off;"
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		text += fmt.Sprintf(" %s_temp_path %s;", kind, filepath.Join(h.dir, "nginx-"+kind))
	}
	clients := map[string]*http.Client{}
	for name, directives := range servers {
		socket := filepath.Join(h.dir, name+".sock")
		text += fmt.Sprintf("\nserver { listen unix:%s; location / { %s } }", socket, directives)
		transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}}
		h.t.Cleanup(transport.CloseIdleConnections)
		clients[name] = &http.Client{Transport: transport}
	}
	h.write("nginx.conf", text+"\n}\n")
	log := &lines{}
	cmd := exec.Command(program, "-p", h.dir, "-e", "stderr", "-c", filepath.Join(h.dir, "nginx.conf"))
	cmd.Env, cmd.Stdout, cmd.Stderr = h.env(), writerFunc(log.add), writerFunc(log.add)
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	h.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	for name := range servers {
		eventually(h.t, "nginx listens", func() bool {
			select {
			case err := <-ended:
				ended <- err
				h.t.Fatalf("nginx ended: %v\n%s", err, log)
			default:
			}
			conn, err := net.Dial("unix", filepath.Join(h.dir, name+".sock"))
			if err == nil {
				_ = conn.Close()
			}
			return err == nil
		})
	}
	return clients
}

// writerFunc is an io.Writer that calls a function.
type writerFunc func(string)

func (f writerFunc) Write(p []byte) (int, error) {
	f(string(p))
	return len(p), nil
}

// TestBehindNginx: a gateway on open loopback cannot recognize a proxy that
// adds no header, but no request through it gets administrator's rights.
// Requests of a proxy that adds a header are refused with the setting that is
// needed.
func TestBehindNginx(t *testing.T) {
	t.Parallel()
	h := newHome(t, `{"mcpServers":{}}`)
	gw := h.serve()
	here := strings.TrimPrefix(gw.url, "http://")
	proxies := h.nginx(map[string]string{
		"bare":      fmt.Sprintf("proxy_pass %s;", gw.url),
		"forwarded": fmt.Sprintf("proxy_pass %s; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;", gw.url),
		"host":      fmt.Sprintf("proxy_pass %s; proxy_set_header Host $http_host;", gw.url),
	})
	send := func(proxy, method, path, body string, header ...string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(ctxFor(t), method, "http://gateway.example"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+1 < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		if host := req.Header.Get("Host"); host != "" {
			req.Host = host
		}
		resp, err := proxies[proxy].Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}

	ran := filepath.Join(h.dir, "ran")
	attacks := [][]string{
		nil,
		{"Sec-Fetch-Site", "same-origin"},
		{"Sec-Fetch-Site", "none"},
		{"Origin", gw.url},
		{"Origin", gw.url, "Sec-Fetch-Site", "same-origin", "Host", here},
		{"Origin", gw.url, "Referer", gw.url + "/", "Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors", "X-Requested-With", "XMLHttpRequest"},
		{"Origin", "http://gateway.example", "Sec-Fetch-Site", "same-origin"},
		{"Host", here},
		{"Host", "localhost"},
		{"X-Forwarded-For", "127.0.0.1"},
		{"X-Forwarded-Host", here, "X-Forwarded-Proto", "https"},
		{"X-Real-Ip", "127.0.0.1"},
		{"Forwarded", "for=127.0.0.1;host=localhost"},
		{"Authorization", "Bearer local"},
		{"X-Api-Key", "local"},
		{"X-Junctor-Session", "local"},
		{"Cookie", "junctor_session=local; __Host-junctor_session=local"},
	}
	for _, proxy := range []string{"bare", "host"} {
		for _, header := range attacks {
			for _, request := range [][3]string{
				{"POST", "/api/servers", fmt.Sprintf(`{"name":"evil","command":"touch","args":[%q]}`, ran)},
				{"POST", "/api/keys", `{"name":"evil","admin":true}`},
				{"GET", "/api/config", ""},
			} {
				status, body := send(proxy, request[0], request[1], request[2], append([]string{"Content-Type", "application/json"}, header...)...)
				if status != http.StatusUnauthorized && status != http.StatusForbidden {
					t.Errorf("%s: %s %s with %q: %d %s", proxy, request[0], request[1], header, status, body)
				}
			}
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a command was run")
	}
	for _, path := range []string{"/", "/tools/openai", "/api/status", "/health"} {
		status, body := send("forwarded", "GET", path, "")
		if status != http.StatusForbidden || !strings.Contains(body, "auth.loopback") || !strings.Contains(body, "auth.trustedProxies") {
			t.Errorf("forwarded: GET %s: %d %s", path, status, body)
		}
	}
	// The proxies work: what any local program may see is served.
	if status, body := send("bare", "GET", "/tools/openai", ""); status != http.StatusOK {
		t.Errorf("bare: %d %s", status, body)
	}
}
