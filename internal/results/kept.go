package results

import (
	"cmp"
	"container/list"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"junctor/internal/tool"
)

// Bounds of what is kept.
const (
	keepFor      = time.Hour
	keepCaller   = 32 << 20 // bytes of one caller
	keepAll      = 256 << 20
	maxKeptTexts = 10_000
)

// Kept keeps texts for their callers for an hour. The oldest make room for new
// ones. It is safe for concurrent use.
type Kept struct {
	mu     sync.Mutex
	byID   map[string]*list.Element
	order  *list.List // of keptText, oldest first
	bytes  int
	caller map[string]int // bytes by caller
}

type keptText struct {
	id, caller, text string
	expires          time.Time
}

// NewKept returns an empty Kept.
func NewKept() *Kept {
	return &Kept{byID: map[string]*list.Element{}, order: list.New(), caller: map[string]int{}}
}

// Keep keeps a text and returns its id, or "" if it is too large.
func (k *Kept) Keep(caller, text string) string {
	if k == nil || len(text) > keepCaller {
		return ""
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	for e := k.order.Front(); e != nil; {
		next, t := e.Next(), e.Value.(keptText)
		if t.expires.Before(now) || k.bytes+len(text) > keepAll || k.order.Len() >= maxKeptTexts ||
			t.caller == caller && k.caller[caller]+len(text) > keepCaller {
			k.drop(e)
		}
		e = next
	}
	t := keptText{id: strings.ToLower(rand.Text()[:12]), caller: caller, text: text, expires: now.Add(keepFor)}
	k.byID[t.id] = k.order.PushBack(t)
	k.bytes += len(text)
	k.caller[caller] += len(text)
	return t.id
}

func (k *Kept) drop(e *list.Element) {
	t := k.order.Remove(e).(keptText)
	delete(k.byID, t.id)
	k.bytes -= len(t.text)
	if k.caller[t.caller] -= len(t.text); k.caller[t.caller] == 0 {
		delete(k.caller, t.caller)
	}
}

// Read returns the caller's text of an id.
func (k *Kept) Read(caller, id string) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e, ok := k.byID[id]
	if ok {
		if t := e.Value.(keptText); t.caller == caller && time.Now().Before(t.expires) {
			return t.text, nil
		}
	}
	return "", &tool.Error{Kind: tool.InvalidArguments, Msg: fmt.Sprintf("no result %q is kept for this caller; results are kept for an hour on the node that made them. Call the tool again", tool.Shorten(id, 40))}
}

// Page returns up to limit bytes of a text from an offset, in whole characters,
// and the offset at which it goes on, 0 at the end.
func Page(text string, offset, limit int) (page string, next int) {
	offset = min(max(offset, 0), len(text))
	for offset < len(text) && !utf8.RuneStart(text[offset]) {
		offset++
	}
	end := min(offset+cmp.Or(limit, len(text)), len(text))
	for end < len(text) && end > offset && !utf8.RuneStart(text[end]) {
		end--
	}
	if end == len(text) {
		return text[offset:], 0
	}
	return text[offset:end], end
}
