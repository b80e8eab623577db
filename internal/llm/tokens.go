package llm

import (
	"strings"
)

// MaxReply bounds the bytes of one reply; a model that goes on forever must
// not fill the memory.
const MaxReply = 8 << 20

// UnknownWindow is the context window of a model that we know nothing about.
const UnknownWindow = 128_000

// imageTokens is about what a picture costs at every provider.
const imageTokens = 1500

// EstimateTokens guesses the tokens of n bytes of text: 3.5 bytes each, which
// errs on the safe side for English and JSON. The provider's own figures
// arrive with each reply and correct it, see [Gauge].
func EstimateTokens(n int) int { return (n*2 + 6) / 7 }

// Tokens guesses what the message costs. The native form is what is sent
// where there is one, so the larger of the two counts.
func (m Message) Tokens() int {
	n, pictures := 0, 0
	for _, p := range m.Parts {
		n += len(p.Text) + len(p.Reasoning)
		if p.Image != nil {
			pictures++
		}
		if p.Call != nil {
			n += len(p.Call.Name) + len(p.Call.Arguments) + 16
		}
		if p.Result != nil {
			text, images := resultSize(p.Result.Content)
			n += text
			pictures += images
		}
	}
	if m.Native != nil {
		n = max(n, len(m.Native.Data))
	}
	return EstimateTokens(n) + pictures*imageTokens + 4
}

// Gauge corrects estimates with what the provider counted, so that a history
// in Chinese or in base64 is not taken for a third of its size.
type Gauge struct{ factor float64 }

// Observe notes that what was estimated cost so many tokens.
func (g *Gauge) Observe(estimated, counted int) {
	if estimated < 200 || counted <= 0 {
		return // too little to tell
	}
	seen := min(max(float64(counted)/float64(estimated), 0.25), 4)
	if g.factor == 0 {
		g.factor = seen
		return
	}
	g.factor += (seen - g.factor) / 2
}

// Correct returns an estimate in the provider's own tokens.
func (g *Gauge) Correct(estimated int) int {
	if g.factor == 0 {
		return estimated
	}
	return int(float64(estimated) * g.factor)
}

// window and output limits of models whose name begins so; the first that
// fits counts. Only what is safe to assume is here: a model that is not
// listed gets the defaults, and the file can say otherwise.
var known = []struct {
	prefix         string
	window, output int
}{
	{"gemini-", 1_048_576, 0},
	{"gemma", 32_768, 0},
	{"gpt-4.1", 1_047_576, 0},
	{"gpt-4o", 128_000, 0},
	{"gpt-4-turbo", 128_000, 0},
	{"gpt-4-32k", 32_768, 0},
	{"gpt-4", 8_192, 0},
	{"gpt-3.5", 16_385, 0},
	{"gpt-oss", 128_000, 0},
	{"gpt-", 400_000, 0},
	{"o1", 200_000, 0},
	{"o3", 200_000, 0},
	{"o4", 200_000, 0},
	{"claude-3-opus", 200_000, 4_096},
	{"claude-3-haiku", 200_000, 4_096},
	{"claude-3-sonnet", 200_000, 4_096},
	{"claude-3-5", 200_000, 8_192},
	{"claude-", 200_000, 16_384},
	{"grok-2", 131_072, 0},
	{"grok-3", 131_072, 0},
	{"grok-", 256_000, 0},
}

// Limits returns the context window of a model and, where the provider wants
// to be told, the tokens that one reply may have.
func Limits(p Provider, model string) (window, output int) {
	if p == Ollama {
		// Ollama serves what its settings say, whatever the model could do,
		// and silently forgets the beginning of what is longer.
		return 32_768, 0
	}
	if i := strings.LastIndexByte(model, '/'); i >= 0 { // "openai/gpt-4o", as OpenRouter writes it
		model = model[i+1:]
	}
	for _, k := range known {
		if strings.HasPrefix(model, k.prefix) {
			return k.window, k.output
		}
	}
	return UnknownWindow, 0
}
