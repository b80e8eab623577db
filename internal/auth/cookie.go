package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"time"
)

// CookieName is the cookie with which the page is signed in.
const CookieName = "junctor_session"

// cookieLife is how long a sign-in lasts.
const cookieLife = 30 * 24 * time.Hour

// A cookie is the hash of the key that was used to sign in, the time at which
// the cookie ends, and a MAC over both. It opens what the key opens, for as
// long as the key does; who reads it learns no key.
const cookieBytes = sha256.Size + 8 + sha256.Size

type cookieJar struct{ secret []byte }

func (j cookieJar) mac(b []byte) []byte {
	m := hmac.New(sha256.New, j.secret)
	m.Write([]byte("junctor cookie 1\x00"))
	m.Write(b)
	return m.Sum(nil)
}

func (j cookieJar) seal(keyHash []byte, until time.Time) string {
	b := make([]byte, 0, cookieBytes)
	b = append(b, keyHash...)
	b = binary.BigEndian.AppendUint64(b, uint64(until.Unix()))
	b = append(b, j.mac(b)...)
	return base64.RawURLEncoding.EncodeToString(b)
}

// open returns the key's hash, or false for a cookie that is not ours or has
// ended.
func (j cookieJar) open(value string, now time.Time) ([]byte, bool) {
	b, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil || len(b) != cookieBytes {
		return nil, false
	}
	body, mac := b[:sha256.Size+8], b[sha256.Size+8:]
	if !hmac.Equal(mac, j.mac(body)) {
		return nil, false
	}
	if until := int64(binary.BigEndian.Uint64(body[sha256.Size:])); now.Unix() >= until {
		return nil, false
	}
	return body[:sha256.Size], true
}

func (j cookieJar) set(w http.ResponseWriter, r *http.Request, keyHash []byte) {
	until := time.Now().Add(cookieLife)
	http.SetCookie(w, j.cookie(r, j.seal(keyHash, until), int(cookieLife.Seconds())))
}

func (j cookieJar) drop(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, j.cookie(r, "", -1))
}

func (j cookieJar) cookie(r *http.Request, value string, age int) *http.Cookie {
	return &http.Cookie{
		Name: CookieName, Value: value, Path: "/", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https",
	}
}
