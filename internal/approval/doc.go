// Package approval asks people whether a call may run, and remembers what they
// allowed.
//
// A rule or a profile can require approval of a tool's calls. If the client of
// a call cannot ask its user, the call waits in the inbox; a call of the chat
// waits there in addition. In the inbox it is a record of package waiting,
// which every node can read and answer. A call waits there only if someone can
// answer: an administrator has the page open on some node, or a webhook is set.
// The node that executes the call continues it. If the context of the call
// ends, for example because its client has disconnected, the request is
// withdrawn and an answer has no effect.
//
// "Once" allows only the waiting call, with its arguments and the definition of
// the tool that was shown. "Session" and "always" allow later calls of the same
// caller and tool as long as the definition does not change.
package approval

import (
	"errors"
	"net/url"
	"time"

	"junctor/internal/setting"
	"junctor/internal/telemetry"
)

// Config configures the approval of calls.
type Config struct {
	// How long a call waits for approval, and how long a server's question waits for an answer in a chat.
	TimeoutMs setting.Millis `json:"timeoutMs"`
	// Webhook to notify about calls that wait for approval. Default: none.
	Webhook *Webhook `json:"webhook,omitempty"`
}

// Webhook is a URL that receives a signed POST request for each call that waits
// for approval.
type Webhook struct {
	// URL of the webhook, http or https.
	URL string `json:"url"`
	// Key that signs the requests, at least 16 characters. Use ${VAR} to keep it out of the file.
	Secret telemetry.Secret `json:"secret"`
}

const defaultTimeout = 5 * 60_000

// minSecret is the minimum length of a key, so that it cannot be guessed.
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
