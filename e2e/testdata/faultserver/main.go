// Command faultserver is an MCP server on stdio that misbehaves when it is told
// to. It shares no code with the gateway: it reads and writes JSON lines.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
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
	} `json:"params"`
}

var tools = []string{"echo", "die", "hang", "garbage", "flood", "fork", "huge", "stderr"}

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
			answer(m.ID, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"faultserver","version":"1"}}`)
		case "tools/list":
			var list []string
			for _, name := range tools {
				list = append(list, fmt.Sprintf(`{"name":%q,"description":%q,"inputSchema":{"type":"object"}}`, name, "Does "+name))
			}
			answer(m.ID, `{"tools":[`+strings.Join(list, ",")+`]}`)
		case "tools/call":
			call(m)
		case "ping":
			answer(m.ID, `{}`)
		default:
			if m.ID != nil {
				fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown method"}}`+"\n", m.ID)
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
		os.Stdout.WriteString("loading model...\n\x00\xff\xfe\n{\"jsonrpc\":\"2.0\",\"id\":\n[1,2\n{}\nnull\n\n" + strings.Repeat("{", 2000) + "\n")
	case "flood":
		line := []byte(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"` + strings.Repeat("x", 200) + `"}}` + "\n")
		for range args.Count {
			os.Stdout.Write(line)
		}
	case "fork": // a grandchild that outlives its parent and holds its pipes
		c := exec.Command("sleep", args.Text)
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		if err := c.Start(); err != nil {
			result = err.Error()
		}
	case "huge":
		result = strings.Repeat("x", args.Count)
	case "stderr":
		for i := range args.Count {
			fmt.Fprintln(os.Stderr, "line", i, strings.Repeat("e", 500))
		}
	}
	text, _ := json.Marshal(result)
	answer(m.ID, fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, bytes.TrimSpace(text)))
}

func answer(id json.RawMessage, result string) {
	fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, result)
}
