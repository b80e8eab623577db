package search

// weights are the parameters of the ranking. There are few, and the figures in
// docs/search.md change little when one is halved or doubled, because the
// ranking must work for tools that it was not tuned on.
type weights struct {
	// The weight of a word by field. The first sentence of a description is
	// counted again as part of the whole.
	name, title, server, tags    float32
	sentence, description        float32
	parameterName, parameterText float32
	serverText                   float32

	saturation float32 // the k1 of BM25: the count at which half of the weight is reached
	length     float32 // the b of BM25: the penalty of long texts

	synonym, typo, joined float32 // factors for matches other than the word itself
	unknown               float32 // factor for an English word that occurs in no tool
	number                float32 // factor for a number, which is a value rather than a subject

	importance float32 // exponent of a word's weight in the table, which was trained on other texts

	nameMatch float32 // for the part of a tool's name that the query covers
	namePrior float32 // added to a name's mass, so that short names gain less
	meaning   float32 // for the cosine similarity of query and tool
	product   float32 // for a server whose name is in the query and is not a common word
	action    float32 // penalty of a tool that changes something when the query is a question

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

// The typical lengths of fields, in words. They are constants, so that a tool's
// score does not depend on other tools.
const (
	typicalSentence       = 12
	typicalDescription    = 40
	typicalParameterNames = 12
	typicalParameterTexts = 40
	typicalServerText     = 12
)
