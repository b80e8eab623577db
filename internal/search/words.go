package search

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math"
	"strings"
)

// tableFile is the word table: 32,667 English words as int8 vectors, trained so
// that queries are near the tools that answer them. NOTICE names its sources. As
// a string it stays in the binary's read-only pages.
//
//go:embed tool-words-100.svt
var tableFile string

// wordTable returns the vectors of words. It reads the embedded file in place
// and adds only a hash table of the words.
type wordTable struct {
	dims    int
	factors string   // per word: float32 scale, float32 weight
	rows    string   // per word: dims int8
	words   string   // separated by newlines
	offsets []uint32 // by word: its offset in words, and one entry for the end
	slots   []uint16 // open-addressing hash table: 1 + the word's number
	seed    maphash.Seed
}

// loadTable validates the layout of a table and hashes its words.
func loadTable(file string) (*wordTable, error) {
	if len(file) < 12 || file[:4] != "SVT1" {
		return nil, fmt.Errorf("word table: not an SVT1 file")
	}
	n := int(binary.LittleEndian.Uint32([]byte(file[4:8])))
	dims := int(binary.LittleEndian.Uint32([]byte(file[8:12])))
	body := file[12:]
	if n >= math.MaxUint16 || dims == 0 || dims > 1024 || len(body) < n*(8+dims) {
		return nil, fmt.Errorf("word table: %d words of %d dimensions do not fit its %d bytes", n, dims, len(file))
	}
	t := &wordTable{
		dims:    dims,
		factors: body[:8*n],
		rows:    body[8*n : 8*n+n*dims],
		words:   body[8*n+n*dims:],
		offsets: make([]uint32, 0, n+1),
		slots:   make([]uint16, 1<<16),
		seed:    maphash.MakeSeed(),
	}
	for at := 0; len(t.offsets) < n; {
		word, _, more := strings.Cut(t.words[at:], "\n")
		if word == "" || (!more && len(t.offsets) < n-1) {
			return nil, fmt.Errorf("word table: %d words announced, %d found", n, len(t.offsets))
		}
		for h := maphash.String(t.seed, word); ; h++ {
			if s := &t.slots[uint16(h)]; *s == 0 {
				*s = uint16(len(t.offsets) + 1)
				break
			}
		}
		t.offsets = append(t.offsets, uint32(at))
		at += len(word) + 1
	}
	t.offsets = append(t.offsets, uint32(len(strings.TrimSuffix(t.words, "\n"))+1))
	return t, nil
}

// find returns the number of a lower-case word.
func (t *wordTable) find(word string) (int, bool) {
	for h := maphash.String(t.seed, word); ; h++ {
		s := t.slots[uint16(h)]
		if s == 0 {
			return 0, false
		}
		i := int(s) - 1
		if t.words[t.offsets[i]:t.offsets[i+1]-1] == word {
			return i, true
		}
	}
}

func (t *wordTable) float(at int) float32 {
	f := t.factors
	return math.Float32frombits(uint32(f[at]) | uint32(f[at+1])<<8 | uint32(f[at+2])<<16 | uint32(f[at+3])<<24)
}

// weight returns the weight of word i in a text.
func (t *wordTable) weight(i int) float32 { return t.float(8*i + 4) }

// addTo adds the vector of word i, multiplied by factor, to sum.
func (t *wordTable) addTo(sum []float32, i int, factor float32) {
	factor *= t.float(8 * i)
	row := t.rows[i*t.dims : (i+1)*t.dims]
	sum = sum[:len(row)]
	for d := range sum {
		sum[d] += factor * float32(int8(row[d]))
	}
}

// lookup returns the number of a word or of a spelling variant: British
// endings, or a plural that the table does not contain.
func (t *wordTable) lookup(word string) (int, bool) {
	if i, ok := t.find(word); ok {
		return i, true
	}
	if american := americanise(word); american != word {
		if i, ok := t.find(american); ok {
			return i, true
		}
	}
	if n := len(word) - 1; n > 3 && word[n] == 's' {
		return t.find(word[:n])
	}
	return 0, false
}

// split divides an unknown word into two to four known ones: keyvault into key
// and vault. It returns nil if the word cannot be divided. Identifiers join
// words in this way.
func (t *wordTable) split(word string) []string {
	const minLength, maxParts, maxLength = 3, 4, 40
	n := len(word)
	if n < 2*minLength || n > maxLength {
		return nil
	}
	for i := range n {
		if word[i] < 'a' || word[i] > 'z' {
			return nil
		}
	}
	if _, known := t.lookup(word); known {
		return nil
	}
	// count[i] is the minimum number of words that make up word[:i].
	var count, from [maxLength + 1]int
	for end := minLength; end <= n; end++ {
		for start := 0; start <= end-minLength; start++ {
			if start > 0 && count[start] == 0 {
				continue
			}
			c := count[start] + 1
			if c > maxParts || count[end] != 0 && c >= count[end] {
				continue
			}
			if _, ok := t.find(word[start:end]); ok {
				count[end], from[end] = c, start
			}
		}
	}
	if count[n] < 2 {
		return nil
	}
	out := make([]string, count[n])
	for end, i := n, count[n]-1; i >= 0; i-- {
		out[i] = word[from[end]:end]
		end = from[end]
	}
	return out
}
