package mcp

import (
	"encoding/json"
	"strings"
	"testing"
)

func BenchmarkResultIsError(b *testing.B) {
	result := json.RawMessage(`{"content":[{"type":"text","text":"` + strings.Repeat("The quick brown fox. ", 12<<10) + `"}],"isError":false}`)
	b.SetBytes(int64(len(result)))
	for b.Loop() {
		if ResultIsError(result) {
			b.Fatal("an error")
		}
	}
}
