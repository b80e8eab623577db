// Command faultserver is an MCP server on stdio that misbehaves when it is told
// to. It shares no code with the gateway: it reads and writes JSON lines.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string `json:"name"`
		Arguments struct {
			Text  string `json:"text"`
			Count int    `json:"count"`
		} `json:"arguments"`
		Meta struct {
			ProgressToken json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	} `json:"params"`
}

// tools are their names and input schemas.
var tools = [][2]string{
	{"echo", `{"type":"object"}`}, {"die", `{"type":"object"}`}, {"hang", `{"type":"object"}`}, {"garbage", `{"type":"object"}`},
	{"flood", `{"type":"object"}`}, {"fork", `{"type":"object"}`}, {"huge", `{"type":"object"}`}, {"stderr", `{"type":"object"}`},
	{"latin1", `{"type":"object"}`}, {"progress", `{"type":"object"}`}, {"fail", `{"type":"object"}`}, {"guarded", `{"type":"object"}`},
	{"anyof", ladder("anyOf", `{"required":["absent"]}`)}, {"allof", ladder("allOf", `{"type":"object"}`)},
	{"deep", strings.Repeat(`{"type":"object","properties":{"a":`, 300) + `{"type":"object"}` + strings.Repeat(`}}`, 300)},
}

// ladder is a schema that doubles its alternatives on each of 30 levels.
func ladder(keyword, last string) string {
	var b strings.Builder
	b.WriteString(`{"type":"object","$ref":"#/$defs/l0","$defs":{`)
	for i := range 30 {
		fmt.Fprintf(&b, `"l%d":{%q:[{"$ref":"#/$defs/l%d"},{"$ref":"#/$defs/l%d"}]},`, i, keyword, i+1, i+1)
	}
	return b.String() + `"l30":` + last + `}}`
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		switch m.Method {
		case "initialize":
			answer(m.ID, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{"subscribe":true}},"serverInfo":{"name":"faultserver","version":"1"}}`)
		case "tools/list":
			var list []string
			for _, t := range tools {
				list = append(list, fmt.Sprintf(`{"name":%q,"description":%q,"inputSchema":%s}`, t[0], "Does "+t[0], t[1]))
			}
			answer(m.ID, `{"tools":[`+strings.Join(list, ",")+`]}`)
		case "tools/call":
			go call(m)
		case "resources/list":
			answer(m.ID, `{"resources":[{"uri":"fault://a","name":"a"}]}`)
		case "ping", "resources/subscribe", "resources/unsubscribe":
			answer(m.ID, `{}`)
		default:
			if m.ID != nil {
				write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown method"}}`, m.ID))
			}
		}
	}
}

func call(m message) {
	args := m.Params.Arguments
	result := args.Text
	switch m.Params.Name {
	case "die":
		os.Exit(3)
	case "hang":
		return // no answer, and everything else goes on
	case "garbage":
		write("loading model...\n\x00\xff\xfe\n{\"jsonrpc\":\"2.0\",\"id\":\n[1,2\n{}\nnull\n\n" + strings.Repeat("{", 2000))
	case "flood":
		line := `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"` + strings.Repeat("x", 200) + `"}}`
		for range args.Count {
			write(line)
		}
	case "fork": // a grandchild that outlives its parent and holds its pipes
		c := exec.Command("sleep", args.Text)
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		if err := c.Start(); err != nil {
			result = err.Error()
		}
	case "huge":
		report(m)
		result = strings.Repeat("x", args.Count)
	case "stderr":
		for i := range args.Count {
			fmt.Fprintln(os.Stderr, "line", i, strings.Repeat("e", 500))
		}
	case "latin1":
		answer(m.ID, "{\"content\":[{\"type\":\"text\",\"text\":\"caf\xe9\"}]}")
		return
	case "progress": // for count milliseconds, where it was asked for; makes the file named by text
		if strings.HasPrefix(args.Text, "/") {
			if err := os.WriteFile(args.Text, nil, 0o600); err != nil {
				result = err.Error()
			}
		}
		for end := time.Now().Add(time.Duration(args.Count) * time.Millisecond); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			report(m)
		}
	case "fail", "guarded": // when count is 1; not before the file named by text exists
		if strings.HasPrefix(args.Text, "/") {
			waiting(args.Text + ".waiting")
		}
		for strings.HasPrefix(args.Text, "/") {
			if _, err := os.Stat(args.Text); err == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if args.Count == 1 {
			write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"failed as told"}}`, m.ID))
			return
		}
	}
	text, _ := json.Marshal(result)
	answer(m.ID, fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, text))
}

// report sends a progress notification if the caller asked for them.
func report(m message) {
	if m.Params.Meta.ProgressToken != nil {
		write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, m.Params.Meta.ProgressToken))
	}
}

func answer(id json.RawMessage, result string) {
	write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result))
}

// waiting adds a byte to a file: so many calls wait.
func waiting(file string) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = f.WriteString(".")
}

var out sync.Mutex

// write writes one line.
func write(line string) {
	out.Lock()
	defer out.Unlock()
	os.Stdout.WriteString(line + "\n")
}
