// Package approval asks people whether a call may be made, and remembers what
// they allowed.
//
// A rule can ask for approval of a tool's calls. Where the client of a call cannot
// ask its user, the call waits in the inbox: as a record of package waiting, which
// every node can read and answer. It waits only if somebody can answer: an
// administrator has the page open on some node, or a webhook is set. The node that
// has the call continues it, and only while the client is there: an answer to a
// call that was left has no effect.
//
// "Once" allows the one call that waits, with its arguments and the definition of
// the tool that was shown. "Session" and "always" allow later calls of the same
// caller and tool while the definition stays the same.
package approval

import (
	"errors"
	"net/url"
	"time"

	"junctor/internal/setting"
	"junctor/internal/telemetry"
)

// Config is how calls wait for approval.
type Config struct {
	// How long a call waits for a person who approves or denies it, and a question of a server for its answer in a chat.
	TimeoutMs setting.Millis `json:"timeoutMs"`
	// Where calls that wait for approval are announced. Default: nowhere.
	Webhook *Webhook `json:"webhook,omitempty"`
}

// Webhook is an address that gets a signed POST for each call that waits for
// approval.
type Webhook struct {
	// The address, http or https.
	URL string `json:"url"`
	// The key of the signature, at least 16 characters. Best written as ${VAR}.
	Secret telemetry.Secret `json:"secret"`
}

const defaultTimeout = 5 * 60_000

// minSecret is the least length of a key that cannot be guessed.
const minSecret = 16

// DefaultConfig returns five minutes and no webhook.
func DefaultConfig() Config { return Config{TimeoutMs: defaultTimeout} }

// Validate reports everything that is wrong with the configuration.
func (c Config) Validate() error {
	errs := []error{setting.CheckMillis("timeoutMs", c.TimeoutMs)}
	if c.TimeoutMs == 0 {
		errs = append(errs, setting.Wrong("timeoutMs", "must be at least 1"))
	}
	if w := c.Webhook; w != nil {
		u, err := url.Parse(w.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			errs = append(errs, setting.Wrong("webhook.url", "must be an http or https address"))
		}
		if len(w.Secret.Reveal()) < minSecret {
			errs = append(errs, setting.Wrong("webhook.secret", "must have at least %d characters", minSecret))
		}
	}
	return errors.Join(errs...)
}

// Timeout returns how long a call waits.
func (c Config) Timeout() time.Duration { return c.TimeoutMs.Duration() }
