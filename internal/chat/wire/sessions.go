package wire

import (
	"time"

	"junctor/internal/llm"
)

// SessionInfo describes a conversation without its messages.
type SessionInfo struct {
	ID      string    `json:"id"`
	Title   string    `json:"title"`
	Model   string    `json:"model,omitempty"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"` // when the conversation was last changed
	Active  bool      `json:"active"`  // a reply is in progress
	Pinned  bool      `json:"pinned,omitempty"`
	Waiting bool      `json:"waiting,omitempty"` // the reply is waiting for the user
	Match   string    `json:"match,omitempty"`   // in search results: the text around the match
}

// ModelInfo describes a model of the chat.
type ModelInfo struct {
	ID            string       `json:"id"`
	Provider      llm.Provider `json:"provider"`
	Model         string       `json:"model"`
	ContextWindow int          `json:"contextWindow"`       // in tokens
	Default       bool         `json:"default"`             // the default model
	Documents     bool         `json:"documents,omitempty"` // the model reads PDF documents
}

// SessionChange is a change to a conversation. Fields that are not set remain
// unchanged.
type SessionChange struct {
	Title  *string `json:"title"`
	Model  *string `json:"model"`
	Pinned *bool   `json:"pinned"`
}
