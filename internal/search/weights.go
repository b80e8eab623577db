package search

// weights are the knobs of the ranking. There are few, and the figures in
// docs/search.md move little when one of them is halved or doubled: the
// ranking is meant for tools that nobody tuned it on.
type weights struct {
	// How much a word counts by where it stands. The first sentence of a
	// description counts again as part of the whole.
	name, title, server, tags    float32
	sentence, description        float32
	parameterName, parameterText float32
	serverText                   float32

	saturation float32 // the k1 of BM25: the count that is worth one half
	length     float32 // the b of BM25: how much long texts are held back

	synonym, typo, joined float32 // what a match counts that is not the word itself
	unknown               float32 // the share of a word that is English but in no tool
	number                float32 // the share of a number, which is a value rather than a subject

	importance float32 // the power of a word's weight in the table, which was learnt from other texts

	nameMatch float32 // for a tool's name that the query covers
	namePrior float32 // added to a name's mass, so that short names gain less
	meaning   float32 // for the cosine of query and tool
	product   float32 // for a server whose name is in the query, when it is a name and no common word
	action    float32 // against a tool that changes something when the query only asks

	vectorName, vectorServer, vectorDescription, vectorParameter float32
}

func defaultWeights() weights {
	return weights{
		name: 1.5, title: 1.5, server: 3, tags: 1,
		sentence: 1, description: 1,
		parameterName: 0.5, parameterText: 0.25,
		serverText: 0.25,

		saturation: 0.7,
		length:     0.3,

		synonym: 0.8, typo: 0.6, joined: 0.9,
		unknown: 0.4,
		number:  0.3,

		importance: 0.75,

		nameMatch: 0.35,
		namePrior: 4,
		meaning:   1.1,
		product:   0.2,
		action:    0.1,

		vectorName: 1.5, vectorServer: 1, vectorDescription: 1, vectorParameter: 0.3,
	}
}

// The lengths, in words, that texts of a field usually have. They are fixed
// so that a tool's score does not hang on its neighbours.
const (
	usualSentence       = 12
	usualDescription    = 40
	usualParameterNames = 12
	usualParameterTexts = 40
	usualServerText     = 12
)
