package clients

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
)

// TestConnectionsAtOnce checks that of several changes planned for the same
// content of a file only one is applied.
func TestConnectionsAtOnce(t *testing.T) {
	c, err := Lookup("cursor")
	if err != nil {
		t.Fatal(err)
	}
	for name, before := range map[string]string{"a file": `{"mcpServers":{}}`, "no file yet": ""} {
		m := machine(t.TempDir())
		path := m.home(".cursor", "mcp.json")
		if before != "" {
			write(t, path, before)
		}
		changes := make([]Change, 16)
		for i := range changes {
			if changes[i], err = c.Connect(m, Connection{Name: fmt.Sprint("j", i), Command: "junctor"}); err != nil {
				t.Fatal(err)
			}
		}
		made := make([]bool, len(changes))
		var wg sync.WaitGroup
		for i, change := range changes {
			wg.Go(func() { made[i] = change.Apply() == nil })
		}
		wg.Wait()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		for i := range made {
			if made[i] {
				count++
			}
			if made[i] != strings.Contains(string(text), fmt.Sprintf(`"j%d"`, i)) {
				t.Errorf("%s: change %d reported as made: %v, the file: %s", name, i, made[i], text)
			}
		}
		if count != 1 {
			t.Errorf("%s: %d changes were made", name, count)
		}
	}
}
