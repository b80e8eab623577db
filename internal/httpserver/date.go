package httpserver

import (
	"net/http"
	"sync/atomic"
	"time"
)

// date is the Date header of the current second: net/http would format it anew
// for every response, which takes a hundredth of a small call.
var date atomic.Pointer[dateHeader]

type dateHeader struct {
	second int64
	value  []string // never changed
}

// dateAt returns the value of the Date header.
func dateAt(now time.Time) []string {
	d := date.Load()
	if d == nil || d.second != now.Unix() {
		d = &dateHeader{now.Unix(), []string{now.UTC().Format(http.TimeFormat)}}
		date.Store(d)
	}
	return d.value
}
