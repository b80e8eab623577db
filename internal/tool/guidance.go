package tool

// Guidance is text for a model about how to use the tools of a server.
type Guidance struct {
	Text   string
	Source GuidanceSource
}

// GuidanceSource is the source of guidance.
type GuidanceSource string

// The sources, best first. The source is empty for guidance that was stored by
// a version that did not record it.
const (
	FromPrompt       GuidanceSource = "prompt"       // the server's prompt tool-descriptions
	FromInstructions GuidanceSource = "instructions" // the server's instructions
	Generated        GuidanceSource = "generated"    // from the definitions
)
