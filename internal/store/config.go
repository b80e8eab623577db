package store

import (
	"cmp"
	"errors"
	"net/url"
	"time"

	"junctor/internal/setting"
	"junctor/internal/telemetry"
)

// Config configures the store and the retention of the call log.
type Config struct {
	// File of the embedded store. Default: junctor/junctor.db in the user's data folder.
	Path string `json:"path,omitempty"`
	// URL of a PostgreSQL database (postgres://…) to use instead of the embedded store.
	URL telemetry.Secret `json:"url,omitempty"`
	// Retention of the call log.
	Retention Retention `json:"retention"`
	// Whether to wait for the disk before answering a call. Its record then survives a power failure, and not only a crash.
	Fsync bool `json:"fsync,omitempty"`
	// What happens to calls while their records cannot be written, because the disk is full or the PostgreSQL database is unavailable. closed rejects the calls. open serves them and counts lost records; with PostgreSQL, up to 10,000 records are kept in memory and written later.
	WhenAway OutagePolicy `json:"whenAway"`
	// How long a call waits for the PostgreSQL database. A database that takes longer is treated as unavailable until it responds again.
	TimeoutMs setting.Millis `json:"timeoutMs"`
}

// OutagePolicy is what happens to calls while their records cannot be written.
type OutagePolicy string

// What happens to calls while their records cannot be written.
const (
	FailClosed OutagePolicy = "closed" // they are refused: no call without its record
	FailOpen   OutagePolicy = "open"   // they are served: no record is no reason to stop
)

// Values lists what can happen to calls while their records cannot be written.
func (OutagePolicy) Values() []string { return []string{"closed", "open"} }

// Retention limits the call log by age and by size, whichever is reached first.
type Retention struct {
	// Number of days after which calls are deleted; 0 keeps them forever.
	AgeDays int `json:"ageDays"`
	// Maximum size of the call log, in megabytes. Above it, the oldest calls are deleted; 0 means no limit.
	SizeMB int `json:"sizeMB"`
}

// Age returns the age at which calls are deleted; 0 means never.
func (r Retention) Age() time.Duration { return time.Duration(r.AgeDays) * 24 * time.Hour }

// Bytes returns the size above which the oldest calls are deleted; 0 means
// never.
func (r Retention) Bytes() int64 { return int64(r.SizeMB) << 20 }

// DefaultConfig returns the embedded store with thirty days or one gigabyte
// of calls.
func DefaultConfig() Config {
	return Config{Retention: Retention{AgeDays: 30, SizeMB: 1024}, WhenAway: FailClosed, TimeoutMs: defaultTimeoutMs}
}

const defaultTimeoutMs = 2000

// Timeout returns how long a call waits for the database.
func (c Config) Timeout() time.Duration { return cmp.Or(c.TimeoutMs, defaultTimeoutMs).Duration() }

// maxDays keeps an age within the range of a time.Duration.
const maxDays = 36_500

// Validate reports everything that is wrong with the configuration.
func (c Config) Validate() error {
	errs := []error{setting.NotNegative("retention.sizeMB", c.Retention.SizeMB), setting.CheckMillis("timeoutMs", c.TimeoutMs)}
	if c.Retention.AgeDays < 0 || c.Retention.AgeDays > maxDays {
		errs = append(errs, setting.Wrong("retention.ageDays", "must be between 0 and %d", maxDays))
	}
	if c.WhenAway != "" {
		errs = append(errs, setting.OneOf("whenAway", c.WhenAway))
	}
	if c.URL != "" {
		u, err := url.Parse(c.URL.Reveal())
		if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || u.Host == "" && u.Query().Get("host") == "" {
			errs = append(errs, setting.Wrong("url", "must have the form postgres://user:password@host:port/database"))
		}
		if c.Path != "" {
			errs = append(errs, setting.Wrong("path", "path and url are mutually exclusive; set only one"))
		}
	}
	return errors.Join(errs...)
}
