// Package setting is shared by the Config structs of the other packages. It has
// types for validation problems, which identify the key, and for values with a
// unit.
//
// A Validate method can report all problems together, and the loader can find
// the line of each. The package imports only the standard library, so that
// every layer can use it, and depends on no file and no particular setting.
package setting

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Millis is a duration as written in a file: whole milliseconds, under a key
// that ends in Ms.
type Millis int

// Duration returns m as a time.Duration.
func (m Millis) Duration() time.Duration { return time.Duration(m) * time.Millisecond }

// MaxMillis is the maximum of a setting: about 24 days, the range of a signed
// 32-bit count of milliseconds.
const MaxMillis Millis = 1<<31 - 1

// Rate is a maximum number of calls per period; nil means no limit.
type Rate struct {
	// Number of calls allowed per period.
	Calls int `json:"calls"`
	// Length of the period; one minute if not set.
	PerMs Millis `json:"perMs,omitempty"`
}

// Per returns the period, which defaults to a minute.
func (r *Rate) Per() time.Duration {
	if r == nil || r.PerMs == 0 {
		return time.Minute
	}
	return r.PerMs.Duration()
}

// Validate reports everything that is wrong with the rate; a nil rate is valid.
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
	Key string // relative to the validated struct: "timeoutMs", "retention.ageDays", "keys[2].name"
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

// Prefix adds key before the keys of all problems in err, as a struct does with
// the problems of a nested struct. It returns nil if err is nil.
func Prefix(key string, err error) error {
	var errs []error
	for _, p := range Problems(err) {
		errs = append(errs, &Problem{Key: Join(key, p.Key), Msg: p.Msg})
	}
	return errors.Join(errs...)
}

// PrefixIndex is like Prefix for an element of a list.
func PrefixIndex(key string, i int, err error) error {
	return Prefix(key+"["+strconv.Itoa(i)+"]", err)
}

// Join joins two keys, with a dot unless one is empty or inner is an index.
func Join(outer, inner string) string {
	if outer == "" || inner == "" || strings.HasPrefix(inner, "[") {
		return outer + inner
	}
	return outer + "." + inner
}

// Problems returns the problems joined in err. An error of another type becomes
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

// CheckMillis checks that a duration is between 0 and MaxMillis.
func CheckMillis(key string, m Millis) error {
	if m < 0 || m > MaxMillis {
		return Wrong(key, "must be between 0 and %d milliseconds", MaxMillis)
	}
	return nil
}

// Enum is a string type with a fixed set of values.
type Enum interface {
	~string
	// Values returns the valid values, the usual one first.
	Values() []string
}

// OneOf checks that w is one of its valid values or empty, which means that it
// is not set.
func OneOf[W Enum](key string, w W) error {
	if w == "" || slices.Contains(w.Values(), string(w)) {
		return nil
	}
	return Wrong(key, "%q is not known; use one of %s", string(w), strings.Join(w.Values(), ", "))
}
