package doctor

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"junctor/internal/terminal"
	"junctor/internal/upstream"
)

// documentTimeout bounds reading one OpenAPI document.
const documentTimeout = 30 * time.Second

// documents checks the OpenAPI documents of servers: whether they can be read,
// where their service is, and whether the credentials match.
func (r *Report) documents(ctx context.Context, f Facts, p Probes) {
	const area = "documents"
	if p.Document == nil {
		return
	}
	for _, s := range f.Config.Servers {
		if !s.Enabled || s.OpenAPI == "" || len(s.Unset) > 0 {
			continue
		}
		begun := time.Now()
		ctx, cancel := context.WithTimeout(ctx, documentTimeout)
		service, err := p.Document(ctx, s)
		cancel()
		if err != nil {
			r.explain(Finding{Severity: Problem, Area: area, Subject: s.Name, What: err.Error(), Do: "correct openapi or baseUrl of the server; docs/openapi.md says what is supported"}, err)
			continue
		}
		r.Add(Finding{
			Severity: OK, Area: area, Subject: s.Name, TookMs: millis(time.Since(begun)),
			What: terminal.Count(len(service.Tools()), "operation") + ", the service is at " + service.Base.Redacted(),
		})
		if len(service.Skipped) > 0 {
			r.Add(Finding{Severity: Info, Area: area, Subject: s.Name, What: terminal.Count(len(service.Skipped), "operation") + " without a tool", Details: service.Skipped})
		}
		r.credentials(area, s, service.Schemes(), service.Missing(revealed(s), s.OAuth != nil))
	}
}

// credentials compares a server's credentials with the security schemes of its
// document.
func (r *Report) credentials(area string, s upstream.Config, schemes, missing []string) {
	for _, name := range slices.Sorted(maps.Keys(s.Credentials)) {
		if slices.Contains(schemes, name) {
			continue
		}
		do := "remove it: the document has no security schemes; set headers if the service requires a token"
		if len(schemes) > 0 {
			do = "use one of its names: " + strings.Join(schemes, ", ")
		}
		r.Add(Finding{Severity: Warning, Area: area, Subject: s.Name, What: "credentials." + name + ": the document has no such security scheme", Do: do})
	}
	if len(missing) > 0 && s.AuthorizationToken == "" && len(s.Headers) == 0 {
		r.Add(Finding{
			Severity: Warning, Area: area, Subject: s.Name, What: "no credentials for " + strings.Join(missing, ", ") + ", which operations need",
			Do: "set credentials." + missing[0] + ", or headers; for a sign-in with OAuth set oauth.clientId",
		})
	}
}

func revealed(s upstream.Config) map[string]string {
	plain := make(map[string]string, len(s.Credentials))
	for name, value := range s.Credentials {
		plain[name] = value.Reveal()
	}
	return plain
}
