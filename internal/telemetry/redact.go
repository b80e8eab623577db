package telemetry

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"junctor/internal/rawjson"
)

// Redactor masks secrets in text and in JSON: those passed to Add, text that
// looks like a secret, and the values of keys with secret names.
//
// It reads its input once and does not allocate if there is nothing to mask.
// JSON stays valid, and only the secrets change. The zero Redactor is ready to
// use; a nil one masks nothing.
type Redactor struct {
	patterns atomic.Pointer[[]*regexp.Regexp]

	mu    sync.Mutex
	known atomic.Pointer[known]
}

// NewRedactor returns a Redactor that also masks what the configured patterns
// match.
func NewRedactor(cfg RedactConfig) (*Redactor, error) {
	r := &Redactor{}
	if err := r.SetConfig(cfg); err != nil {
		return nil, err
	}
	return r, nil
}

// SetConfig replaces the configured patterns. If it returns an error, nothing
// is changed.
func (r *Redactor) SetConfig(cfg RedactConfig) error {
	all := make([]*regexp.Regexp, len(cfg.Redact))
	for i, p := range cfg.Redact {
		re, err := regexp.Compile(p)
		if err != nil {
			return fmt.Errorf("redact[%d]: %w", i, err)
		}
		all[i] = re
	}
	r.patterns.Store(&all)
	return nil
}

// CurrentConfig returns the configured patterns.
func (r *Redactor) CurrentConfig() RedactConfig {
	var cfg RedactConfig
	for _, re := range r.configured() {
		cfg.Redact = append(cfg.Redact, re.String())
	}
	return cfg
}

// configured returns the configured patterns; none for the zero Redactor.
func (r *Redactor) configured() []*regexp.Regexp {
	if all := r.patterns.Load(); all != nil {
		return *all
	}
	return nil
}

// minKnown is the minimum length of a known secret that is masked: shorter ones
// would match parts of ordinary words.
const minKnown = 5

// Add adds known secrets, which are masked wherever they appear: verbatim and
// as encoded in JSON and in URLs.
func (r *Redactor) Add(secrets ...Secret) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	if k := r.known.Load(); k != nil {
		all = append(all, k.all...)
	}
	before := len(all)
	for _, s := range secrets {
		for _, form := range forms(s.Reveal()) {
			if len(form) >= minKnown {
				all = append(all, form)
			}
		}
	}
	if len(all) > before {
		r.known.Store(newKnown(all))
	}
}

// Forget removes known secrets, such as expired tokens, so that a program that
// runs for months does not accumulate them.
func (r *Redactor) Forget(secrets ...Secret) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.known.Load()
	if k == nil {
		return
	}
	gone := map[string]bool{}
	for _, s := range secrets {
		for _, form := range forms(s.Reveal()) {
			gone[form] = true
		}
	}
	var left []string
	for _, s := range k.all {
		if !gone[s] {
			left = append(left, s)
		}
	}
	if len(left) < len(k.all) {
		r.known.Store(newKnown(left))
	}
}

// forms returns a secret verbatim and in its encodings.
func forms(s string) []string {
	out := []string{s}
	add := func(f string) {
		for _, have := range out {
			if have == f {
				return
			}
		}
		out = append(out, f)
	}
	if b, err := json.Marshal(s); err == nil {
		add(string(b[1 : len(b)-1]))
	}
	if b, err := rawjson.Marshal(s); err == nil {
		add(string(b[1 : len(b)-1]))
	}
	add(strings.ReplaceAll(s, "/", `\/`))
	add(url.QueryEscape(s))
	add(url.PathEscape(s))
	return out
}

// known finds any of many strings. The first two bytes of each are marked in a
// bit set, so that most positions are skipped with one lookup.
type known struct {
	all   []string
	begin pairs
	look  pairs                // begin and mayBegin
	heads map[[4]byte][]string // longest first
}

func newKnown(all []string) *known {
	k := &known{heads: map[[4]byte][]string{}, look: mayBegin}
	seen := map[string]bool{}
	for _, s := range all {
		if seen[s] {
			continue
		}
		seen[s] = true
		k.all = append(k.all, s)
		k.begin.add(s[0], s[1])
		k.look.add(s[0], s[1])
		head := [4]byte([]byte(s[:4]))
		list := append(k.heads[head], s)
		for i := len(list) - 1; i > 0 && len(list[i]) > len(list[i-1]); i-- {
			list[i], list[i-1] = list[i-1], list[i]
		}
		k.heads[head] = list
	}
	return k
}

// at returns the length of the known secret that begins at s[i], or 0.
func (k *known) at(s string, i int) int {
	if i+minKnown > len(s) {
		return 0
	}
	if !k.begin.has(s[i], s[i+1]) {
		return 0
	}
	for _, secret := range k.heads[[4]byte{s[i], s[i+1], s[i+2], s[i+3]}] {
		if strings.HasPrefix(s[i:], secret) {
			return len(secret)
		}
	}
	return 0
}

// String returns s with its secrets masked, or s itself if there are none.
func (r *Redactor) String(s string) string {
	if r == nil {
		return s
	}
	out := r.scan(s)
	text := s
	if out != nil {
		text = unsafe.String(unsafe.SliceData(out), len(out)) // out is not shared
	}
	for _, re := range r.configured() {
		if re.MatchString(text) {
			text = re.ReplaceAllLiteralString(text, Redacted)
		}
	}
	return text
}

// JSON returns a JSON text with its secrets masked, or raw itself if there are
// none. Input that is not JSON is treated as text.
func (r *Redactor) JSON(raw json.RawMessage) json.RawMessage {
	if r == nil || len(raw) == 0 {
		return raw
	}
	out := raw
	if masked := r.scan(unsafe.String(unsafe.SliceData(raw), len(raw))); masked != nil {
		out = masked
	}
	for _, re := range r.configured() {
		if !re.Match(out) {
			continue
		}
		masked := re.ReplaceAllLiteral(out, []byte(Redacted))
		if json.Valid(out) && !json.Valid(masked) {
			// The pattern matched beyond a JSON string. Return neither the
			// secret nor invalid JSON.
			return json.RawMessage(`"` + Redacted + `"`)
		}
		out = masked
	}
	return out
}

// Error returns an error that wraps err and whose text has secrets masked.
func (r *Redactor) Error(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if clean := r.String(text); clean != text {
		return redactedError{clean, err}
	}
	return err
}

type redactedError struct {
	text string
	err  error
}

func (e redactedError) Error() string { return e.text }
func (e redactedError) Unwrap() error { return e.err }

// scan returns s with secrets masked, or nil if there are none.
func (r *Redactor) scan(s string) []byte {
	var out []byte
	k := r.known.Load()
	look := &mayBegin
	if k != nil {
		look = &k.look
	}
	last := 0
	escape := -maxEscape - 1 // start of the last escape sequence
	for i := 0; i < len(s); {
		for i+1 < len(s) && !look.has(s[i], s[i+1]) {
			i++
		}
		start, end, mask := 0, 0, Redacted
		if k != nil {
			if n := k.at(s, i); n > 0 {
				start, end = i, i+n
			}
		}
		if t := secretKinds[s[i]]; end == 0 && t != 0 {
			switch t {
			case escapes:
				escape = i
			case beginsWord:
				if i+1 < len(s) && beginsToken.has(s[i], s[i+1]) &&
					(i == 0 || class[s[i-1]]&word == 0 || i-escape <= maxEscape && escapeBefore(s, i)) {
					start, end, mask = shapeAt(s, i)
				}
			default:
				start, end, mask = shapeAt(s, i)
			}
		}
		if end == 0 {
			i++
			continue
		}
		if out == nil {
			out = make([]byte, 0, len(s)+len(Redacted))
		}
		out = append(out, s[last:start]...)
		out = append(out, mask...)
		last, i, escape = end, end, end // the masked text may end with an escape sequence
	}
	if out == nil {
		return nil
	}
	return append(out, s[last:]...)
}
