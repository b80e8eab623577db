package mcp

// severities ranks the levels of log messages.
var severities = map[string]int{"debug": 1, "info": 2, "notice": 3, "warning": 4, "error": 5, "critical": 6, "alert": 7, "emergency": 8}

// ValidLogLevel reports whether level is one of MCP's.
func ValidLogLevel(level string) bool { return severities[level] > 0 }

// LessSevere reports whether a log level is less severe than threshold. It
// reports false for an unknown level.
func LessSevere(level, threshold string) bool {
	rank := severities[level]
	return rank > 0 && rank < severities[threshold]
}
