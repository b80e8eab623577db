// Package search finds tools by words and by meaning.
//
// An [Index] contains the tools of all upstreams and ranks them for a free-text
// query, in process and without a network: a fielded lexical ranking with
// synonyms, compounds and corrected misspellings is combined with the vector
// similarity of a static word table that is part of the binary. All tools of an
// upstream are replaced together. A query sees all updates that precede it; a
// query in flight continues on the state it started with.
//
// The exact name of a tool always ranks first, equal input gives equal output,
// and every text is either answered or refused with a clear error. The package
// does not depend on upstreams, callers or the store: what it needs of them is
// part of the query ([Query.Keep], [Query.Signals]).
package search
