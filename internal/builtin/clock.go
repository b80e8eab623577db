package builtin

import (
	"encoding/json"
	"fmt"
	"time"
	_ "time/tzdata" // for machines without zone files
)

const timeDefinition = `{"name":"time","title":"Time","description":"Tell the current date and time, or convert a moment, in any time zone. Gives ISO 8601, the weekday, the week of the year and the Unix time.","inputSchema":{"type":"object","properties":{"zone":{"type":"string","description":"IANA time zone, such as Europe/Berlin; default UTC"},"at":{"type":"string","description":"the moment to convert, RFC 3339 (2026-11-15T12:00:00Z) or a date (2026-11-15); default now"}},"additionalProperties":false},"outputSchema":{"type":"object","properties":{"iso":{"type":"string"},"zone":{"type":"string"},"offset":{"type":"string"},"weekday":{"type":"string"},"week":{"type":"integer"},"unix":{"type":"integer"}},"required":["iso","zone","offset","weekday","week","unix"]},"annotations":{"readOnlyHint":true,"openWorldHint":false}}`

// moment is the result of the time tool.
type moment struct {
	ISO     string `json:"iso"`
	Zone    string `json:"zone"`
	Offset  string `json:"offset"`
	Weekday string `json:"weekday"`
	Week    int    `json:"week"`
	Unix    int64  `json:"unix"`
}

func currentTime(now time.Time, arguments json.RawMessage) (answer, error) {
	var a struct {
		Zone string `json:"zone"`
		At   string `json:"at"`
	}
	if err := json.Unmarshal(arguments, &a); err != nil {
		return answer{}, fmt.Errorf("arguments: %w", err)
	}
	zone, err := loadZone(a.Zone)
	if err != nil {
		return answer{}, err
	}
	t := now.In(zone)
	if a.At != "" {
		if t, err = parseMoment(a.At, zone); err != nil {
			return answer{}, err
		}
	}
	_, week := t.ISOWeek()
	m := moment{t.Format(time.RFC3339), zone.String(), t.Format("-07:00"), t.Weekday().String(), week, t.Unix()}
	return answer{fmt.Sprintf("%s (%s, week %d, %s, Unix %d)", m.ISO, m.Weekday, m.Week, m.Zone, m.Unix), m}, nil
}

func loadZone(name string) (*time.Location, error) {
	if name == "" || name == "Local" { // do not disclose the machine's own zone
		return time.UTC, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("%q is not a time zone; use an IANA name such as Europe/Berlin, America/New_York or UTC", name)
	}
	return zone, nil
}

func parseMoment(s string, zone *time.Location) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t.In(zone), nil
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, s, zone); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a moment; write 2026-11-15T12:00:00Z or 2026-11-15", s)
}
