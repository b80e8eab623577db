package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"junctor/internal/chat/wire"
	"junctor/internal/httperr"
	"junctor/internal/llm"
	"junctor/internal/store"
	"junctor/internal/tool"
)

// Routes registers the chat's routes.
func (h *Host) Routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /ws", h.ServeWS)
	mux.HandleFunc("GET /api/models", httperr.JSON(h.listModels))
	mux.HandleFunc("GET /api/sessions", httperr.JSON(h.listSessions))
	mux.HandleFunc("GET /api/sessions/{id}", httperr.JSON(h.showSession))
	mux.HandleFunc("PATCH /api/sessions/{id}", httperr.JSON(h.changeSession))
	mux.HandleFunc("DELETE /api/sessions/{id}", httperr.JSON(h.deleteSession))
	mux.HandleFunc("GET /api/sessions/{id}/export", h.exportSession)
	mux.HandleFunc("POST /api/sessions/{id}/title", httperr.JSON(h.makeTitle))
}

func (h *Host) listModels(*http.Request) (any, error) {
	out := struct {
		Models  []wire.ModelInfo `json:"models"`
		Message string           `json:"message,omitempty"`
	}{Models: []wire.ModelInfo{}}
	if set := h.Models(); set != nil {
		for i, m := range set.All() {
			info := m.Info()
			out.Models = append(out.Models, wire.ModelInfo{
				ID: info.ID, Provider: info.Provider, Model: info.Model, ContextWindow: info.ContextWindow,
				Default: i == 0, Documents: info.Provider.TakesDocuments(),
			})
		}
	}
	if len(out.Models) == 0 {
		out.Message = llm.NoModel
	}
	return out, nil
}

// List returns the caller's sessions, most recently changed first.
func (h *Host) List(ctx context.Context, caller tool.Caller, before time.Time, limit int) ([]wire.SessionInfo, error) {
	list, err := h.sessionsOf(ctx, &caller, store.SessionQuery{Before: before, Limit: limit})
	if err != nil {
		return nil, err
	}
	out := make([]wire.SessionInfo, 0, len(list))
	for _, rec := range list {
		out = append(out, h.info(rec))
	}
	return out, nil
}

func (h *Host) info(rec store.Session) wire.SessionInfo {
	meta, _ := metadataOf(&rec) // a session whose metadata cannot be parsed is still listed
	info := wire.SessionInfo{ID: rec.ID, Title: rec.Title, Model: rec.Model, Created: rec.Created.UTC(), Updated: rec.Updated.UTC(), Active: meta.Turn.Active, Pinned: meta.Pinned}
	if s := h.loaded(rec.ID); s != nil {
		info.Active, info.Waiting = s.Active(), s.waiting()
	}
	return info
}

func (h *Host) listSessions(r *http.Request) (any, error) {
	q := r.URL.Query()
	var before time.Time
	var err error
	if v := q.Get("before"); v != "" {
		if before, err = time.Parse(time.RFC3339Nano, v); err != nil {
			return nil, invalid(`before must be a time in RFC 3339 format, such as the value of "updated" in a session`)
		}
	}
	limit := 0
	if v := q.Get("limit"); v != "" {
		if limit, err = strconv.Atoi(v); err != nil || limit < 1 {
			return nil, invalid("limit must be a number above 0")
		}
	}
	var list []wire.SessionInfo
	if text := strings.TrimSpace(q.Get("q")); text != "" {
		list, err = h.Search(r.Context(), tool.CallerFrom(r.Context()), text, limit)
	} else {
		list, err = h.List(r.Context(), tool.CallerFrom(r.Context()), before, limit)
	}
	return map[string]any{"sessions": list}, err
}

// ownSession returns the record of a session that belongs to the caller.
func (h *Host) ownSession(ctx context.Context, caller tool.Caller, id string) (store.Session, error) {
	rec, err := h.Store.Session(ctx, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && !recordReadable(&caller, &rec) {
		return store.Session{}, &tool.Error{Kind: tool.MethodNotFound, Msg: "there is no such session"}
	}
	if err != nil {
		return store.Session{}, unavailable(err)
	}
	return rec, nil
}

// openOwn returns the session that a request names and its record.
func (h *Host) openOwn(r *http.Request) (store.Session, *Session, error) {
	caller := tool.CallerFrom(r.Context())
	rec, err := h.ownSession(r.Context(), caller, r.PathValue("id"))
	if err != nil {
		return store.Session{}, nil, err
	}
	s, err := h.Open(r.Context(), caller, rec.ID)
	return rec, s, err
}

// conversation is a session with its messages.
type conversation struct {
	wire.SessionInfo
	Messages []wire.HistoryMessage `json:"messages"`
}

func (h *Host) showSession(r *http.Request) (any, error) {
	rec, s, err := h.openOwn(r)
	if err != nil {
		return nil, err
	}
	return conversation{h.info(rec), s.History().Messages}, nil
}

// maxTitle bounds a title, in bytes.
const maxTitle = 200

// Change changes a session.
func (h *Host) Change(ctx context.Context, caller tool.Caller, id string, c wire.SessionChange) (wire.SessionInfo, error) {
	title, model := c.Title, c.Model
	if _, err := h.ownSession(ctx, caller, id); err != nil {
		return wire.SessionInfo{}, err
	}
	if title != nil {
		clean := strings.Join(strings.Fields(*title), " ")
		if clean == "" || len(clean) > maxTitle {
			return wire.SessionInfo{}, invalid(fmt.Sprintf("a title has 1 to %d bytes", maxTitle))
		}
		title = &clean
	}
	if model != nil {
		if err := h.checkModel(*model); err != nil {
			return wire.SessionInfo{}, err
		}
	}
	if c.Pinned != nil && *c.Pinned {
		if err := h.mayPin(ctx, caller.ID); err != nil {
			return wire.SessionInfo{}, err
		}
	}
	change := func(s *store.Session) error {
		if title != nil {
			s.Title = *title
		}
		if model != nil {
			s.Model = *model
		}
		if c.Pinned == nil {
			return nil
		}
		return changeMetadata(s, func(m *metadata) { m.Pinned = *c.Pinned })
	}
	s := h.loaded(id)
	if h.Shared { // it may have watchers on other nodes
		s, _ = h.Open(ctx, caller, id) // if this fails, they are not notified
	}
	var rec store.Session
	var err error
	if s != nil {
		rec, err = s.updateRecord(ctx, change)
	} else {
		rec, err = h.Store.UpdateSession(ctx, id, change)
	}
	if err != nil {
		return wire.SessionInfo{}, unavailable(err)
	}
	return h.info(rec), nil
}

// mayPin returns an error if the caller has pinned so many sessions that
// maxSessions leaves no room for unpinned ones.
func (h *Host) mayPin(ctx context.Context, owner string) error {
	limit := h.config().MaxSessions
	if limit <= 0 {
		return nil
	}
	list, err := h.Store.Sessions(ctx, store.SessionQuery{Owner: owner, Limit: limit + 50})
	if err != nil {
		return unavailable(err)
	}
	n := 0
	for _, rec := range list {
		if meta, _ := metadataOf(&rec); meta.Pinned {
			n++
		}
	}
	if n >= limit-1 {
		return invalid(fmt.Sprintf("%d sessions are pinned, and chat.maxSessions is %d; unpin one first", n, limit))
	}
	return nil
}

func (h *Host) changeSession(r *http.Request) (any, error) {
	var in wire.SessionChange
	r.Body = http.MaxBytesReader(nil, r.Body, 64<<10)
	if err := httperr.ReadJSON(r, &in, &tool.Error{Kind: tool.ParseFailed, Msg: `the body must be JSON with "title", "model" or "pinned"`}); err != nil {
		return nil, err
	}
	return h.Change(r.Context(), tool.CallerFrom(r.Context()), r.PathValue("id"), in)
}

// Delete deletes a session and ends its reply in progress.
func (h *Host) Delete(ctx context.Context, caller tool.Caller, id string) error {
	if _, err := h.ownSession(ctx, caller, id); err != nil {
		return err
	}
	return unavailable(h.remove(ctx, id))
}

func (h *Host) deleteSession(r *http.Request) (any, error) {
	return nil, h.Delete(r.Context(), tool.CallerFrom(r.Context()), r.PathValue("id"))
}

func (h *Host) exportSession(w http.ResponseWriter, r *http.Request) {
	rec, s, err := h.openOwn(r)
	if err != nil {
		httperr.Write(w, r, err)
		return
	}
	name := "conversation-" + rec.Created.UTC().Format("2006-01-02")
	switch format := r.URL.Query().Get("format"); format {
	case "", "md", "markdown":
		w.Header().Set("Content-Type", "text/markdown; charset=utf-8")
		w.Header().Set("Content-Disposition", `attachment; filename="`+name+`.md"`)
		_, _ = io.WriteString(w, wire.Markdown(h.info(rec), s.History()))
	case "json":
		w.Header().Set("Content-Disposition", `attachment; filename="`+name+`.json"`)
		httperr.Reply(w, conversation{h.info(rec), s.History().Messages})
	default:
		httperr.Write(w, r, invalid("format must be md or json"))
	}
}
