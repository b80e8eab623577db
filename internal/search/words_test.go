package search

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"
)

// tableOf returns a table file with two dimensions.
func tableOf(words ...string) string {
	b := []byte("SVT1")
	b = binary.LittleEndian.AppendUint32(b, uint32(len(words)))
	b = binary.LittleEndian.AppendUint32(b, 2)
	for range words {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(0.5))
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(2))
	}
	for i := range words {
		b = append(b, byte(i+1), 0xff)
	}
	return string(b) + strings.Join(words, "\n")
}

func TestLoadTable(t *testing.T) {
	tab, err := loadTable(tableOf("key", "vault", "colors"))
	if err != nil {
		t.Fatal(err)
	}
	i, ok := tab.find("vault")
	if !ok || i != 1 || tab.weight(i) != 2 {
		t.Fatalf("find(vault) = %d, %v", i, ok)
	}
	sum := make([]float32, 2)
	tab.addTo(sum, i, 3)
	if sum[0] != 3 || sum[1] != -1.5 {
		t.Errorf("three times the vector of vault = %v, want [3 -1.5]", sum)
	}
	if _, ok := tab.find("absent"); ok {
		t.Error("a word was found that is not there")
	}
}

func TestLoadTableRefuses(t *testing.T) {
	good := tableOf("key", "vault")
	for name, file := range map[string]string{
		"empty":            "",
		"other format":     "SVT2" + good[4:],
		"cut in the rows":  good[:25],
		"too few words":    tableOf("key", "vault")[:len(good)-6],
		"an empty word":    tableOf("key", "", "x"),
		"no dimensions":    good[:8] + "\x00\x00\x00\x00" + good[12:],
		"too many words":   good[:4] + "\xff\xff\xff\xff" + good[8:],
		"words left empty": tableOf(""),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := loadTable(file); err == nil {
				t.Error("no error")
			}
		})
	}
}

func TestEmbeddedTable(t *testing.T) {
	tab, err := loadTable(tableFile)
	if err != nil {
		t.Fatal(err)
	}
	if tab.dims != 100 || len(tab.offsets) != 32667+1 {
		t.Errorf("%d words of %d dimensions, want 32667 of 100", len(tab.offsets)-1, tab.dims)
	}
	for _, w := range []string{"real", "subslices", "kubernetes"} { // first, last, one between
		if _, ok := tab.find(w); !ok {
			t.Errorf("%q is not found", w)
		}
	}
	for word, want := range map[string]string{
		"keyvault":                    "key vault",
		"azureterraformbestpractices": "azure terraform best practices",
		"kubernetes":                  "", // known
		"xqzzt":                       "", // cannot be split
		"abc":                         "", // too short
		"wörterbuch":                  "",
	} {
		if got := strings.Join(tab.split(word), " "); got != want {
			t.Errorf("split(%q) = %q, want %q", word, got, want)
		}
	}
	for _, w := range []string{"summarise", "colour", "subslices"} {
		if _, ok := tab.lookup(w); !ok {
			t.Errorf("%q has no vector", w)
		}
	}
	plural, ok := tab.lookup("kubernetess")
	single, _ := tab.find("kubernetes")
	if !ok || plural != single {
		t.Error("an unknown plural is not read as its singular")
	}
}

func TestPackedCosine(t *testing.T) {
	const dims = 100
	rnd := uint64(1)
	next := func() float32 {
		rnd = rnd*6364136223846793005 + 1442695040888963407
		return float32(int32(rnd>>33)-1<<30) / (1 << 30)
	}
	words := packedWords(dims)
	for range 500 {
		a, b := make([]float32, dims), make([]float32, dims)
		var ab, aa, bb float64
		for i := range a {
			a[i] = next()
			b[i] = a[i]*next() + next()
			ab += float64(a[i]) * float64(b[i])
			aa += float64(a[i]) * float64(a[i])
			bb += float64(b[i]) * float64(b[i])
		}
		pa, pb := make([]uint64, words), make([]uint64, words)
		qa, qb := pack(pa, a, true), pack(pb, b, false)
		got := float64(cosine(dot(pa, pb), qa, qb, words))
		want := ab / math.Sqrt(aa*bb)
		if math.Abs(got-want) > 0.01 {
			t.Fatalf("cosine %.4f, want %.4f", got, want)
		}
	}
}

func TestPackedExtremes(t *testing.T) {
	for name, v := range map[string][]float32{
		"zero":        make([]float32, 7),
		"infinite":    {float32(math.Inf(1)), 0, 0, 0, 0, 0, 0},
		"not numbers": {float32(math.NaN()), 1, 0, 0, 0, 0, 0},
	} {
		out := make([]uint64, packedWords(7))
		if p := pack(out, v, false); p.scale != 0 {
			t.Errorf("%s: scale %v, want 0", name, p.scale)
		}
	}
	// Lanes must not overflow when all are at their maximum.
	ones, minusOnes := []float32{1, 1, 1, 1, 1, 1, 1, 1}, []float32{-1, -1, -1, -1, -1, -1, -1, -1}
	a, b := make([]uint64, 2), make([]uint64, 2)
	pa := pack(a, ones, true)
	if got := cosine(dot(a, b), pa, packed{}, 2); got != 0 {
		t.Errorf("cosine with the zero vector = %v", got)
	}
	for v, want := range map[*[]float32]float64{&ones: 1, &minusOnes: -1} {
		pb := pack(b, *v, false)
		if got := float64(cosine(dot(a, b), pa, pb, 2)); math.Abs(got-want) > 1e-4 {
			t.Errorf("cosine = %v, want %v", got, want)
		}
	}
}
