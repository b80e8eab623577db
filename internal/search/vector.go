package search

import "math"

// A vector is stored as seven-bit integers, four to a uint64, because one 64-bit
// multiplication then computes four products and their sum: with
// a = a0 + a1·2¹⁶ + a2·2³² + a3·2⁴⁸ and b the same in reverse order, the top
// sixteen bits of a·b are a0·b0 + … + a3·b3. No lane can overflow into the
// next, since 4·127² < 2¹⁶. Numbers are stored with 64 added; the dot product
// of the stored numbers is corrected with their sums.
const (
	lanes  = 4
	offset = 64
	top    = 63
)

// packed describes one packed vector.
type packed struct {
	scale float32 // the length of one unit
	sum   int32   // sum of the numbers, without the offset
}

// packedWords returns the number of uint64 values for a vector of dims
// dimensions.
func packedWords(dims int) int { return (dims + lanes - 1) / lanes }

// pack writes v, normalized to length one, to out. A query is packed in
// reverse. The zero vector has scale 0 and therefore similarity 0 to
// everything.
func pack(out []uint64, v []float32, reverse bool) packed {
	var square, maxAbs float64
	for _, x := range v {
		square += float64(x) * float64(x)
		maxAbs = max(maxAbs, math.Abs(float64(x)))
	}
	clear(out)
	if maxAbs == 0 || math.IsInf(square, 0) || math.IsNaN(square) {
		return packed{}
	}
	p := packed{scale: float32(maxAbs / top / math.Sqrt(square))}
	for i := range len(out) * lanes {
		n := 0
		if i < len(v) {
			n = int(math.RoundToEven(float64(v[i]) / maxAbs * top))
		}
		p.sum += int32(n)
		lane := i % lanes
		if reverse {
			lane = lanes - 1 - lane
		}
		out[i/lanes] |= uint64(n+offset) << (16 * lane)
	}
	return p
}

// dot returns the dot product of the stored numbers of a query and a tool.
func dot(query, doc []uint64) int32 {
	var a, b uint64
	doc = doc[:len(query)]
	i := 0
	for ; i+1 < len(query); i += 2 {
		a += query[i] * doc[i] >> 48
		b += query[i+1] * doc[i+1] >> 48
	}
	if i < len(query) {
		a += query[i] * doc[i] >> 48
	}
	return int32(a + b)
}

// cosine converts the dot product of two packed vectors of n words into their
// cosine.
func cosine(dot int32, a, b packed, n int) float32 {
	return float32(dot-offset*(a.sum+b.sum)-int32(n)*lanes*offset*offset) * a.scale * b.scale
}
