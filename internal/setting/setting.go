// Package setting is what the Config structs of the other packages share: a
// way to say what is wrong with which key, and the types of values that need
// a unit.
//
// It promises that a Validate method can report every problem at once and
// that the loader can find the line of each. It imports the standard library
// alone, so that every layer may use it, and knows no file and no setting.
package setting

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Millis is a span of time as a file has it: whole milliseconds, under a key
// that ends in Ms.
type Millis int

// Duration returns the span as a time.Duration.
func (m Millis) Duration() time.Duration { return time.Duration(m) * time.Millisecond }

// MaxMillis is the longest span a setting may have: about 24 days, what a
// 32-bit count of milliseconds holds.
const MaxMillis Millis = 1<<31 - 1

// Rate is a number of calls in a span of time; nil means no limit.
type Rate struct {
	// How many calls.
	Calls int `json:"calls"`
	// In which time. Default: a minute.
	PerMs Millis `json:"perMs,omitempty"`
}

// Per returns the span of time, a minute where none was given.
func (r *Rate) Per() time.Duration {
	if r == nil || r.PerMs == 0 {
		return time.Minute
	}
	return r.PerMs.Duration()
}

// Validate reports everything that is wrong with the rate; nil is right.
func (r *Rate) Validate() error {
	if r == nil {
		return nil
	}
	errs := []error{CheckMillis("perMs", r.PerMs)}
	if r.Calls < 1 {
		errs = append(errs, Wrong("calls", "must be at least 1; leave the limit out for none"))
	}
	return errors.Join(errs...)
}

// Problem is one thing that is wrong with one setting.
type Problem struct {
	Key string // from the struct that was checked: "timeoutMs", "retention.ageDays", "keys[2].name"
	Msg string // what is wrong and what to write instead
}

// Error returns the key and the message.
func (p *Problem) Error() string {
	if p.Key == "" {
		return p.Msg
	}
	return p.Key + ": " + p.Msg
}

// Wrong returns a Problem with the setting under key.
func Wrong(key, format string, args ...any) error {
	return &Problem{Key: key, Msg: fmt.Sprintf(format, args...)}
}

// Prefix puts key before the keys of all problems in err: what a struct does
// with the problems of a struct inside it. It returns nil for nil.
func Prefix(key string, err error) error {
	var errs []error
	for _, p := range Problems(err) {
		errs = append(errs, &Problem{Key: Join(key, p.Key), Msg: p.Msg})
	}
	return errors.Join(errs...)
}

// PrefixIndex is Prefix for an element of a list.
func PrefixIndex(key string, i int, err error) error {
	return Prefix(key+"["+strconv.Itoa(i)+"]", err)
}

// Join joins two keys with a dot where one is needed.
func Join(outer, inner string) string {
	if outer == "" || inner == "" || strings.HasPrefix(inner, "[") {
		return outer + inner
	}
	return outer + "." + inner
}

// Problems lists the problems joined in err. An error of another kind becomes
// a problem without a key.
func Problems(err error) []*Problem {
	switch e := err.(type) {
	case nil:
		return nil
	case *Problem:
		return []*Problem{e}
	case interface{ Unwrap() []error }:
		var all []*Problem
		for _, inner := range e.Unwrap() {
			all = append(all, Problems(inner)...)
		}
		return all
	}
	return []*Problem{{Msg: err.Error()}}
}

// NotNegative checks that a count is zero or more.
func NotNegative[N ~int | ~int64 | ~float64](key string, n N) error {
	if n < 0 {
		return Wrong(key, "must not be negative")
	}
	return nil
}

// CheckMillis checks that a span of time is neither negative nor absurd.
func CheckMillis(key string, m Millis) error {
	if m < 0 || m > MaxMillis {
		return Wrong(key, "must be between 0 and %d milliseconds", MaxMillis)
	}
	return nil
}

// Enum is a string of which only some values mean something.
type Enum interface {
	~string
	// Values lists the values that may be written, the usual one first.
	Values() []string
}

// OneOf checks that a word is one of those it may be. The empty word passes:
// it means that nothing was said.
func OneOf[W Enum](key string, w W) error {
	if w == "" || slices.Contains(w.Values(), string(w)) {
		return nil
	}
	return Wrong(key, "%q is not known; use one of %s", string(w), strings.Join(w.Values(), ", "))
}
