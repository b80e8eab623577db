package search

// Explanation lists the parts of a tool's score. Results are ordered by score,
// and their relevance is derived from it.
type Explanation struct {
	// Score is Words + NameMatch + Server + Meaning + Action + Signals.
	Score float64 `json:"score"`

	Named     bool    `json:"named,omitempty"`   // the query is the tool's name; such a tool comes before all others
	Words     float64 `json:"words"`             // score of the query's words, as a share of the maximum
	NameMatch float64 `json:"nameMatch"`         // score for the share of the tool's name that the query contains
	Server    float64 `json:"server,omitempty"`  // score for a server that the query names
	Meaning   float64 `json:"meaning"`           // score for the similarity of meaning
	Cosine    float64 `json:"cosine"`            // cosine similarity of the vectors of query and tool, on which Meaning is based
	Action    float64 `json:"action,omitempty"`  // negative score for a tool that makes changes when the query is a question
	Signals   float64 `json:"signals,omitempty"` // score for usage and health
	Signal    *Signal `json:"signal,omitempty"`  // usage and health on which Signals is based; absent if signals are disabled

	// Clause is the clause of the query that found the tool. Absent if the query
	// as a whole found it.
	Clause string `json:"clause,omitempty"`

	Matches   []Match  `json:"matches"`             // words of the query that the tool contains, in their order
	Unmatched []string `json:"unmatched,omitempty"` // words of the query that the tool does not contain
}

// Match is a word of the query that the tool contains.
type Match struct {
	Word   string   `json:"word"`   // the word in the query
	Term   string   `json:"term"`   // the stem that it matched
	How    string   `json:"how"`    // exact, synonym, spelling, compound or phrase
	Fields []string `json:"fields"` // where it matched: name, title, server, description, parameter or tag
	Score  float64  `json:"score"`  // its share of Words
}

// explain recomputes the parts of a score.
func (ix *Index) explain(s *snapshot, p *plan, q *Query, c candidate) *Explanation {
	e := &Explanation{Score: float64(c.score), Named: c.tier != noNameMatch}
	var sum accumulator
	for i := range p.words {
		w := &p.words[i]
		best := Match{Word: w.text}
		var value, named float32
		for _, a := range w.alternatives {
			mass := w.maxScore(s, a)
			for _, en := range s.toolEntries(c.tool) {
				if en.term != a.term {
					continue
				}
				if v := mass / 255 * float32(en.impact); v > value {
					value = v
					best.Term, best.How, best.Fields = s.terms.terms[a.term], reasonNames[a.why], fieldList(en.fields)
				}
				if en.fields&inName != 0 {
					named = max(named, mass)
				}
				if en.fields&inServer != 0 && a.why.named() {
					sum.product = max(sum.product, a.weight*s.product[a.term])
				}
			}
		}
		if value == 0 {
			e.Unmatched = append(e.Unmatched, w.text)
			continue
		}
		best.Score = float64(value * p.perIdeal)
		e.Matches = append(e.Matches, best)
		sum.score += value
		sum.name += named
	}
	t := int(c.tool)
	cos := s.cosineOf(p, t)
	x := ix.w.parts(s, p, t, &sum, cos)
	e.Words, e.NameMatch, e.Server = float64(x.words), float64(x.name), float64(x.server)
	e.Meaning, e.Action = float64(x.meaning), float64(x.action)
	e.Cosine = float64(cos)
	if q.Signals != nil {
		g := q.Signals(s.names[t])
		e.Signal = &g
		e.Signals = float64(g.shift())
	}
	return e
}

func fieldList(fields uint8) []string {
	var list []string
	for i, name := range fieldNames {
		if fields&(1<<i) != 0 {
			list = append(list, name)
		}
	}
	return list
}
