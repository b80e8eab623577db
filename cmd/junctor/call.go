package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"junctor/internal/apiclient"
	"junctor/internal/control"
	"junctor/internal/rawjson"
	"junctor/internal/terminal"
)

func (c *cli) toolsCall() *cobra.Command {
	var (
		arguments string
		timeout   time.Duration
		output    string
		asJSON    bool
	)
	cmd := &cobra.Command{
		Use: "call TOOL [KEY=VALUE…]", Short: "Call a tool", Args: minArgs(1), ValidArgsFunction: c.completeTool,
		Long: `Call a tool. Arguments are given as key=value, where the tool's schema says what
the value is; as key:=JSON; as one JSON object, in their place or with --args;
or as JSON on stdin with --args -. Texts are printed, images and other files are saved.`,
		Example: `  junctor tools call junctor:calculate expression='2^64'
  junctor tools call fs:read_file '{"path": "README.md"}'
  echo '{"path": "README.md"}' | junctor tools call fs:read_file --args -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			g, d, err := c.openAt(cmd, args[0])
			if err != nil {
				return err
			}
			defer g.close()
			raw, err := c.gather(d.InputSchema, arguments, args[1:])
			if err != nil {
				return usageError{err}
			}
			in := control.CallRequest{Server: d.Server, Tool: d.Tool.Tool, Arguments: raw, TimeoutMs: int(timeout.Milliseconds()), Approved: true}
			if d.Approval == "ask" {
				if in.Approved, err = c.approve(d.Name, raw); err != nil {
					return err
				}
			}
			g.run()
			var last control.CallAnswer
			err = g.Post(cmd.Context(), "/api/call", "application/x-ndjson", in, func(body io.Reader) error {
				last, err = c.follow(body)
				return err
			})
			if refused, ok := errors.AsType[*apiclient.Error](err); ok && len(refused.Schema) > 0 {
				return fmt.Errorf("%w\nthe tool takes:\n%s", err, indentJSON(refused.Schema))
			}
			if err != nil {
				return err
			}
			return c.printResult(d.Tool.Tool, last, output, asJSON)
		},
	}
	cmd.Flags().StringVarP(&arguments, "args", "a", "", "all arguments as one JSON object, or - for stdin")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "idle timeout: how long the tool may take without reporting progress")
	cmd.Flags().StringVarP(&output, "output", "o", ".", "the folder for images and other files")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return cmd
}

// approve asks the person at the terminal, as the tool's rule wants.
func (c *cli) approve(name string, arguments json.RawMessage) (bool, error) {
	if !c.IsInput {
		return false, nil // the gateway says how to allow it
	}
	return c.Confirm(fmt.Sprintf("Run %s with %s? [y/N] ", name, terminal.OneLine(string(arguments))))
}

// gather makes one JSON object of all the ways to give arguments.
func (c *cli) gather(schema json.RawMessage, whole string, pairs []string) (json.RawMessage, error) {
	if whole == "" && len(pairs) > 0 && strings.HasPrefix(strings.TrimSpace(pairs[0]), "{") {
		whole, pairs = pairs[0], pairs[1:]
	}
	raw := json.RawMessage(whole)
	if whole == "-" {
		data, err := io.ReadAll(io.LimitReader(c.In, 16<<20))
		if err != nil {
			return nil, fmt.Errorf("read the arguments from stdin: %w", err)
		}
		raw = data
	}
	if len(strings.TrimSpace(string(raw))) == 0 {
		raw = json.RawMessage(`{}`)
	}
	if trimmed := strings.TrimSpace(string(raw)); !json.Valid(raw) || trimmed[0] != '{' {
		return nil, errors.New("the arguments are not a JSON object")
	}
	for _, pair := range pairs {
		key, value, err := parsePair(schema, pair)
		if err != nil {
			return nil, err
		}
		raw = rawjson.SetField(raw, value, key)
	}
	return raw, nil
}

// parsePair reads key=value by what the schema says of the key, or key:=JSON.
func parsePair(schema json.RawMessage, pair string) (string, json.RawMessage, error) {
	key, value, ok := strings.Cut(pair, "=")
	if !ok || key == "" {
		return "", nil, fmt.Errorf("%q is not key=value; give all arguments as one JSON object with --args", pair)
	}
	if name, isJSON := strings.CutSuffix(key, ":"); isJSON {
		if !json.Valid([]byte(value)) {
			return "", nil, fmt.Errorf("the value of %s is not JSON", name)
		}
		return name, json.RawMessage(value), nil
	}
	if takesText(rawjson.Field(schema, "properties", key)) || !json.Valid([]byte(value)) {
		quoted, err := json.Marshal(value)
		return key, quoted, err
	}
	return key, json.RawMessage(value), nil
}

// takesText reports whether a parameter may be a string, so that 007 stays
// what was typed. What the schema does not say is a string unless it looks
// like something else.
func takesText(property json.RawMessage) bool {
	var p struct {
		Type any   `json:"type"`
		Enum []any `json:"enum"`
	}
	if json.Unmarshal(property, &p) != nil {
		return false
	}
	switch t := p.Type.(type) {
	case string:
		return t == "string"
	case []any:
		for _, one := range t {
			if one == "string" {
				return true
			}
		}
		return false
	}
	for _, e := range p.Enum {
		if _, ok := e.(string); ok {
			return true
		}
	}
	return false
}

// follow shows progress on a terminal and returns the last piece.
func (c *cli) follow(body io.Reader) (control.CallAnswer, error) {
	var last control.CallAnswer
	_, isTerminal := c.Width(c.Err)
	lines := bufio.NewReader(body)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			last = control.CallAnswer{}
			if err := json.Unmarshal(line, &last); err != nil {
				return last, fmt.Errorf("read the gateway's response: %w", err)
			}
			if last.Type == "notification" && isTerminal && !c.Quiet {
				c.showProgress(last)
			}
		}
		if err == io.EOF {
			break
		} else if err != nil {
			return last, err
		}
	}
	if isTerminal && !c.Quiet {
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

func (c *cli) showProgress(n control.CallAnswer) {
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
	case n.Method == "notifications/message":
		fmt.Fprintf(c.Err, "\r\x1b[K%s\n", c.Paint(c.Err, terminal.Dim, terminal.OneLine(fmt.Sprint(p.Data))))
	case p.Total > 0:
		filled := int(20 * min(p.Progress/p.Total, 1))
		fmt.Fprintf(c.Err, "\r\x1b[K%s%s %.0f/%.0f %s", strings.Repeat("━", filled), strings.Repeat("╌", 20-filled), p.Progress, p.Total, terminal.OneLine(p.Message))
	default:
		fmt.Fprintf(c.Err, "\r\x1b[K%.0f %s", p.Progress, terminal.OneLine(p.Message))
	}
}

// block is one piece of a tool's result.
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

func (c *cli) printResult(tool string, a control.CallAnswer, folder string, asJSON bool) error {
	failed := func() error {
		if a.IsError {
			return silentError{errors.New("the tool failed")}
		}
		return nil
	}
	if asJSON {
		if err := c.PrintJSON(a.Result); err != nil {
			return err
		}
		return failed()
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
			b = block{} // of a form that is not known: shown as it came
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
		if err := c.PrintJSON(result.Structured); err != nil {
			return err
		}
	}
	return failed()
}

// saveFile writes an image, a sound or any other bytes beside the caller,
// under a name that is not taken.
func saveFile(folder, tool string, n int, kind, data string) (string, error) {
	content, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return "", fmt.Errorf("the tool's %s is not base64: %w", kind, err)
	}
	ext := ".bin"
	if known, _ := mime.ExtensionsByType(kind); len(known) > 0 {
		ext = known[len(known)-1]
	}
	switch kind { // the usual ones, whatever this machine's tables say
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
