package search

import (
	"slices"
	"testing"
)

func TestOtherLanguages(t *testing.T) {
	ix := office()
	ix.Put("sky", docs("sky", "get_forecast: Get the weather forecast for a city."))
	ix.Put("travel", docs("travel", "find_flights: Find flights between two cities.", "book_hotel: Book a hotel."))
	ix.Put("words", docs("words", "translate: Translate a text into another language."))
	for text, want := range map[string]string{
		"wie wird das Wetter in Berlin?":   "sky:get_forecast",
		"lösche die Datei":                 "files:delete_file",
		"quelle est la météo à Paris ?":    "sky:get_forecast",
		"traduis ce texte":                 "words:translate",
		"busca vuelos a Madrid":            "travel:find_flights",
		"envía un correo a mi jefe":        "mail:send_email",
		"traduci questo testo in inglese":  "words:translate",
		"apague o arquivo; apagar arquivo": "files:delete_file",
		"北京的天气怎么样":                         "sky:get_forecast",
		"メールを送信する":                         "mail:send_email",
	} {
		if got := find(t, ix, Query{Text: text}); len(got) == 0 || got[0] != want {
			t.Errorf("Search(%q) = %v, want %s first", text, got, want)
		}
	}
}

// English stays English, also with a name of another language in it.
func TestEnglishIsNotTranslated(t *testing.T) {
	ix := office()
	known := func(string) bool { return true }
	for _, text := range []string{
		"show data as text", "do not show me the data as a table", "hotels in Los Angeles", "open the file on the local disk",
		"the weather in La Paz", "resume the action", "what is the note about", "list images", "",
	} {
		if l := ix.lang.of(tokens(text, false), ix.lx.stop, known); l != nil {
			t.Errorf("%q is taken for another language: %q", text, l.translate(nil, tokens(text, false), known))
		}
	}
}

// A tool may be written in the language of the query: its own words count.
func TestToolsInLanguageOfQuery(t *testing.T) {
	ix := office()
	ix.Put("amt", docs("amt", "suche: Suche im Register der Stadt.", "wetter: Das Wetter von gestern."))
	if got := find(t, ix, Query{Text: "wie war das Wetter im Register"}); len(got) < 2 || !slices.Contains(got[:2], "amt:wetter") {
		t.Errorf("found %v", got)
	}
}
