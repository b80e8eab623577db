package discovery

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"junctor/internal/codemode"
	"junctor/internal/mcp"
	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
)

// runCode runs a script and returns its return value and its log as text.
func (v *metaView) runCode(ctx context.Context, r *mcpserver.Request, args map[string]json.RawMessage) (json.RawMessage, error) {
	out, err := v.face.opts.Scripts.Run(ctx, codemode.Request{
		Code: rawjson.FieldString(args["code"]), Face: "discovery", Caller: r.Caller, Session: sessionID(r), Meta: r.Meta(), Exchange: r.Exchange,
		Progress: scriptProgress(r),
	})
	if err != nil {
		return nil, err
	}
	returned := out.Text
	if returned == "null" && len(out.Log) == 0 {
		returned = "null (the script returned nothing; end it with return)"
	}
	blocks := []json.RawMessage{textBlock(returned)}
	if len(out.Log) > 0 {
		log := "console.log:\n" + strings.Join(out.Log, "\n")
		if out.Dropped > 0 {
			log += fmt.Sprintf("\n(%d lines more)", out.Dropped)
		}
		blocks = append(blocks, textBlock(log))
	}
	return contentResult(blocks...), nil
}

// scriptProgress returns a function that sends a progress notification for
// each completed call of a script; nil if the caller did not ask for progress.
func scriptProgress(r *mcpserver.Request) func(codemode.Call) {
	token := rawjson.Field(r.Meta(), "progressToken")
	if token == nil || r.Exchange.Notify == nil {
		return nil
	}
	ended := make(chan int, 1)
	ended <- 0
	return func(c codemode.Call) {
		if !c.Ended {
			return
		}
		n := <-ended + 1
		r.Exchange.Notify(mcp.MethodProgress, marshal(map[string]any{"progressToken": token, "progress": n, "message": c.Tool}))
		ended <- n
	}
}
