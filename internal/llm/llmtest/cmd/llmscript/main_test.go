package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestScriptIsServedUntilInputEnds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "script.json")
	if err := os.WriteFile(file, []byte(`{"default":{"text":"scripted"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	stdin, endInput := io.Pipe()
	out, stdout := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- run(context.Background(), []string{"-script", file, "-stdin"}, stdin, stdout) }()
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url = strings.TrimSpace(url)
	res, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(res.Body)
	res.Body.Close()
	if !strings.Contains(string(body), "scripted") {
		t.Errorf("answered %s", body)
	}
	res, err = http.Get(url + "/llmscript/requests")
	if err != nil {
		t.Fatal(err)
	}
	body, _ = io.ReadAll(res.Body)
	res.Body.Close()
	if !strings.Contains(string(body), `"Text":"hi"`) {
		t.Errorf("recorded %s", body)
	}
	endInput.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestInvalidArgumentsAreErrors(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.json")
	os.WriteFile(bad, []byte(`{`), 0o600)
	for _, args := range [][]string{{"-nonsense"}, {"-script", "/does/not/exist"}, {"-script", bad}, {"-addr", "256.0.0.1:x"}} {
		if err := run(t.Context(), args, strings.NewReader(""), io.Discard); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}
