package script

import (
	"flag"
	"os"
	"testing"
)

// TestMain runs only TestEngineIsBuilt if the engine is missing.
func TestMain(m *testing.M) {
	if !Built() {
		flag.Parse()
		if err := flag.Set("test.run", "^TestEngineIsBuilt$"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

func TestEngineIsBuilt(t *testing.T) {
	if Built() {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("the script engine is missing; run make engine")
	}
	t.Skip("needs npm packages: run make engine")
}
