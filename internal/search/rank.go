package search

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"junctor/internal/tool"
)

// scratch is the reusable memory of one query.
type scratch struct {
	planner planner
	acc     []accumulator // by tool; all zero between queries
	best    []candidate
}

// accumulator sums up the postings of one tool.
type accumulator struct {
	score float32 // of all words
	name  float32 // of the words in its name
	word  uint32  // 1 + the word last counted
	best  float32 // the score of that word so far
	named float32 // the score of that word in the name so far

	product float32 // how specifically the query names its server
}

// candidate is a tool with its score.
type candidate struct {
	tool  uint32
	tier  uint8 // whether the query is its name
	score float32
}

// Search returns the tools that match a query, best first. Tools that match
// equally are in the order of their names. If a query asks for several things,
// tools for each of them are near the top, whatever their relevance. A query
// without text is an error; a text that matches nothing gives no hits.
func (ix *Index) Search(q Query) ([]Hit, error) {
	if strings.TrimSpace(q.Text) == "" {
		return nil, &tool.Error{Kind: tool.InvalidArguments, Msg: "the query is empty; say in a few words what the tool should do"}
	}
	limit := q.Limit
	switch {
	case limit < 0:
		return nil, &tool.Error{Kind: tool.InvalidArguments, Msg: "the limit is negative; give a number from 1 to 100, or 0 for 10"}
	case limit == 0:
		limit = defaultLimit
	}
	limit = min(limit, MaxLimit)

	s := ix.current()
	whole := ix.rank(s, q, limit)
	clauses := ix.lx.clauses(q.Text)
	if clauses == nil || len(whole) == 0 || whole[0].named {
		return whole, nil
	}
	lists := [][]Hit{whole}
	for _, text := range clauses {
		part := q
		part.Text = text
		hits := ix.rank(s, part, limit)
		for _, h := range hits {
			if h.Explanation != nil {
				h.Explanation.Clause = strings.TrimSpace(text)
			}
		}
		lists = append(lists, hits)
	}
	return interleave(lists, limit), nil
}

// rank returns the tools that match the query as a single clause.
func (ix *Index) rank(s *snapshot, q Query, limit int) []Hit {
	sc := ix.scratches.Get().(*scratch)
	p := sc.planner.prepare(ix, s, q.Text)
	if len(sc.acc) < len(s.names) {
		sc.acc = make([]accumulator, len(s.names))
	}
	sc.collect(s, p)
	sc.choose(ix, s, p, q, limit)

	hits := make([]Hit, 0, len(sc.best))
	for _, c := range sc.best {
		h := Hit{Name: s.names[c.tool], Relevance: relevance(c), score: c.score, named: c.tier != noNameMatch}
		if q.Explain {
			h.Explanation = ix.explain(s, p, &q, c)
		}
		hits = append(hits, h)
	}
	ix.scratches.Put(sc) // not deferred: after a panic in a callback the memory must not be reused
	return hits
}

// collect sums up the postings of the query's words. For each word only the best
// matching term counts.
func (sc *scratch) collect(s *snapshot, p *plan) {
	acc := sc.acc
	for i := range p.words {
		w := &p.words[i]
		number := uint32(i + 1)
		for _, a := range w.alternatives {
			mass := w.maxScore(s, a)
			unit := mass / 255
			for _, post := range s.list(a.term) {
				c := &acc[post.tool()]
				v := unit * float32(post.impact())
				if c.word != number {
					c.word, c.best, c.named = number, v, 0
					c.score += v
				} else if v > c.best {
					c.score += v - c.best
					c.best = v
				}
				if post.inServer() && a.why.named() {
					c.product = max(c.product, a.weight*s.product[a.term])
				}
				if post.inName() && mass > c.named {
					c.name += mass - c.named
					c.named = mass
				}
			}
		}
	}
}

// parts are the parts of a tool's score.
type parts struct {
	words   float32 // the score of the query's words as a share of its maximum
	name    float32 // for the share of its name that the query covers, times words
	server  float32 // for a server that the query names
	meaning float32 // for the similarity of meaning
	action  float32 // negative for a tool that changes something when the query is a question
}

func (p parts) sum() float32 { return p.words + p.name + p.server + p.meaning + p.action }

// parts returns the parts of the score of tool t, whose postings are summed up
// in c.
func (w *weights) parts(s *snapshot, p *plan, t int, c *accumulator, cosine float32) parts {
	x := parts{meaning: w.meaning * max(0, cosine)}
	if c.score > 0 {
		x.words = c.score * p.perIdeal
		x.name = w.nameMatch * x.words * min(1, c.name*s.covers[t])
		x.server = w.product * c.product
	}
	if p.onlyAsks && s.changes[t] {
		x.action = -w.action
	}
	return x
}

// cosineOf returns the cosine similarity of a query and tool t.
func (s *snapshot) cosineOf(p *plan, t int) float32 {
	n := len(p.vector)
	return cosine(dot(p.vector, s.vectors[t*n:(t+1)*n]), p.packed, s.vector[t], n)
}

// minScore is the minimum score of a hit; lower scores are coincidental.
const minScore = 0.15

// choose scores every tool, leaves the best in sc.best, and clears the
// accumulators.
func (sc *scratch) choose(ix *Index, s *snapshot, p *plan, q Query, limit int) {
	keep := limit
	if q.Signals != nil {
		keep = max(50, 3*limit) // signals may change the order a little
	}
	best := ranking{list: sc.best[:0], keep: keep, floor: minScore, names: s.names}
	named := newNameMatcher(q.Text)
	for t := range s.names {
		c := &sc.acc[t]
		if !s.inScope(&q, t) {
			*c = accumulator{}
			continue
		}
		x := candidate{
			tool:  uint32(t),
			tier:  named.of(s.names, t, s.nameHash[t]),
			score: ix.w.parts(s, p, t, c, s.cosineOf(p, t)).sum(),
		}
		*c = accumulator{}
		if (x.score >= best.floor || x.tier != noNameMatch) && best.wants(x) && (q.Keep == nil || q.Keep(s.names[t])) {
			best.add(x)
		}
	}
	if q.Signals != nil {
		for i := range best.list {
			x := &best.list[i]
			x.score += q.Signals(s.names[x.tool]).shift()
		}
		slices.SortFunc(best.list, best.compare)
	}
	sc.best = best.list[:min(limit, len(best.list))]
}

// inScope reports whether a tool is on one of the servers and has one of the
// tags to which a query is restricted.
func (s *snapshot) inScope(q *Query, t int) bool {
	if len(q.Servers) > 0 && !slices.Contains(q.Servers, s.names[t].Server) {
		return false
	}
	return len(q.Tags) == 0 || slices.ContainsFunc(s.tags[t], func(tag string) bool { return slices.Contains(q.Tags, tag) })
}

// ranking collects the best candidates, best first.
type ranking struct {
	list  []candidate
	keep  int
	floor float32 // candidates with a lower score are not wanted
	names []tool.Name
}

// compare orders candidates from best to worst.
func (r *ranking) compare(a, b candidate) int {
	if c := cmp.Or(cmp.Compare(b.tier, a.tier), cmp.Compare(b.score, a.score)); c != 0 {
		return c
	}
	x, y := r.names[a.tool], r.names[b.tool]
	return cmp.Or(strings.Compare(x.Server, y.Server), strings.Compare(x.Tool, y.Tool), cmp.Compare(a.tool, b.tool))
}

// wants reports whether x is one of the best candidates so far.
func (r *ranking) wants(x candidate) bool {
	return len(r.list) < r.keep || r.compare(x, r.list[r.keep-1]) < 0
}

// add inserts x in order, and drops the worst candidate if there are too many.
func (r *ranking) add(x candidate) {
	at, _ := slices.BinarySearchFunc(r.list, x, r.compare)
	r.list = slices.Insert(r.list, at, x)
	if len(r.list) >= r.keep {
		r.list = r.list[:r.keep]
		if last := r.list[r.keep-1]; last.tier == noNameMatch {
			r.floor = max(r.floor, last.score)
		}
	}
}

// relevance maps a score to the approximate share of first hits with that score
// that were correct on the development set.
func relevance(c candidate) float64 {
	if c.tier != noNameMatch {
		return 1
	}
	return 1 / (1 + math.Exp(-3*(float64(c.score)-1)))
}
