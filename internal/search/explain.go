package search

// Explanation says why a tool was found: what its score is made of. The
// score orders the hits; Relevance is made from it.
type Explanation struct {
	Score float64 // Words + NameMatch + Meaning + Signals

	Named     bool     // the query is the tool's name, which comes before any score
	Words     float64  // the share that the tool reaches of what the query's words could count
	NameMatch float64  // for the part of the tool's name that the query covers
	Meaning   float64  // for the likeness of meaning
	Cosine    float64  // of the vectors of query and tool
	Signals   float64  // usage and state
	Matches   []Match  // in the order of the query's words
	Unmatched []string // words of the query that the tool does not have
	Signal    *Signal  // nil when signals are off
}

// Match is a word of the query that the tool has.
type Match struct {
	Word   string   // as the query has it
	Term   string   // the stem that was found
	How    string   // exact, synonym, spelling, compound
	Fields []string // where: name, title, server, description, parameter, tag
	Score  float64  // its part of Words
}

// explain works a score out again, in words.
func (ix *Index) explain(s *snapshot, p *plan, q *Query, c candidate) *Explanation {
	e := &Explanation{Score: float64(c.score), Named: c.tier != notItsName}
	var score, name float32
	for i := range p.words {
		w := &p.words[i]
		best := Match{Word: w.text}
		var value, named float32
		for _, a := range w.alternatives {
			mass := w.worth(s, a)
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
			}
		}
		if value == 0 {
			e.Unmatched = append(e.Unmatched, w.text)
			continue
		}
		best.Score = float64(value * p.perIdeal)
		e.Matches = append(e.Matches, best)
		score += value
		name += named
	}
	words := len(p.vector)
	t := int(c.tool)
	cos := cosine(dot(p.vector, s.vectors[t*words:(t+1)*words]), p.packed, s.vector[t], words)
	e.Cosine = float64(cos)
	e.Meaning = float64(ix.w.fuse(p, 0, 0, 0, cos))
	if score > 0 {
		e.Words = float64(score * p.perIdeal)
		e.NameMatch = float64(ix.w.fuse(p, score, name, s.covers[t], 0)) - e.Words
	}
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
