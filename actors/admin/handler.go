package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// handler serves the routes to those who may have them.
type handler struct {
	o     Options
	mux   *http.ServeMux
	token [sha256.Size]byte
	// cross refuses changes that a web page of another origin asks for.
	cross *http.CrossOriginProtection
	// places is how many requests are answered at a time.
	places chan struct{}
	// byPattern are the routes.
	byPattern map[string]Route
}

// requestsAtOnce is how many requests are answered at a time; further ones are refused. A guess: a person, a scraper and two
// probes are four.
const requestsAtOnce = 32

// NewHandler returns what [Serve] serves, for a listener of your own; of the options Address is not used. What o.Routes add
// must not be there already.
func NewHandler(o Options) http.Handler {
	h := &handler{
		o: o, mux: http.NewServeMux(), token: sha256.Sum256([]byte(o.Token)), cross: http.NewCrossOriginProtection(),
		places: make(chan struct{}, requestsAtOnce), byPattern: make(map[string]Route),
	}

	for _, r := range h.routes() {
		pattern := r.Method + " " + r.Path
		h.byPattern[pattern] = r
		h.mux.Handle(pattern, r.Serve)
	}

	return h
}

// ServeHTTP answers a request within its bounds, when it may be asked.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case h.places <- struct{}{}:
		defer func() { <-h.places }()
	default:
		h.refuse(w, failf(http.StatusServiceUnavailable, "too many requests at once; at most %d are answered", requestsAtOnce))

		return
	}

	_, pattern := h.mux.Handler(r)
	route := h.byPattern[pattern]

	if err := h.check(r, route); err != nil {
		if statusOf(err) == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Bearer realm="millrace"`)
		}

		h.refuse(w, err)

		return
	}

	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")

	r, cancel := bounded(w, r, route.MaxBody)
	defer cancel()

	h.mux.ServeHTTP(w, r)
}

func (h *handler) refuse(w http.ResponseWriter, err error) {
	h.answer(func(*http.Request) (any, error) { return nil, err })(w, nil)
}

// check refuses requests of those who may not ask.
func (h *handler) check(r *http.Request, route Route) error {
	if h.o.Token == "" && !h.o.Private && !ownHost(r.Host) {
		return failf(http.StatusMisdirectedRequest,
			"the host %q is not served; ask for localhost or for an IP address, or set a token", r.Host)
	}

	if err := h.cross.Check(r); err != nil {
		return failf(http.StatusForbidden, "a page of another origin may not change anything here")
	}

	if h.o.Token != "" && !h.o.Private && !route.Open && !h.isToken(r.Header.Get("Authorization")) {
		return failf(http.StatusUnauthorized, "this needs the token, as a header: Authorization: Bearer …")
	}

	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil || kind != "application/json" {
			return failf(http.StatusUnsupportedMediaType, "the body must be JSON, with a header: Content-Type: application/json")
		}
	}

	return nil
}

// isToken compares without telling by its time how much of a token is right.
func (h *handler) isToken(header string) bool {
	given, ok := strings.CutPrefix(header, "Bearer ")
	sum := sha256.Sum256([]byte(given))

	return subtle.ConstantTimeCompare(sum[:], h.token[:]) == 1 && ok
}

// ownHost reports whether a request is for a name that nobody can rebind: an IP address or localhost.
func ownHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}

	if host == "localhost" {
		return true
	}

	_, err := netip.ParseAddr(strings.Trim(host, "[]"))

	return err == nil
}
