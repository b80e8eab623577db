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

// Limits of the cache.
const (
	textTTL        = time.Hour
	maxCallerBytes = 32 << 20 // per caller
	maxTotalBytes  = 256 << 20
	maxTexts       = 10_000
)

// Cache stores texts for their callers for an hour. If it is full, the oldest
// are evicted. It is safe for concurrent use.
type Cache struct {
	mu     sync.Mutex
	byID   map[string]*list.Element
	order  *list.List // of cachedText, oldest first
	bytes  int
	caller map[string]int // bytes by caller
}

type cachedText struct {
	id, caller, text string
	expires          time.Time
}

// NewCache returns an empty Cache.
func NewCache() *Cache {
	return &Cache{byID: map[string]*list.Element{}, order: list.New(), caller: map[string]int{}}
}

// Keep stores a text and returns its id, or "" if it is too large.
func (c *Cache) Keep(caller, text string) string {
	if c == nil || len(text) > maxCallerBytes {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for e := c.order.Front(); e != nil; {
		next, t := e.Next(), e.Value.(cachedText)
		if t.expires.Before(now) || c.bytes+len(text) > maxTotalBytes || c.order.Len() >= maxTexts ||
			t.caller == caller && c.caller[caller]+len(text) > maxCallerBytes {
			c.drop(e)
		}
		e = next
	}
	t := cachedText{id: strings.ToLower(rand.Text()[:12]), caller: caller, text: text, expires: now.Add(textTTL)}
	c.byID[t.id] = c.order.PushBack(t)
	c.bytes += len(text)
	c.caller[caller] += len(text)
	return t.id
}

func (c *Cache) drop(e *list.Element) {
	t := c.order.Remove(e).(cachedText)
	delete(c.byID, t.id)
	c.bytes -= len(t.text)
	if c.caller[t.caller] -= len(t.text); c.caller[t.caller] == 0 {
		delete(c.caller, t.caller)
	}
}

// Read returns the text with an id if it belongs to the caller.
func (c *Cache) Read(caller, id string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byID[id]
	if ok {
		if t := e.Value.(cachedText); t.caller == caller && time.Now().Before(t.expires) {
			return t.text, nil
		}
	}
	return "", &tool.Error{Kind: tool.InvalidArguments, Msg: fmt.Sprintf("no result %q is stored for this caller; results are stored for up to an hour on the node that created them. Call the tool again", tool.Shorten(id, 40))}
}

// Page returns up to limit bytes of a text from an offset, in whole characters,
// and the offset of the next page, or 0 at the end.
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
