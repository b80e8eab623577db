package sqlite

import "encoding/binary"

const (
	gramBytes   = 4        // length of the sequences in a filter
	gramStep    = 2        // distance between the starts of two sequences
	filterBytes = 8000     // size of a stored filter: two fit into a page of the database
	minFiltered = 32 << 10 // minimum size of the body of a block with a filter
)

// textFilter is a Bloom filter of the texts in a block, so that a search can
// skip blocks without decompressing them. It has a bit for the hash of each
// sequence of four bytes that starts at an even offset of the block's texts;
// the case of letters is ignored. If a block contains a search text, the filter
// has the sequences at either all even or all odd offsets of the search text.
//
// A filter of prose excludes most texts of seven bytes that are not in the
// block, nearly all longer ones, and none with fewer than five bytes. Blocks
// with less than minFiltered bytes have no filter: they are joined soon.
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

// hashGram returns the index of a sequence's bit. It is the same for upper and
// lower case, and for some other bytes, which only makes the filter less
// precise.
func hashGram(gram uint32) uint16 { return uint16((gram | 0x20202020) * 0x9e3779b1 >> 16) }

// bytes returns the stored form of the filter.
func (f *textFilter) bytes() []byte {
	out := make([]byte, 0, filterBytes)
	for _, word := range f[:filterBytes/8] {
		out = binary.LittleEndian.AppendUint64(out, word)
	}
	return out
}

// mayHave reports whether the block of a stored filter may contain a text. A
// block without a filter may contain any text.
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
