// Package llmtest is a scripted model that speaks the providers' wire formats:
// OpenAI chat completions, OpenAI responses, Gemini and Anthropic messages,
// streaming and not.
//
// The official SDKs can read its responses, and it validates requests as
// strictly as the real services: tool results that are missing, orphaned or
// misplaced, illegal tool names, lost thought signatures and a prompt beyond
// the context window are rejected with the provider's own error. A conversation
// that it accepts is one that the provider accepts.
//
// Replies are defined by a [Script]. Its rules match on the conversation, so
// that a whole tool loop, or many concurrent ones, needs no shared state. The
// command llmscript serves a script to programs in other languages. Only tests
// use this package.
package llmtest
