package auth

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"junctor/internal/tool"
)

// ParseExpiry parses a duration from now (30d, 2w, 12h) or a date in the
// future. The empty string is the zero time.
func ParseExpiry(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(layout, s); err == nil && at.After(now) {
			return at, nil
		}
	}
	for suffix, days := range map[string]int{"d": 1, "w": 7} {
		if n, err := strconv.Atoi(strings.TrimSuffix(s, suffix)); err == nil && strings.HasSuffix(s, suffix) && n > 0 && n < 100_000 {
			return now.AddDate(0, 0, n*days), nil
		}
	}
	if d, err := time.ParseDuration(s); err == nil && d > 0 {
		return now.Add(d), nil
	}
	return time.Time{}, fmt.Errorf("invalid --expires %q; use a duration (30d, 2w, 12h) or a future date (2027-01-31)", s)
}

// ParseRate parses a number of calls per time, such as 60/1m. The empty string
// is no limit.
func ParseRate(s string) (tool.Rate, error) {
	if s == "" {
		return tool.Rate{}, nil
	}
	calls, per, ok := strings.Cut(s, "/")
	n, err := strconv.Atoi(calls)
	if !ok || err != nil || n < 1 {
		return tool.Rate{}, fmt.Errorf("--rate %q is not calls/time; write 60/1m", s)
	}
	if per != "" && per[0] >= 'a' { // 60/m
		per = "1" + per
	}
	d, err := time.ParseDuration(per)
	if err != nil || d <= 0 {
		return tool.Rate{}, fmt.Errorf("--rate %q is not calls/time; write 60/1m", s)
	}
	return tool.Rate{Calls: n, Per: d}, nil
}
