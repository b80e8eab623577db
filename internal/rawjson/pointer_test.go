package rawjson

import "testing"

func TestPointer(t *testing.T) {
	const doc = `{"a/b": {"c~d": [10, {"ä b": 20}]}, "": 1}`
	for pointer, want := range map[string]string{
		"": doc, "/a~1b/c~0d/0": "10", "/a~1b/c~0d/1/%C3%A4%20b": "20",
		"/a~1b/c~0d/2": "", "/a~1b/c~0d/-1": "", "/a~1b/c~0d/x": "", "/x": "", "/a~1b/c~0d/0/x": "",
	} {
		if got := Pointer([]byte(doc), pointer); string(got) != want {
			t.Errorf("%s: got %s, want %s", pointer, got, want)
		}
	}
	if got := UnescapePointer(EscapePointer("a/~b")); got != "a/~b" {
		t.Error(got)
	}
}
