// Package llmtest is a scripted model that speaks the providers' wire formats:
// OpenAI chat completions, OpenAI responses, Gemini and Anthropic messages,
// streaming and not.
//
// It promises two things. What it sends, the official SDKs read; what it is
// sent, it checks as strictly as the real service does: tool results that are
// missing, orphaned or out of place, illegal tool names, lost thought
// signatures and a prompt beyond the window are refused with the provider's
// own error. A conversation that it accepts is one that the provider accepts.
//
// Answers come from a [Script]: rules that look at the conversation, so that
// a whole tool loop, or many at once, runs without shared state. The command
// llmscript serves a script to programs in other languages. Only tests use
// this package.
package llmtest
