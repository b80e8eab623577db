package telemetry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
)

// Tokens that look like secrets but are not valid anywhere.
const (
	ghToken  = "ghp_0123456789abcdefABCDEF0123456789abcd"
	skToken  = "sk-proj-0123456789abcdefghijklmnop"
	jwtToken = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"
	pemKey   = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\n0123+/==\n-----END RSA PRIVATE KEY-----"
)

func TestRedactText(t *testing.T) {
	r := &Redactor{}
	r.Add("known-canary-1", "p/w&d \"q\"", "tiny", "")
	for name, tt := range map[string]struct{ in, want string }{
		"nothing":             {"connected to github with 51 tools", ""},
		"known":               {"x known-canary-1 y", "x [redacted] y"},
		"known twice":         {"known-canary-1known-canary-1", "[redacted][redacted]"},
		"known in JSON":       {`{"a":"p/w&d \"q\""}`, `{"a":"[redacted]"}`},
		"known, escaped HTML": {`{"a":"p/w\u0026d \"q\""}`, `{"a":"[redacted]"}`},
		"known in a query":    {"?a=p%2Fw%26d+%22q%22&b", "?a=[redacted]&b"},
		"known but tiny":      {"a tiny thing", ""},
		"github":              {"clone with " + ghToken + " now", "clone with [redacted] now"},
		"github after \\n":    {`"line\n` + ghToken + `"`, `"line\n[redacted]"`},
		"github inside word":  {"x" + ghToken, ""},
		"openai":              {skToken + ".", "[redacted]"},
		"not openai":          {"sk-learn-is-a-library-of-python", ""},
		"our own":             {"key jct_0123456789abcdefghij", "key [redacted]"},
		"slack":               {"xoxb-123456789012-abcdef", "[redacted]"},
		"amazon":              {"id AKIAIOSFODNN7EXAMPLE.", "id [redacted]."},
		"not amazon":          {"AKIAisjustawordofsorts", ""},
		"google":              {"AIzaSyA0123456789abcdefghijklmnopqrstuv", "[redacted]"},
		"jwt":                 {"got " + jwtToken + " back", "got [redacted] back"},
		"not jwt":             {"eyJustaword and more", ""},
		"bearer":              {"Authorization: Bearer abc.def-123", "Authorization: Bearer [redacted]"},
		"bearer lower":        {"bearer 0123456789", "bearer [redacted]"},
		"bearer in a query":   {"Bearer%20abcdef123", "Bearer%20[redacted]"},
		"bearer prose":        {"Bearer authentication is required", ""},
		"basic":               {"Basic dXNlcjpwYXNzd29yZA==", "Basic [redacted]"},
		"basic prose":         {"Basic knowledge of Go, basics", ""},
		"pem":                 {"key:\n" + pemKey + "\nend", "key:\n[redacted]\nend"},
		"pem in JSON":         {`{"k":"` + strings.ReplaceAll(pemKey, "\n", `\n`) + `"}`, `{"k":"[redacted]"}`},
		"pem cut off":         {`{"k":"-----BEGIN PRIVATE KEY-----\nMIIE","b":1}`, `{"k":"[redacted]","b":1}`},
		"pem cut, nested":     {`{"k":"{\"p\":\"-----BEGIN PRIVATE KEY-----\\nMIIE\"}"}`, `{"k":"{\"p\":\"[redacted]\"}"}`},
		"certificate":         {"-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----", ""},
		"url password":        {"postgres://joe:hunter2@db/x", "postgres://joe:[redacted]@db/x"},
		"url odd password":    {"https://u:p:w%40@h", "https://u:[redacted]@h"},
		"url without":         {"https://joe@host/a:b@c http://h:80/p", ""},
		"query":               {"GET /x?access_token=abc&n=1", "GET /x?access_token=[redacted]&n=1"},
		"query, escaped":      {`"/x?n=1\u0026api_key=abc\u0026m=2"`, `"/x?n=1\u0026api_key=[redacted]\u0026m=2"`},
		"environment":         {"DB_PASSWORD=hunter2 PORT=80", "DB_PASSWORD=[redacted] PORT=80"},
		"quoted assignment":   {`password="a b" x`, `password="[redacted]" x`},
		"single quotes":       {`token='a b' x`, `token='[redacted]' x`},
		"header":              {"X-Api-Key: abc123def", "X-Api-Key: [redacted]"},
		"cookie":              {"Cookie: a=b; c=d\nHost: h", "Cookie: [redacted]\nHost: h"},
		"prose":               {"unexpected token: expected a brace", ""},
		"comparison":          {"if token == other || secret != x", ""},
		"assignment in code":  {"token := parse(x)", ""},
		"counters":            {"max_token=5 nextPageToken=abc progressToken: 17abcdefg tokens=9", ""},
		"flag":                {"run --api-key abc123def --port 80", "run --api-key [redacted] --port 80"},
		"flag with =":         {"run --token=abc --port=80", "run --token=[redacted] --port=80"},
		"flag in a list":      {`["--api-key","abc","--x","y"]`, `["--api-key","[redacted]","--x","y"]`},
		"flag, nested list":   {`"[\"--token\", \"abc\"]"`, `"[\"--token\", \"[redacted]\"]"`},
		"flag, next flag":     {"--token --verbose", ""},
		"flag, no value":      {`["--token"]`, ""},
		"flag, prose":         {"use --password to set it", ""},
		"masked already":      {`password=[redacted] {"token":"[redacted]"} Bearer [redacted] ["--token","[redacted]"] u://a:[redacted]@h`, ""},
		"empty":               {"", ""},
		"trailing separator":  {"password=", ""},
		"trailing colon":      {`"password":`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			want := tt.want
			if want == "" {
				want = tt.in
			}
			got := r.String(tt.in)
			if got != want {
				t.Errorf("String(%q)\n got %q\nwant %q", tt.in, got, want)
			}
			if again := r.String(got); again != got {
				t.Errorf("a second pass changed %q to %q", got, again)
			}
		})
	}
}

func TestRedactJSON(t *testing.T) {
	r := &Redactor{}
	for name, tt := range map[string]struct{ in, want string }{
		"spaces stay":     {`{ "a" : [ 1 , 2.50, 1e9 ] , "b":"<&>" }`, ""},
		"named":           {`{"password":"x","user":"joe"}`, `{"password":"[redacted]","user":"joe"}`},
		"spelt otherwise": {`{"clientSecret": "x", "X-API-Key" :"y", "Api Key":"z"}`, `{"clientSecret": "[redacted]", "X-API-Key" :"[redacted]", "Api Key":"[redacted]"}`},
		"escapes inside":  {`{"token":"a\"b\\","n":1}`, `{"token":"[redacted]","n":1}`},
		"number":          {`{"password": 12345, "n":1}`, `{"password": "[redacted]", "n":1}`},
		"null and bool":   {`{"token":null,"secret":true}`, ""},
		"object":          {`{"credentials":{"user":"joe","password":"x"}}`, `{"credentials":{"user":"joe","password":"[redacted]"}}`},
		"schema":          {`{"properties":{"token":{"type":"string"}}}`, ""},
		"list":            {`{"cookie":["a","b"],"n":1}`, `{"cookie":["[redacted]"],"n":1}`},
		"list, nested":    {`{"t":"{\"cookie\":[\"a\", \"b\"]}"}`, `{"t":"{\"cookie\":[\"[redacted]\"]}"}`},
		"list of objects": {`{"cookie":[{"a":1}],"token":[]}`, ""},
		"line breaks":     {"{\"token\":\n  \"x\"\n}", "{\"token\":\n  \"[redacted]\"\n}"},
		"JSON in JSON":    {`{"text":"{\"password\": \"x\\\"y\", \"n\": 1}"}`, `{"text":"{\"password\": \"[redacted]\", \"n\": 1}"}`},
		"number, nested":  {`{"text":"{\"password\": 5}"}`, `{"text":"{\"password\": \"[redacted]\"}"}`},
		"three deep":      {`"{\"a\":\"{\\\"token\\\":\\\"x\\\"}\"}"`, `"{\"a\":\"{\\\"token\\\":\\\"[redacted]\\\"}\"}"`},
		"empty value":     {`{"token":"","password":""}`, ""},
		"arguments":       {`{"name":"t","arguments":{"apiKey":"k","q":"` + ghToken + `"}}`, `{"name":"t","arguments":{"apiKey":"[redacted]","q":"[redacted]"}}`},
		"large numbers":   {`{"n":12345678901234567890,"token":"x"}`, `{"n":12345678901234567890,"token":"[redacted]"}`},
		"not JSON":        {`password=x`, `password=[redacted]`},
		"ends in string":  {`{"token":"abc`, `{"token":"[redacted]`},
		"progress":        {`{"_meta":{"progressToken":"abc123def"}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			want := tt.want
			if want == "" {
				want = tt.in
			}
			got := r.JSON(json.RawMessage(tt.in))
			if string(got) != want {
				t.Errorf("JSON(%s)\n got %s\nwant %s", tt.in, got, want)
			}
			if json.Valid([]byte(tt.in)) && !json.Valid(got) {
				t.Errorf("JSON(%s) = %s is no JSON any more", tt.in, got)
			}
		})
	}
}

func TestRedactPatterns(t *testing.T) {
	r, err := NewRedactor(RedactConfig{Redact: []string{`ACME-\d+`, `"x.*y"`}})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.String("id ACME-17 and ACME-18"); got != "id [redacted] and [redacted]" {
		t.Errorf("String = %q", got)
	}
	if got := r.JSON([]byte(`{"a":"ACME-17"}`)); string(got) != `{"a":"[redacted]"}` {
		t.Errorf("JSON = %s", got)
	}
	if got := r.JSON([]byte(`{"x":1,"b":"y"}`)); string(got) != `"[redacted]"` {
		t.Errorf("a pattern that breaks JSON: %s, want all of it masked", got)
	}
	if _, err := NewRedactor(RedactConfig{Redact: []string{"("}}); err == nil || !strings.Contains(err.Error(), "redact[0]") {
		t.Errorf("a broken pattern: %v", err)
	}
}

func TestRedactNil(t *testing.T) {
	var r *Redactor
	r.Add("secret")
	if r.String("password=x") != "password=x" || string(r.JSON([]byte(`{}`))) != "{}" || r.Error(nil) != nil {
		t.Error("a nil Redactor changes things")
	}
}

func TestRedactError(t *testing.T) {
	r := &Redactor{}
	plain := errors.New("plain")
	if got := r.Error(plain); got != plain {
		t.Errorf("Error(plain) = %v", got)
	}
	err := fmt.Errorf("GET https://u:hunter2@h/: %w", io.ErrUnexpectedEOF)
	got := r.Error(err)
	if strings.Contains(got.Error(), "hunter2") || !errors.Is(got, io.ErrUnexpectedEOF) {
		t.Errorf("Error = %v", got)
	}
}

func TestSecretName(t *testing.T) {
	for name, want := range map[string]bool{
		"password": true, "DB_PASSWORD": true, "userPwd": true, "api-key": true, "X-Api-Key": true, "OPENAI_API_KEY": true,
		"authorization": true, "Proxy-Authorization": true, "accessToken": true, "token": true, "client_secret": true, "cookie": true, "Set-Cookie": true,
		"aws_secret_access_key": true, "privateKey": true, "passphrase": true, "credentials": true, "jwt": true, "authorization_token": true, "auth": true, "pass": true,
		"tokens": false, "maxTokens": false, "progressToken": false, "nextPageToken": false, "key": false, "publicKey": false, "name": false, "author": false,
		"": false, "to": false, "monkey": false, "bypass": false, "description": false, "secretary": false,
		strings.Repeat("x", 500) + "password": true,
	} {
		if got := SecretName(name); got != want {
			t.Errorf("SecretName(%.40q) = %v, want %v", name, got, want)
		}
	}
}

// TestRedactWithoutSecretsDoesNotAllocate: text without secrets, the common
// case, is not copied.
func TestRedactWithoutSecretsDoesNotAllocate(t *testing.T) {
	r := &Redactor{}
	r.Add("known-canary-1", "another-known-secret")
	text := strings.Repeat(`{"name":"create_issue","arguments":{"title":"A bug: it breaks","body":"line\nline","labels":["a","b"],"n":12.5}} `, 20)
	raw := json.RawMessage(text)
	if n := testing.AllocsPerRun(100, func() {
		r.String(text)
		r.JSON(raw)
	}); n != 0 {
		t.Errorf("%v allocations for text without secrets, want none", n)
	}
}

func BenchmarkRedact(b *testing.B) {
	r := &Redactor{}
	r.Add("known-canary-1", "another-known-secret")
	text := strings.Repeat(`{"name":"create_issue","arguments":{"title":"A bug: it breaks","body":"line\nline","labels":["a","b"],"n":12.5}} `, 10)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r.String(text)
	}
}

func FuzzRedact(f *testing.F) {
	for _, s := range []string{
		`{"password":"x","a":["--token","y"]}`, `"{\"token\":\"x\\\"y\"}"`, `{"cookie":["a",1,"b"]}`, `{"password":-1.5e3}`,
		"postgres://a:b@c", "Bearer abc123456", ghToken, jwtToken, pemKey, `{"k":"-----BEGIN PRIVATE KEY-----\nx"}`, `{"token":"\\"}`,
		`{"a\"token":"x"}`, `{"token" : [ "a" , [ "b" ] ] }`, `{"secret":"x","x":"'token':'y'"}`, `"token=\u0041b"`, `{"'token'":1}`,
	} {
		f.Add(s)
	}
	r := &Redactor{}
	r.Add("known-canary-1", "\"quoted\"\\")
	f.Fuzz(func(t *testing.T, in string) {
		before := strings.Clone(in)
		out := r.JSON(json.RawMessage(in))
		if in != before {
			t.Fatal("the input was changed")
		}
		if json.Valid([]byte(in)) && !json.Valid(out) {
			t.Errorf("valid JSON\n %s\nbecame\n %s", in, out)
		}
		if text := r.String(in); strings.Contains(text, "known-canary-1") {
			t.Errorf("a known secret is left in %q", text)
		}
	})
}

func TestRedactorForget(t *testing.T) {
	var r Redactor
	r.Forget("nothing yet")
	r.Add("first-token", "second/token")
	r.Forget("first-token", "never known")
	if got := r.String("first-token second/token second%2Ftoken"); got != "first-token "+Redacted+" "+Redacted {
		t.Errorf("got %q", got)
	}
	var none *Redactor
	none.Forget("x")
}

// scanEvery is scan without its shortcuts: it looks for a secret at every
// position where one may begin.
func scanEvery(r *Redactor, s string) string {
	var out []byte
	k := r.known.Load()
	last := 0
	for i := 0; i < len(s); {
		start, end, mask := 0, 0, Redacted
		if n := k.at(s, i); n > 0 {
			start, end = i, i+n
		}
		if t := secretKinds[s[i]]; end == 0 && t != 0 && t != escapes &&
			(t != beginsWord || i == 0 || !isWord(s[i-1]) || escapeBefore(s, i)) {
			start, end, mask = shapeAt(s, i)
		}
		if end == 0 {
			i++
			continue
		}
		out = append(append(out, s[last:start]...), mask...)
		last, i = end, end
	}
	return string(append(out, s[last:]...))
}

// TestRedactShortcuts: scan finds the same secrets as scanEvery.
func TestRedactShortcuts(t *testing.T) {
	r := &Redactor{}
	r.Add("known-canary-1", "\"quoted\"\\", "ends\n")
	pieces := []string{
		ghToken, jwtToken, "Bearer abc123456xyz", "bAsIc dXNlcjpwYXNzd29yZA==", "sk-abcdefgh12345678", "SG.", "eyJ", "known-canary-1", `ends\n`, `\"quoted\"\\`,
		`\n`, `\u003d`, `\u003D`, "%3D", "%3d", `\`, `\\`, `%`, "be", "word", " ", `"`, ":", "=", "--token", "-", "x", "é", "token=", `"password":"`, "postgres://a:b@c", pemKey,
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50_000 {
		var b strings.Builder
		for range 1 + rng.IntN(8) {
			b.WriteString(pieces[rng.IntN(len(pieces))])
		}
		if got, want := r.String(b.String()), scanEvery(r, b.String()); got != want {
			t.Fatalf("%q\nis masked as %q\nnot as %q", b.String(), got, want)
		}
	}
}
