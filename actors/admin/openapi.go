package admin

import (
	_ "embed"
	"net/http"
)

// document describes the endpoint.
//
//go:embed openapi.json
var document []byte

func (h *handler) openAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")

	_, _ = w.Write(document)
}
