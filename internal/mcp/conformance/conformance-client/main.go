// Command conformance-client is the program that the conformance suite starts
// when the wire is examined without the rest of Junctor.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"junctor/internal/mcp/conformance"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: conformance-client URL, with MCP_CONFORMANCE_SCENARIO set")
		os.Exit(2)
	}
	err := conformance.Run(context.Background(), conformance.Options{
		Scenario: os.Getenv("MCP_CONFORMANCE_SCENARIO"),
		URL:      os.Args[1],
		Context:  json.RawMessage(os.Getenv("MCP_CONFORMANCE_CONTEXT")),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance-client:", err)
		os.Exit(1)
	}
}
