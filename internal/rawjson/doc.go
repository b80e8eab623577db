// Package rawjson reads and changes single values of JSON text and leaves all
// other bytes unchanged.
//
// It finds values in place: only functions that return changed text copy
// anything. It accepts exactly what encoding/json accepts (a fuzz test compares
// them), down to a depth that the caller sets. Of a repeated member the last
// one counts, as in encoding/json.
//
// Functions named Trusted… read JSON that was checked before and do not check
// it again. For other input the result of all functions is undefined, but they
// never panic.
//
// The package has no state and imports no other package of the project. Start
// reading at [Field] and [SkipValue].
package rawjson
