package tool

import "testing"

func TestDefinitionsTellWhoMayCallThem(t *testing.T) {
	for meta, want := range map[string]Interface{
		`{}`:                                {},
		`{"ui":{"resourceUri":"ui://a/b"}}`: {Resource: "ui://a/b"},
		`{"ui/resourceUri":"ui://old"}`:     {Resource: "ui://old"},
		`{"ui":{"resourceUri":"ui://new"},"ui/resourceUri":"ui://old"}`: {Resource: "ui://new"},
		`{"ui":{"visibility":["model","app"]}}`:                         {},
		`{"ui":{"visibility":["app"],"resourceUri":"ui://a"}}`:          {Resource: "ui://a", AppsOnly: true},
		`{"ui":{"visibility":["model"]}}`:                               {NoApps: true},
		`{"ui":{"visibility":[]}}`:                                      {AppsOnly: true, NoApps: true},
		`{"ui":{"visibility":null}}`:                                    {},
		`{"ui":{"visibility":"app","resourceUri":7}}`:                   {},
		`{"ui":[]}`: {},
		`[]`:        {},
		`"ui"`:      {},
	} {
		d, err := ParseDefinition("s", []byte(`{"name":"t","inputSchema":{"type":"object"},"_meta":`+meta+`}`))
		if err != nil || d.UI != want {
			t.Errorf("%s: %+v, %v", meta, d.UI, err)
		}
	}
	apps, models := Interface{AppsOnly: true}, Interface{NoApps: true}
	if apps.Allows(ByModel) || !apps.Allows(ByApp) || !apps.Allows(ByClient) || models.Allows(ByApp) || !models.Allows(ByModel) {
		t.Error("a tool is allowed to the wrong origin")
	}
}
