package admin

import (
	"embed"
	"net/http"
	"path"
	"strings"
)

// pages are the files of the web page. It has no data in itself: it asks the endpoint as everybody does.
//
//go:embed page
var pages embed.FS

// pagePolicy lets the page load its own files and ask its own endpoint, and nothing else; nobody may frame it, and no text
// becomes markup.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// pageType is the type of a file of the page. They are named here, since what the operating system says of extensions differs.
func pageType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	default:
		return "image/svg+xml"
	}
}

// page answers with a file of the page.
func page(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	if name == "" {
		name = "page/index.html"
	}

	text, err := pages.ReadFile(name)
	if err != nil {
		http.NotFound(w, r)

		return
	}

	header := w.Header()
	header.Set("Content-Type", pageType(name))
	header.Set("Content-Security-Policy", pagePolicy)
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Referrer-Policy", "no-referrer")

	_, _ = w.Write(text) //nolint:gosec // a file of ours, whatever is asked for
}
