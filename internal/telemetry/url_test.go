package telemetry

import "testing"

func TestMaskURL(t *testing.T) {
	for address, want := range map[string]string{
		"https://mcp.example/v1/sse?api_key=hidden#x":                                       "https://mcp.example/v1/sse",
		"https://u:p@mcp.example/mcp":                                                       "https://mcp.example/mcp",
		"https://mcp.example/api/mcp/s/NTQ4YzM2ZGYtZjA2Zi00OTJhLWIxZTgtMTk0/mcp":            "https://mcp.example/api/mcp/s/[redacted]/mcp",
		"https://mcp.example:8443/server/3f1c2c9a-8a5e-4b8c-9d21-5b7d0f2f6f11":              "https://mcp.example:8443/server/[redacted]",
		"https://mcp.example/mcp/readonly/organizations-and-repositories/2025-11-25/v2/all": "https://mcp.example/mcp/readonly/organizations-and-repositories/2025-11-25/v2/all",
		"https://mcp.example": "https://mcp.example",
		"":                    "",
		"%zz":                 "",
	} {
		if got := MaskURL(address); got != want {
			t.Errorf("MaskURL(%q) = %q, want %q", address, got, want)
		}
	}
}
