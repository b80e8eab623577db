package sqlite

import "encoding/binary"

const (
	gramBytes   = 4        // of a sequence that a filter has
	gramStep    = 2        // from the beginning of one sequence in a text to the next
	filterBytes = 8000     // of a filter as it is stored: two fit into a page of the database
	minFiltered = 32 << 10 // of the body of a block that has a filter
)

// textFilter tells which texts a block does not have, so that a search need not
// decompress it. It is a set of bits, one for the hash of each four bytes of the
// block's texts at every second place; the case of letters is ignored. If a
// block has a search text, the filter has the four bytes at every second place
// of it, counted from its first byte or from its second.
//
// A filter of prose excludes most texts of seven bytes that are not in the
// block, nearly all longer ones, and none of less than five. Blocks with less
// than minFiltered bytes have no filter: they are joined soon.
type textFilter [1 << 16 / 64]uint64

func (f *textFilter) add(text []byte) {
	for ; len(text) >= 2*gramBytes; text = text[2*gramStep:] { // two at a time
		v := binary.LittleEndian.Uint64(text)
		f.set(uint32(v))
		f.set(uint32(v >> (8 * gramStep)))
	}
	for ; len(text) >= gramBytes; text = text[gramStep:] {
		f.set(binary.LittleEndian.Uint32(text))
	}
}

func (f *textFilter) set(gram uint32) {
	bit := hashGram(gram)
	f[bit>>6] |= 1 << (bit & 63)
}

// hashGram returns the number of a bit. Upper and lower case have the same, and
// so have some other bytes, which does no harm.
func hashGram(gram uint32) uint16 { return uint16((gram | 0x20202020) * 0x9e3779b1 >> 16) }

// bytes returns the filter as it is stored.
func (f *textFilter) bytes() []byte {
	out := make([]byte, 0, filterBytes)
	for _, word := range f[:filterBytes/8] {
		out = binary.LittleEndian.AppendUint64(out, word)
	}
	return out
}

// mayHave reports whether the block of a stored filter may have a text. Without
// a filter it may.
func mayHave(filter []byte, text string) bool {
	for first := range gramStep {
		if hasGrams(filter, text[min(first, len(text)):]) {
			return true
		}
	}
	return false
}

func hasGrams(filter []byte, text string) bool {
	for ; len(text) >= gramBytes; text = text[gramStep:] {
		bit := hashGram(binary.LittleEndian.Uint32([]byte(text[:gramBytes])))
		if at := int(bit >> 3); at < len(filter) && filter[at]&(1<<(bit&7)) == 0 { // bits that are not stored count as set
			return false
		}
	}
	return true
}
