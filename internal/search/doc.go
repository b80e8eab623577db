// Package search finds tools by words and by meaning.
//
// An [Index] holds the tools of all upstreams and ranks them for a free-text
// query, in process and without a network: a fielded lexical ranking with
// synonyms, compounds and corrected misspellings, fused with the likeness of
// a static word table that is part of the binary. An upstream's tools are
// replaced as a whole; a query after an update sees it, and a query in flight
// keeps the state it started with.
//
// It promises that the exact name of a tool always comes first, that equal
// input gives equal output, and that any text at all is answered or refused
// with a clear error. It knows no upstream, no caller and no store: what it
// should know of them comes with the query ([Query.Keep], [Query.Signals]).
package search
