package httpcall_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins/internal/httpcall"
	"github.com/millrace/millrace/plugins/internal/value"
)

func TestAValueStaysInItsPartOfAnAddress(t *testing.T) {
	t.Parallel()

	for _, c := range []struct{ address, key, want string }{
		{"http://h/x", "k", "http://h/x"},
		{"http://h", "k", "http://h"},
		{"http://h/a/{key}/b?c={key}", "k", "http://h/a/k/b?c=k"},
		{"http://h/{key}", "a/../b?c#d&e=f+g h%2e\r\nü", "http://h/a%2F..%2Fb%3Fc%23d%26e%3Df%2Bg%20h%252e%0D%0A%C3%BC"},
		{"http://h?q={key}", "a&b=c", "http://h?q=a%26b%3Dc"},
		{"http://h/{key}", "...", "http://h/..."},
		{"http://h/v{key}", "..", "http://h/v.."},
		{"http://h/a b/{key}?x y", "/", "http://h/a%20b/%2F?x%20y"},
		{"http://h/{key}", "..", ""},
		{"http://h/a/{key}/b", ".", ""},
		{"http://h/.{key}/b", ".", ""},
		{"http://h/?q={key}", "..", "http://h/?q=.."},
		{"http://h/{body.none}", "", ""},
	} {
		var a httpcall.Address
		if err := a.UnmarshalText([]byte(c.address)); err != nil {
			t.Fatal(err)
		}

		got, err := a.Of(value.Of(&pipeline.Message{Key: c.key, Body: []byte("{}")}))
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s with %q: %q, %v, want %q", c.address, c.key, got, err, c.want)
		}
	}
}

func TestNoValueChoosesTheServer(t *testing.T) {
	t.Parallel()

	for _, address := range []string{
		"{key}", "http://{key}", "http://{key}/x", "http://h{key}/x", "http://h:{key}/", "{key}://h/", "ftp://h/", "/x", "http://", "http:///x",
		"http://u:p@{key}/", "http://h/{kye}", "http://h/{", "http://a b/", "mailto:x",
	} {
		var a httpcall.Address
		if err := a.UnmarshalText([]byte(address)); err == nil {
			t.Errorf("%s is an address", address)
		}
	}
}

func TestAHeaderIsOneLine(t *testing.T) {
	t.Parallel()

	h := make(httpcall.Headers)

	var err error
	if h["x-key"], err = value.ParseTemplate("k={key}"); err != nil {
		t.Fatal(err)
	}

	for key, want := range map[string]string{"a\tb": "k=a\tb", "a\r\nHost: x": "", "a\x00": "", "ü": "k=ü"} {
		got, err := h.Of(value.Of(&pipeline.Message{Key: key}))
		if got["X-Key"] != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v", key, got, err)
		}
	}
}

func FuzzAddress(f *testing.F) {
	f.Add("http://h/{key}/x?y={key}", "../x")
	f.Add("http://h?{key}", "a&b#c")
	f.Add("http://h/{key} ", "/")

	f.Fuzz(func(t *testing.T, address, key string) {
		var a httpcall.Address
		if a.UnmarshalText([]byte(address)) != nil {
			return
		}

		got, err := a.Of(value.Of(&pipeline.Message{Key: key, Body: []byte("{}")}))
		plain, plainErr := a.Of(value.Of(&pipeline.Message{Key: "k", Body: []byte("{}")}))

		if err != nil || plainErr != nil {
			return
		}

		u, err := url.Parse(got)
		v, plainErr := url.Parse(plain)

		if err != nil || plainErr != nil {
			return // the address itself is odd
		}

		if u.Host != v.Host || u.Scheme != v.Scheme || u.Fragment != "" && v.Fragment == "" ||
			strings.Count(u.EscapedPath(), "/") != strings.Count(v.EscapedPath(), "/") || len(u.Query()) != len(v.Query()) && key != "" {
			t.Errorf("%q with %q is %q, without %q", address, key, got, plain)
		}
	})
}
