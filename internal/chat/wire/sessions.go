package wire

import (
	"time"

	"junctor/internal/llm"
)

// SessionInfo is a session in a list.
type SessionInfo struct {
	ID      string    `json:"id"`
	Title   string    `json:"title"`
	Model   string    `json:"model,omitempty"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
	Active  bool      `json:"active"` // a reply is in progress
	Pinned  bool      `json:"pinned,omitempty"`
	Waiting bool      `json:"waiting,omitempty"` // the reply waits for the user
	Match   string    `json:"match,omitempty"`   // in a search: the text around the match
}

// ModelInfo is a model in a list.
type ModelInfo struct {
	ID            string       `json:"id"`
	Provider      llm.Provider `json:"provider"`
	Model         string       `json:"model"`
	ContextWindow int          `json:"contextWindow"`
	Default       bool         `json:"default"`
	Documents     bool         `json:"documents,omitempty"` // it reads PDF documents
}

// SessionChange is a change of a session; nil leaves what it is about
// unchanged.
type SessionChange struct {
	Title  *string `json:"title"`
	Model  *string `json:"model"`
	Pinned *bool   `json:"pinned"`
}
