package searchtest

import (
	"fmt"
	"math"
	"slices"

	"junctor/internal/tool"
)

// Depth is the number of results of a ranking that are evaluated.
const Depth = 10

// Score is the means of several measures over queries.
type Score struct {
	Queries                    int
	Recall1, Recall5, Recall10 float64 // the share of needs met within the first results
	MRR                        float64 // of the first result that meets a need
	NDCG5                      float64 // each need counts once
}

// String returns the figures in one line.
func (s Score) String() string {
	return fmt.Sprintf("%d queries: recall@1 %.3f, @5 %.3f, @10 %.3f, MRR %.3f, nDCG@5 %.3f",
		s.Queries, s.Recall1, s.Recall5, s.Recall10, s.MRR, s.NDCG5)
}

// All is the key of the score of all queries in the result of Measure.
const All = "all"

// Measure ranks the tools for every query of the set and returns the scores
// by kind of query.
func Measure(set *Set, rank func(text string) []tool.Name) map[string]Score {
	sums := make(map[string]Score)
	for _, q := range set.Queries {
		s := judge(q, rank(q.Text))
		for _, kind := range []string{All, q.Kind} {
			sums[kind] = sums[kind].plus(s)
		}
	}
	for kind, s := range sums {
		sums[kind] = s.over(float64(s.Queries))
	}
	return sums
}

// judge scores the results of one query.
func judge(q Query, found []tool.Name) Score {
	needs := float64(len(q.Needs))
	s := Score{Queries: 1}
	met := make([]bool, len(q.Needs))
	var gain, ideal float64
	for i, name := range found[:min(len(found), Depth)] {
		rank := i + 1
		for n, need := range q.Needs {
			if met[n] || !slices.Contains(need, name) {
				continue
			}
			met[n] = true
			s.Recall10 += 1 / needs
			if rank <= 5 {
				s.Recall5 += 1 / needs
				gain += 1 / math.Log2(float64(rank)+1)
			}
			if rank == 1 {
				s.Recall1 += 1 / needs
			}
			if s.MRR == 0 {
				s.MRR = 1 / float64(rank)
			}
		}
	}
	for i := range min(len(q.Needs), 5) {
		ideal += 1 / math.Log2(float64(i)+2)
	}
	s.NDCG5 = gain / ideal
	return s
}

func (s Score) plus(o Score) Score {
	s.Queries += o.Queries
	s.Recall1 += o.Recall1
	s.Recall5 += o.Recall5
	s.Recall10 += o.Recall10
	s.MRR += o.MRR
	s.NDCG5 += o.NDCG5
	return s
}

func (s Score) over(n float64) Score {
	s.Recall1 /= n
	s.Recall5 /= n
	s.Recall10 /= n
	s.MRR /= n
	s.NDCG5 /= n
	return s
}
