package chat

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"junctor/internal/chat/wire"
	"junctor/internal/llm"
	"junctor/internal/store"
)

// Session is one conversation. It is safe for concurrent use and may have
// several watchers.
type Session struct {
	host     *Host
	id       string
	recordMu sync.Mutex // held while the session is reloaded or its record is changed
	owner    string
	created  time.Time

	mu       sync.Mutex
	stored   bool      // there is a record in the store
	updated  time.Time // of the newest record that was read; zero if none was
	title    string
	model    string         // chosen by the user; empty means the default
	all      []historyEntry // every message, in order
	entries  []historyEntry // those of the current branch
	meta     metadata
	turn     *turn // the reply in progress, or nil
	active   time.Time
	grace    *time.Timer
	gauge    llm.Gauge
	reduced  reducedBudget
	foreign  bool // another process writes this session
	deleted  bool
	outbox   outbox
	watchers map[*Watcher]struct{}
	follow   context.CancelFunc // stops following another process
}

// reducedBudget is the maximum number of tokens of the history for a model that
// rejected a longer one. It does not apply to other models.
type reducedBudget struct {
	model  string
	tokens int
}

// historyEntry is one message of the history with its metadata.
type historyEntry struct {
	seq     int64
	time    time.Time
	message llm.Message
	messageMeta
}

// messageMeta is the metadata of a stored message.
type messageMeta struct {
	ID     string     `json:"id"`
	Parts  []llm.Part `json:"parts"`
	Model  string     `json:"model,omitempty"`
	Usage  *llm.Usage `json:"usage,omitempty"`
	Notice string     `json:"notice,omitempty"`
	Parent *int64     `json:"parent,omitempty"` // nil means the message before it
}

// The notices.
const (
	noticeInterrupted = "interrupted" // the process died
	noticeAborted     = "aborted"     // the user stopped the reply
	noticeBroken      = "broken"      // the model failed during the reply
)

// metadata is the part of a stored session that only chat uses.
type metadata struct {
	Seq      int64     `json:"seq"` // of the last event when this was written
	Turn     turnMark  `json:"turn"`
	Summary  summary   `json:"summary,omitzero"`
	Allow    []string  `json:"allow,omitempty"`    // tools approved for this session
	Sampling []string  `json:"sampling,omitempty"` // servers that may use the model in this session
	Usage    llm.Usage `json:"usage,omitzero"`
	Leaf     int64     `json:"leaf,omitempty"` // the end of the current branch; 0 means the newest message
	Pinned   bool      `json:"pinned,omitempty"`
	Profiles []string  `json:"profiles,omitempty"` // with which every message was written

	Preferences wire.Preferences `json:"preferences,omitzero"`
}

// turnMark is the beginning of the latest turn.
type turnMark struct {
	Active  bool  `json:"active,omitempty"`
	Event   int64 `json:"event,omitempty"`   // its first event
	Before  int64 `json:"before,omitempty"`  // the first event of the turn before it
	Message int64 `json:"message,omitempty"` // its first message
}

// summary replaces the messages up to a sequence number.
type summary struct {
	UpTo int64  `json:"upTo"`
	Text string `json:"text"`
}

// ID returns the session's id.
func (s *Session) ID() string { return s.id }

// Model returns the id of the model of the session, or "" if there is none.
func (s *Session) Model() string {
	s.mu.Lock()
	id := s.model
	s.mu.Unlock()
	if m := s.host.model(id); m != nil {
		return m.Info().ID
	}
	return ""
}

// Active reports whether a reply is in progress, here or in another process.
func (s *Session) Active() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turn != nil || s.foreign && s.meta.Turn.Active
}

// waiting reports whether the reply waits for the user: for an approval, or for
// an answer to a question.
func (s *Session) waiting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turn != nil && len(s.turn.approvals)+len(s.turn.questions) > 0
}

// changeWaiting changes what the reply waits for, and notifies the watchers.
func (s *Session) changeWaiting(change func()) {
	s.mu.Lock()
	change()
	s.mu.Unlock()
	s.host.changes.Wake(topicWaiting)
}

// isStored reports whether the session has messages.
func (s *Session) isStored() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stored
}

func (s *Session) idleSince(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.watchers) > 0 || s.turn != nil {
		return 0
	}
	return now.Sub(s.active)
}

// append adds a message to the store and then to the history.
func (s *Session) append(ctx context.Context, m llm.Message, a messageMeta) error {
	s.mu.Lock()
	seq, parent := s.nextSeq(), int64(0)
	if n := len(s.entries); n > 0 {
		parent = s.entries[n-1].seq
	}
	s.mu.Unlock()
	if parent != seq-1 {
		a.Parent = &parent
	}
	if a.ID == "" {
		a.ID = newID("msg")
	}
	a.Parts = m.Parts
	content, err := json.Marshal(a)
	if err != nil {
		return err
	}
	rec := store.Message{Session: s.id, Seq: seq, Time: time.Now(), Role: string(m.Role), Content: content}
	if m.Native != nil {
		if rec.Native, err = json.Marshal(m.Native); err != nil {
			return err
		}
	}
	if err := s.host.Store.AppendMessages(ctx, s.id, rec); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := historyEntry{seq: seq, time: rec.Time, message: m, messageMeta: a}
	s.all, s.entries = append(s.all, e), append(s.entries, e)
	return nil
}

// nextSeq returns the sequence number of the next message. s.mu is held.
func (s *Session) nextSeq() int64 {
	if n := len(s.all); n > 0 {
		return s.all[n-1].seq + 1
	}
	return 1
}

// save changes the session's metadata in memory and in the store. It leaves the
// other stored fields unchanged, because any process may change the pin, the
// preferences and the profiles at any time.
func (s *Session) save(ctx context.Context, change func(*metadata)) error {
	s.mu.Lock()
	change(&s.meta)
	s.meta.Seq = max(s.meta.Seq, s.outbox.last())
	seq := s.meta.Seq
	s.mu.Unlock()
	return s.updateMetadata(ctx, func(m *metadata) {
		change(m)
		m.Seq = max(m.Seq, seq)
	})
}

// updateMetadata changes the stored metadata. Any process may do so, with or
// without the lease of the session.
func (s *Session) updateMetadata(ctx context.Context, change func(*metadata)) error {
	_, err := s.host.Store.UpdateSession(ctx, s.id, func(rec *store.Session) error { return changeMetadata(rec, change) })
	return err
}

// updateRecord changes the stored session and notifies all watchers. Any process
// may do so, with or without the lease of the session.
func (s *Session) updateRecord(ctx context.Context, change func(*store.Session) error) (store.Session, error) {
	s.recordMu.Lock() // so that changes are announced in order
	defer s.recordMu.Unlock()
	rec, err := s.host.Store.UpdateSession(ctx, s.id, change)
	if err == nil {
		err = s.applyRecord(&rec)
	}
	if err != nil {
		return rec, err
	}
	s.announce()
	return rec, nil
}

// readRecord reads the record from the store and applies the changes of other
// processes.
func (s *Session) readRecord(ctx context.Context) error {
	rec, err := s.host.Store.Session(ctx, s.id)
	if err != nil {
		return err
	}
	return s.applyRecord(&rec)
}

// applyRecord applies the fields of a record that any process may change at any
// time.
func (s *Session) applyRecord(rec *store.Session) error {
	meta, err := metadataOf(rec)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applyNewer(rec, &meta)
	return nil
}

// applyNewer is applyRecord with the metadata of the record. A record older
// than the newest one applied only removes profiles, which are never added
// again. If the times are equal, the record applied last wins. s.mu is held.
func (s *Session) applyNewer(rec *store.Session, meta *metadata) {
	if !rec.Updated.Before(s.updated) {
		s.title, s.model, s.meta.Preferences, s.updated = rec.Title, rec.Model, meta.Preferences, rec.Updated
	}
	s.keepProfiles(meta.Profiles)
}

// announce notifies all watchers of the session's title, model and preferences.
func (s *Session) announce() {
	s.mu.Lock()
	payload := wire.SessionPayload{Title: s.title, Model: s.model, Preferences: s.meta.Preferences}
	s.mu.Unlock()
	s.emit(wire.TypeSession, payload)
}

// metadataOf returns the metadata of a stored session.
func metadataOf(rec *store.Session) (meta metadata, err error) {
	if len(rec.Metadata) == 0 {
		return meta, nil
	}
	if err := json.Unmarshal(rec.Metadata, &meta); err != nil {
		return metadata{}, err
	}
	return meta, nil
}

// changeMetadata changes the metadata of a stored session.
func changeMetadata(rec *store.Session, change func(*metadata)) error {
	meta, err := metadataOf(rec)
	if err != nil {
		return err
	}
	change(&meta)
	raw, err := json.Marshal(meta)
	if err == nil {
		rec.Metadata = raw
	}
	return err
}
