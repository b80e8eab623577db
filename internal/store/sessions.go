package store

import (
	"context"
	"encoding/json"
	"strings"
	"time"
)

// Session is one conversation of the chat host.
type Session struct {
	ID       string          `json:"id"`
	Owner    string          `json:"owner"` // tool.Caller.ID
	Title    string          `json:"title"`
	Model    string          `json:"model,omitempty"`
	Created  time.Time       `json:"created"`
	Updated  time.Time       `json:"updated"`            // set by the store on every write
	Metadata json.RawMessage `json:"metadata,omitempty"` // the chat host's own
}

// Message is one entry of a session's history.
type Message struct {
	Session string          `json:"-"`
	Seq     int64           `json:"seq"` // 1, 2, 3 … within the session; chosen by the writer
	Time    time.Time       `json:"time"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`          // neutral form
	Native  json.RawMessage `json:"native,omitempty"` // the provider's own form, with its signatures
}

// Event is one message sent to a session's connections. It is stored so that a
// client that reconnects receives the events it missed.
type Event struct {
	Session string
	Seq     int64 // 1, 2, 3 … within the session; chosen by the writer
	Time    time.Time
	Data    json.RawMessage
}

// SessionQuery selects sessions, newest change first.
type SessionQuery struct {
	Owner  string    // empty: of all owners
	Before time.Time // updated before; zero: no limit
	Text   string    // in the title or in the JSON of a message's content; ASCII letters match in either case
	Limit  int       // 0 means DefaultLimit; MaxLimit at most
}

// Pattern returns Text as patterns for LIKE with the escape character \: one
// for plain text and one for text inside a JSON string.
func (q SessionQuery) Pattern() (plain, quoted string) {
	escape := strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`)
	inJSON := q.Text
	if raw, err := json.Marshal(q.Text); err == nil {
		inJSON = strings.Trim(string(raw), `"`)
	}
	return "%" + escape.Replace(q.Text) + "%", "%" + escape.Replace(inJSON) + "%"
}

// Rows returns the effective limit.
func (q SessionQuery) Rows() int { return CallQuery{Limit: q.Limit}.Rows() }

// Sessions stores conversations. A session has one writer at a time, which
// numbers its records; a second writer gets ErrConflict, because its numbers
// are taken. Changes are announced under [TopicSession].
type Sessions interface {
	// CreateSession adds a session; ErrConflict when the id is in use.
	CreateSession(ctx context.Context, s Session) error

	// Session returns one, or ErrNotFound.
	Session(ctx context.Context, id string) (Session, error)

	// Sessions returns the sessions that match, newest change first.
	Sessions(ctx context.Context, q SessionQuery) ([]Session, error)

	// UpdateSession atomically reads a session, lets change modify its title,
	// model, owner and metadata, and writes it. If change returns an error,
	// UpdateSession returns it and writes nothing. change may run more than
	// once and must not use the store.
	UpdateSession(ctx context.Context, id string, change func(*Session) error) (Session, error)

	// DeleteSession deletes a session with its messages and events. A session
	// that does not exist is not an error.
	DeleteSession(ctx context.Context, id string) error

	// AppendMessages adds messages to a session's history, all or none;
	// ErrNotFound without the session, ErrConflict when a number is in use.
	AppendMessages(ctx context.Context, session string, msgs ...Message) error

	// Messages returns the history after a number, oldest first; limit 0
	// means all.
	Messages(ctx context.Context, session string, after int64, limit int) ([]Message, error)

	// AppendEvents adds events, all or none, with the errors of
	// AppendMessages. It does not count as a change of the session.
	AppendEvents(ctx context.Context, session string, events ...Event) error

	// Events returns the events after a number, oldest first; limit 0 means
	// all.
	Events(ctx context.Context, session string, after int64, limit int) ([]Event, error)

	// TrimEvents deletes the events up to and including a number.
	TrimEvents(ctx context.Context, session string, upTo int64) error
}
