package llm

import (
	"strings"
)

// MaxReply bounds the bytes of one reply, so that an endless reply cannot
// exhaust memory.
const MaxReply = 8 << 20

// UnknownWindow is the assumed context window of an unknown model.
const UnknownWindow = 128_000

// imageTokens is the approximate cost of an image with every provider.
const imageTokens = 1500

// pageBytes is the approximate size of a page of a PDF document, which costs
// about as much as an image.
const pageBytes = 50_000

// EstimateTokens estimates the tokens of n bytes of text: 3.5 bytes each, which
// is a safe estimate for English and JSON. The figures that providers report
// with each reply correct it, see [Gauge].
func EstimateTokens(n int) int { return (n*2 + 6) / 7 }

// Tokens estimates the tokens of the message. If there is a native form, the
// larger of the two counts.
func (m Message) Tokens() int {
	n, pictures := 0, 0
	for _, p := range m.Parts {
		n += len(p.Text) + len(p.Reasoning)
		if p.Image != nil {
			pictures++
		}
		if p.File != nil && p.File.MIME == MIMEPDF {
			pictures += 1 + len(p.File.Data)/pageBytes
		} else if p.File != nil {
			n += len(p.File.Data) + len(p.File.Name) + 16
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

// Gauge corrects estimates by the provider's counts, because text in Chinese or
// base64 has up to three times as many tokens as estimated.
type Gauge struct{ factor float64 }

// Observe records that a request estimated at estimated tokens was counted as
// counted.
func (g *Gauge) Observe(estimated, counted int) {
	if estimated < 200 || counted <= 0 {
		return // too few to be representative
	}
	seen := min(max(float64(counted)/float64(estimated), 0.25), 4)
	if g.factor == 0 {
		g.factor = seen
		return
	}
	g.factor += (seen - g.factor) / 2
}

// Correct returns an estimate scaled by the observed factor.
func (g *Gauge) Correct(estimated int) int {
	if g.factor == 0 {
		return estimated
	}
	return int(float64(estimated) * g.factor)
}

// known are context windows and output limits by prefix of the model's name;
// the first match is used. Models that are not listed get the defaults, which
// the configuration can override.
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

// Limits returns the context window of a model and, if the provider requires a
// limit, the maximum tokens of one reply.
func Limits(p Provider, model string) (window, output int) {
	if p == Ollama {
		// Ollama uses the window of its own settings, whatever the model
		// supports, and silently truncates longer requests at the beginning.
		return 32_768, 0
	}
	if i := strings.LastIndexByte(model, '/'); i >= 0 { // "openai/gpt-4o", as OpenRouter names it
		model = model[i+1:]
	}
	for _, k := range known {
		if strings.HasPrefix(model, k.prefix) {
			return k.window, k.output
		}
	}
	return UnknownWindow, 0
}
