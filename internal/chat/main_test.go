package chat

import (
	"os"
	"testing"

	"junctor/internal/toolsapi/openapitest"
)

func TestMain(m *testing.M) { os.Exit(openapitest.Main(m, "../toolsapi/openapi.json")) }
