package toolsapi

import (
	"cmp"
	_ "embed"
	"net/http"
	"strings"
)

// openapiJSON describes the API. Its test calls every path.
//
//go:embed openapi.json
var openapiJSON string

func (a *API) openapi(w http.ResponseWriter, _ *http.Request) error {
	version := strings.NewReplacer(`"`, "", `\`, "").Replace(cmp.Or(a.Version, "dev"))
	writeBody(w, http.StatusOK, []byte(strings.Replace(openapiJSON, `"version": "0"`, `"version": "`+version+`"`, 1)))
	return nil
}
