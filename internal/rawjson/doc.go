// Package rawjson reads and changes single values of JSON text and leaves every
// other byte as it came.
//
// It finds values where they lie: nothing is built, and nothing is copied
// except by the functions that return changed text. It accepts exactly what
// encoding/json accepts (a fuzz test compares them), down to a depth that the
// caller sets. Of a repeated member the last one counts, as in encoding/json.
//
// Functions named Trusted… walk through JSON that was checked before and check
// nothing again. On other bytes all functions find what they find, and never
// panic.
//
// The package holds no state and imports nothing of the project. Start reading
// at [Field] and, below it, [SkipValue].
package rawjson
