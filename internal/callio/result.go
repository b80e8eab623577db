package callio

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"os"
	"path/filepath"
	"strings"

	"junctor/internal/control"
	"junctor/internal/mcp"
	"junctor/internal/terminal"
)

// Follow reads the stream of a call: it shows progress and questions on a
// terminal and returns the last message. answer sends an answer to the gateway.
func Follow(ctx context.Context, c *terminal.Terminal, body io.Reader, answer func(ctx context.Context, call, input string, answer json.RawMessage) error) (control.CallAnswer, error) {
	var last control.CallAnswer
	_, isTerminal := c.Width(c.Err)
	isTerminal = isTerminal && !c.Quiet
	q := newQuestions(c, answer)
	defer q.stop()
	lines := bufio.NewReader(body)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			last = control.CallAnswer{}
			if err := json.Unmarshal(line, &last); err != nil {
				return last, fmt.Errorf("read the gateway's response: %w", err)
			}
			switch {
			case last.Type == "question" && last.Input != nil:
				q.ask(ctx, last.Call, *last.Input)
			case last.Type == "answered" && last.Input != nil:
				q.withdraw(last.Input.ID)
			case last.Type == "notification" && isTerminal && !q.open():
				showProgress(c, last)
			}
		}
		if err == io.EOF {
			break
		} else if err != nil {
			return last, err
		}
	}
	if isTerminal {
		fmt.Fprint(c.Err, "\r\x1b[K")
	}
	switch last.Type {
	case "error":
		return last, errors.New(last.Error.Message)
	case "result":
		return last, nil
	}
	return last, errors.New("the connection to the gateway was lost before the response was complete")
}

func showProgress(c *terminal.Terminal, n control.CallAnswer) {
	var p struct {
		Progress float64 `json:"progress"`
		Total    float64 `json:"total"`
		Message  string  `json:"message"`
		Data     any     `json:"data"`
	}
	if json.Unmarshal(n.Params, &p) != nil {
		return
	}
	switch {
	case n.Method == mcp.MethodLogMessage:
		fmt.Fprintf(c.Err, "\r\x1b[K%s\n", c.Paint(c.Err, terminal.Dim, terminal.OneLine(fmt.Sprint(p.Data))))
	case p.Total > 0:
		filled := int(20 * min(p.Progress/p.Total, 1))
		fmt.Fprintf(c.Err, "\r\x1b[K%s%s %.0f/%.0f %s", strings.Repeat("━", filled), strings.Repeat("╌", 20-filled), p.Progress, p.Total, terminal.OneLine(p.Message))
	default:
		fmt.Fprintf(c.Err, "\r\x1b[K%.0f %s", p.Progress, terminal.OneLine(p.Message))
	}
}

// block is one content block of a tool's result.
type block struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Data     string `json:"data"`
	MimeType string `json:"mimeType"`
	URI      string `json:"uri"`
	Name     string `json:"name"`
	Resource struct {
		URI      string `json:"uri"`
		MimeType string `json:"mimeType"`
		Text     string `json:"text"`
		Blob     string `json:"blob"`
	} `json:"resource"`
}

// Print prints the result of a tool: its texts to Out, or to Err if it is an
// error. Images and other files are saved in folder.
func Print(c *terminal.Terminal, tool string, a control.CallAnswer, folder string, asJSON bool) error {
	if asJSON {
		return c.PrintJSON(a.Result)
	}
	var result struct {
		Content    []json.RawMessage `json:"content"`
		Structured json.RawMessage   `json:"structuredContent"`
	}
	if json.Unmarshal(a.Result, &result) != nil {
		return errors.New("the tool's result is not a valid MCP result; use --json to see it")
	}
	out := c.Out
	if a.IsError {
		out = c.Err
	}
	files := 0
	for _, raw := range result.Content {
		var b block
		if json.Unmarshal(raw, &b) != nil {
			b = block{} // an unknown form, which is printed as JSON
		}
		data, kind := b.Data, b.MimeType
		if b.Type == "resource" {
			data, kind = b.Resource.Blob, b.Resource.MimeType
		}
		switch {
		case b.Type == "text":
			fmt.Fprintln(out, c.Text(out, b.Text))
		case b.Type == "resource" && b.Resource.Blob == "":
			fmt.Fprintln(out, c.Text(out, b.Resource.Text))
		case data != "":
			files++
			path, err := saveFile(folder, tool, files, kind, data)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "%s saved as %s\n", b.Type, path)
		case b.Type == "resource_link":
			fmt.Fprintf(out, "%s %s\n", terminal.OneLine(b.Name), terminal.OneLine(b.URI))
		default:
			fmt.Fprintln(out, c.Text(out, string(raw)))
		}
	}
	if len(result.Content) == 0 && len(result.Structured) > 0 {
		return c.PrintJSON(result.Structured)
	}
	return nil
}

// saveFile writes an image, a sound or other data to a new file in folder.
func saveFile(folder, tool string, n int, kind, data string) (string, error) {
	content, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return "", fmt.Errorf("the tool's %s is not base64: %w", kind, err)
	}
	ext := ".bin"
	if known, _ := mime.ExtensionsByType(kind); len(known) > 0 {
		ext = known[len(known)-1]
	}
	switch kind { // common types, independent of the MIME tables of this machine
	case "image/png":
		ext = ".png"
	case "image/jpeg":
		ext = ".jpg"
	case "audio/wav":
		ext = ".wav"
	}
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, tool)
	for ; ; n++ {
		path := filepath.Join(folder, fmt.Sprintf("%s-%d%s", safe, n, ext))
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("save the tool's file: %w", err)
		}
		_, err = f.Write(content)
		return path, errors.Join(err, f.Close())
	}
}
