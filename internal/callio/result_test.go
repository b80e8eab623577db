package callio

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"junctor/internal/control"
	"junctor/internal/terminal"
)

// TestPrintResult: content is printed by type. Files are saved in the folder
// and never replace existing ones.
func TestPrintResult(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "fs____x-1.png"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	c := &terminal.Terminal{Out: &out, Err: &errs, Width: func(io.Writer) (int, bool) { return 0, false }}
	show := func(failed bool, result string) error {
		out.Reset()
		errs.Reset()
		return Print(c, "fs:../x", control.CallAnswer{Result: json.RawMessage(result), IsError: failed}, dir, false)
	}
	for name, tt := range map[string]struct{ result, want string }{
		"text":       {`{"content":[{"type":"text","text":"a\nb"}]}`, "a\nb\n"},
		"resource":   {`{"content":[{"type":"resource","resource":{"uri":"x:y","text":"inside"}}]}`, "inside\n"},
		"link":       {`{"content":[{"type":"resource_link","name":"n","uri":"x:y"}]}`, "n x:y\n"},
		"of later":   {`{"content":[{"type":"hologram","beams":3}]}`, `{"type":"hologram","beams":3}` + "\n"},
		"structured": {`{"content":[],"structuredContent":{"n":12345678901234567890}}`, "{\n  \"n\": 12345678901234567890\n}\n"},
		"image":      {`{"content":[{"type":"image","mimeType":"image/png","data":"aGk="}]}`, "image saved as " + filepath.Join(dir, "fs____x-2.png") + "\n"},
		"sound":      {`{"content":[{"type":"audio","mimeType":"audio/wav","data":"aGk="}]}`, "audio saved as " + filepath.Join(dir, "fs____x-1.wav") + "\n"},
		"photograph": {`{"content":[{"type":"image","mimeType":"image/jpeg","data":"aGk="}]}`, "image saved as " + filepath.Join(dir, "fs____x-1.jpg") + "\n"},
		"any bytes":  {`{"content":[{"type":"resource","resource":{"uri":"x:y","mimeType":"no/such","blob":"aGk="}}]}`, "resource saved as " + filepath.Join(dir, "fs____x-1.bin") + "\n"},
	} {
		if err := show(false, tt.result); err != nil || out.String() != tt.want {
			t.Errorf("%s: %q, %v; want %q", name, out.String(), err, tt.want)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "fs____x-1.png")); err != nil || string(text) != "mine" {
		t.Errorf("a file was written over: %q, %v", text, err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "fs____x-2.png")); err != nil || string(text) != "hi" {
		t.Errorf("the image is %q, %v", text, err)
	}
	err := show(true, `{"content":[{"type":"text","text":"it broke"}]}`)
	if err != nil || out.Len() != 0 || errs.String() != "it broke\n" {
		t.Errorf("a tool that failed: %q, %q, %v", out.String(), errs.String(), err)
	}
	for name, result := range map[string]string{
		"no result": `7`, "no base64": `{"content":[{"type":"image","mimeType":"image/png","data":"*"}]}`,
	} {
		if err := show(false, result); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	dir = filepath.Join(dir, "nowhere")
	if err := show(false, `{"content":[{"type":"image","mimeType":"image/png","data":"aGk="}]}`); err == nil {
		t.Error("saved in a folder that is not there")
	}
}

func TestShowProgress(t *testing.T) {
	var errs bytes.Buffer
	c := &terminal.Terminal{Err: &errs, Width: func(io.Writer) (int, bool) { return 0, false }}
	for params, want := range map[string]string{
		`{"progress":5,"total":10,"message":"half"}`: strings.Repeat("━", 10) + strings.Repeat("╌", 10) + " 5/10 half",
		`{"progress":50,"total":10}`:                 strings.Repeat("━", 20) + " 50/10 ",
		`{"progress":3,"message":"a\u001b[2Jb\nc"}`:  "3 a[2Jb c",
		`7`: "",
	} {
		errs.Reset()
		showProgress(c, control.CallAnswer{Method: "notifications/progress", Params: json.RawMessage(params)})
		if got := strings.TrimPrefix(errs.String(), "\r\x1b[K"); got != want {
			t.Errorf("%s: %q, want %q", params, got, want)
		}
	}
	errs.Reset()
	showProgress(c, control.CallAnswer{Method: "notifications/message", Params: json.RawMessage(`{"data":"said"}`)})
	if !strings.Contains(errs.String(), "said\n") {
		t.Errorf("%q", errs.String())
	}
}
