package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func benchMessage(size int) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":42,"result":{"content":[{"type":"text","text":%q}],"isError":false}}`, strings.Repeat("lorem ipsum ", size/12))
}

func BenchmarkDecode(b *testing.B) {
	for _, size := range []int{100, 10_000, 1_000_000} {
		data := benchMessage(size)
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Decode(data, Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprint(size, "/encoding-json"), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				var m struct {
					ID     json.RawMessage `json:"id"`
					Result json.RawMessage `json:"result"`
				}
				if err := json.Unmarshal(data, &m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	m, err := Decode(benchMessage(10_000), Limits{})
	if err != nil {
		b.Fatal(err)
	}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendMessage(buf[:0], &m)
	}
}
