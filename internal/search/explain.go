package search

// Explanation lists the parts of a tool's score. The score orders the hits;
// Relevance is derived from it.
type Explanation struct {
	// Score is Words + NameMatch + Server + Meaning + Action + Signals.
	Score float64 `json:"score"`

	Named     bool    `json:"named,omitempty"`   // the query is the tool's name, which comes before any score
	Words     float64 `json:"words"`             // the share that the tool reaches of what the query's words could count
	NameMatch float64 `json:"nameMatch"`         // for the part of the tool's name that the query covers
	Server    float64 `json:"server,omitempty"`  // for a server that the query names
	Meaning   float64 `json:"meaning"`           // for the likeness of meaning
	Cosine    float64 `json:"cosine"`            // that likeness: of the vectors of query and tool
	Action    float64 `json:"action,omitempty"`  // below zero for a tool that changes something when the query only asks
	Signals   float64 `json:"signals,omitempty"` // usage and state
	Signal    *Signal `json:"signal,omitempty"`  // what Signals is made from; nil when they are off

	// Clause is the part of the query that found the tool, if the query has
	// several clauses.
	Clause string `json:"clause,omitempty"`

	Matches   []Match  `json:"matches"`             // in the order of the query's words
	Unmatched []string `json:"unmatched,omitempty"` // words of the query that the tool does not have
}

// Match is a word of the query that occurs in the tool.
type Match struct {
	Word   string   `json:"word"`   // as the query has it
	Term   string   `json:"term"`   // the stem that was found
	How    string   `json:"how"`    // exact, synonym, spelling, compound, phrase
	Fields []string `json:"fields"` // where: name, title, server, description, parameter, tag
	Score  float64  `json:"score"`  // its part of Words
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
