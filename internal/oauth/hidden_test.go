package oauth

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/telemetry"
)

// Tokens of many callers are redacted while they are used. They are removed in
// one call a day after they were replaced, not each time a login is read.
func TestTokensOfManyCallersAreForgottenLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		redactor := &telemetry.Redactor{}
		s := New(Options{Redactor: redactor, Log: slog.New(slog.DiscardHandler)})
		token := func(i int) string { return fmt.Sprintf("token-of-caller-%04d", i) }
		masked := func(i int) bool { return !strings.Contains(redactor.String("a "+token(i)+" b"), token(i)) }
		for i := range 2 * maxRedacted {
			s.redactTokens(&record{Access: token(i)})
		}
		time.Sleep(redactTTL + time.Hour)
		s.redactTokens(&record{Access: token(1)})
		if masked(0) || !masked(1) || len(s.redacted) != 1 {
			t.Errorf("after a day: replaced token masked %v, used one %v, %d known", masked(0), masked(1), len(s.redacted))
		}
		for i := range 2 * maxRedacted {
			s.redactTokens(&record{Access: token(i)})
		}
		if swept := s.swept; time.Since(swept) != 0 {
			t.Fatalf("swept %v ago", time.Since(swept))
		}
		time.Sleep(redactSweepInterval - time.Second)
		before := s.swept
		s.redactTokens(&record{Access: token(1)})
		if s.swept != before {
			t.Error("all tokens were looked at again within the interval")
		}
	})
}
