package provider

// xai is xAI's API: OpenAI's chat completions with a limit of its own.
type xai struct{ openai }

func (xai) name() string { return XAI }
func (xai) limit() int   { return 200 }
