package doctor

import (
	"regexp"
	"strings"
)

var (
	// npxFolder is the folder of one package in npx's cache.
	npxFolder = regexp.MustCompile(`(?:file://)?([^\s'"(]*[/\\]_npx[/\\][0-9a-f]+)`)
	// npxFault matches what Node.js and npm print if such a folder is
	// incomplete or locked because an install was interrupted.
	npxFault = regexp.MustCompile(`ERR_MODULE_NOT_FOUND|MODULE_NOT_FOUND|Cannot find (?:module|package)|ECOMPROMISED|concurrency\.lock|ENOTEMPTY`)
)

// brokenNpxCache reports whether a program failed because of the remains of an
// interrupted install in npx's cache, and returns how to remove them.
func brokenNpxCache(lines []string) (do string, broken bool) {
	text := strings.Join(lines, "\n")
	folder := npxFolder.FindStringSubmatch(text)
	if folder == nil || !npxFault.MatchString(text) {
		return "", false
	}
	return "delete " + folder[1] + ", then try again with junctor servers list; npx installs the package anew", true
}
