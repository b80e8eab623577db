package search_test

import (
	"testing"

	"junctor/internal/search"
	"junctor/internal/tool"
)

// TestFileNameFindsToolsOfItsFormat checks that the extension of a file name
// finds the tools for its format, which rarely have the extension in their
// texts.
func TestFileNameFindsToolsOfItsFormat(t *testing.T) {
	descriptions := map[string]string{
		"word":     "Read the text of a Word document.",
		"excel":    "Read the cells of an Excel spreadsheet.",
		"slides":   "Read the slides of a PowerPoint presentation.",
		"audio":    "Read the tags of an audio recording.",
		"video":    "Read the frames of a video.",
		"image":    "Read the pixels of an image.",
		"archive":  "Read the members of a zip archive.",
		"calendar": "Read the entries of a calendar.",
		"contact":  "Read the fields of a contact.",
		"map":      "Read the features of a geographic map.",
		"email":    "Read the parts of an email.",
		"notebook": "Read the cells of a Jupyter notebook.",
	}
	var docs []search.Doc
	for name, text := range descriptions {
		docs = append(docs, search.Doc{Name: tool.Name{Server: "s", Tool: name}, Description: text})
	}
	ix := search.New()
	ix.Put("s", docs)
	for file, want := range map[string]string{
		"a.docx": "word", "a.odt": "word", "a.xlsx": "excel", "a.ods": "excel", "a.pptx": "slides",
		"a.flac": "audio", "a.m4a": "audio", "a.mkv": "video", "a.webm": "video", "a.heic": "image", "a.webp": "image",
		"a.tar": "archive", "a.rar": "archive", "a.ics": "calendar", "a.vcf": "contact", "a.geojson": "map",
		"a.eml": "email", "a.ipynb": "notebook",
	} {
		if got := names(t, ix, "open "+file, 1); len(got) == 0 || got[0].Tool != want {
			t.Errorf("the query %q finds %v first, want %s", "open "+file, got, want)
		}
	}
}
