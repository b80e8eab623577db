package approval

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"junctor/internal/waiting"
)

// The headers of a webhook's request. The signature is "sha256=" and the hex
// digits of the HMAC-SHA256, with the webhook's secret, of the timestamp (Unix
// seconds), a dot and the body.
const (
	timestampHeader = "Junctor-Timestamp"
	signatureHeader = "Junctor-Signature"
)

const (
	webhookAttempts   = 3
	webhookTimeout    = 10 * time.Second
	webhookRetryDelay = time.Second // before the second attempt, doubled before the third
)

// Sign returns the signature of a webhook's request.
func Sign(secret, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// announce sends a call that waits for approval to the webhook.
func (i *Inbox) announce(ctx context.Context, hook Webhook, id string) error {
	var record waiting.Record
	for { // the record is written concurrently
		var err error
		record, err = i.Calls.Await(ctx, id, record.Version)
		if err != nil || ctx.Err() != nil {
			return err
		}
		if record.Status == waiting.InputRequired {
			break
		}
	}
	body, err := json.Marshal(map[string]any{"type": "approval.requested", "id": id, "call": record.Public()})
	if err != nil {
		return err
	}
	pause := webhookRetryDelay
	for attempt := 1; ; attempt++ {
		err := i.post(ctx, hook, body)
		if err == nil || attempt == webhookAttempts {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
			pause *= 2
		}
	}
}

func (i *Inbox) post(ctx context.Context, hook Webhook, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, webhookTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, hook.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	now := strconv.FormatInt(time.Now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(timestampHeader, now)
	req.Header.Set(signatureHeader, Sign(hook.Secret.Reveal(), now, body))
	res, err := i.Client.Do(req)
	if failed, ok := errors.AsType[*url.Error](err); ok { // it contains the address, which may contain a token
		return fmt.Errorf("the webhook at %s cannot be reached: %w", req.URL.Host, failed.Err)
	}
	if err != nil {
		return err
	}
	if err := res.Body.Close(); err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("the webhook answered %s", res.Status)
	}
	return nil
}

// NewClient returns a client for the webhook. It does not follow redirects,
// because requests are meant only for the configured address.
func NewClient(rt http.RoundTripper) *http.Client {
	return &http.Client{Transport: rt, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}
