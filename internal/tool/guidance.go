package tool

// Guidance tells a model how the tools of a server are meant to be used.
type Guidance struct {
	Text   string
	Source GuidanceSource
}

// GuidanceSource is where guidance came from.
type GuidanceSource string

// The sources, best first. Guidance without a source was stored by a version
// that did not keep it.
const (
	FromPrompt       GuidanceSource = "prompt"       // the server's prompt tool-descriptions
	FromInstructions GuidanceSource = "instructions" // the server's instructions
	Generated        GuidanceSource = "generated"    // from the definitions
)
