package settings

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
)

// Options changes how a [Handler] works. The zero value is ready for use.
type Options struct {
	// Authenticate says who is signed in, by a session of the embedding program's own.
	// What is [formsvc.ErrUnauthenticated] is shown a page that says so, with the status
	// 401. Defaults to one-time links and sessions in the store.
	Authenticate func(*http.Request) (*Visitor, error)
	// BaseURL is the public address of the pages, for example
	// "https://forms.example.com/settings". Links begin with its path, those that are
	// mailed with all of it, and with https the cookie is for TLS alone, whatever the
	// last proxy speaks. Defaults to where the browser asked, and to no mail.
	BaseURL string
	// SendLink mails a sign-in link to the contact of an account, which is to be used
	// until the time. It is called while the browser waits, and its error is logged.
	// Defaults to none, so that links come from [formsvc.Sessions.NewLink] alone.
	SendLink func(ctx context.Context, to, link string, until time.Time) error
	// Logger gets the errors that are not the visitor's. Defaults to [slog.Default].
	Logger *slog.Logger
}

// A Visitor is who looks at the pages.
type Visitor struct {
	AccountID formsvc.ID
	// UserID and Name are those of the [formsvc.Principal] that the visitor is for the API,
	// so that the overview shows how much of his quota is used. Name is also shown, is the
	// author of comments, and is in the audit trail. Defaults to "account settings", and
	// to no quota of his own.
	UserID, Name string
}

// A Handler serves the pages. It is safe for concurrent use and runs nothing by
// itself.
type Handler struct {
	svc          *formsvc.Service
	authenticate func(*http.Request) (*Visitor, error) // nil: sessions of our own
	baseURL      *url.URL                              // nil: where the browser asked
	apiURL       *url.URL                              // without a host: that of the pages
	sendLink     func(ctx context.Context, to, link string, until time.Time) error
	logger       *slog.Logger
	origins      *http.CrossOriginProtection
	pages        pages
	api          http.Handler // for downloads, as the visitor
	mux          *http.ServeMux
	mails        *mailLimit
	now          func() time.Time
	searched     int    // see the constant
	version      string // of the assets
}

//go:embed templates/*.html
var templates embed.FS

//go:embed assets/settings.css assets/settings.js
var assets embed.FS

// New returns a Handler for the service, whose pages show commands that call the API at
// api: a path at the host that the pages are asked for, such as "/forms" for an API at
// "/forms/v1", or "/" for one at "/v1"; or all of a public address, such as
// "https://api.example.com". It fails when that or an option can't be used.
//
// The API must take keys, as every [httpx.Handler] does.
func New(svc *formsvc.Service, api string, opts *Options) (*Handler, error) {
	if svc == nil {
		return nil, errors.New("settings: a service is required")
	}
	var o Options
	if opts != nil {
		o = *opts
	}
	h := &Handler{
		svc: svc, authenticate: o.Authenticate, sendLink: o.SendLink, logger: o.Logger, origins: http.NewCrossOriginProtection(), mails: new(mailLimit), now: time.Now, searched: searched, version: assetVersion(),
	}
	if h.logger == nil {
		h.logger = slog.Default()
	}
	if err := h.locate(o.BaseURL, api); err != nil {
		return nil, err
	}
	if o.SendLink != nil && (h.baseURL == nil || o.Authenticate != nil) {
		return nil, errors.New("settings: options: SendLink needs BaseURL, and no Authenticate")
	}
	var err error
	if h.pages, err = parsePages(); err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	// Files and exports are those of the API, which knows how to send them.
	h.api, err = httpx.New(svc, &httpx.Options{Authenticate: principalOf, NoQuota: true, Logger: h.logger})
	if err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	h.mux = h.routes()
	return h, nil
}

// locate notes the public addresses of the pages and of the API.
func (h *Handler) locate(base, api string) error {
	var err error
	if h.apiURL, err = url.Parse(strings.TrimRight(api, "/")); err != nil || !isPlain(h.apiURL) ||
		!isPublic(h.apiURL) && (h.apiURL.Scheme != "" || h.apiURL.Host != "" || !strings.HasPrefix(api, "/")) {
		return errors.New("settings: the address of the API must be a path that begins with a slash, or an absolute http or https URL without query")
	}
	if base == "" {
		return nil
	}
	u, err := url.Parse(strings.TrimRight(base, "/"))
	if err != nil || !isPlain(u) || !isPublic(u) {
		return errors.New("settings: options: BaseURL must be an absolute http or https URL without query")
	}
	h.baseURL = u
	// A proxy may ask us by another name than the one that browsers know.
	return h.origins.AddTrustedOrigin(u.Scheme + "://" + u.Host)
}

// isPlain reports whether an address leads to a place and has nothing else in it.
func isPlain(u *url.URL) bool {
	return u.User == nil && u.RawQuery == "" && !u.ForceQuery && u.Fragment == ""
}

// isPublic reports whether an address says how to get there from anywhere.
func isPublic(u *url.URL) bool { return (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" }

// routes are all pages. What is not in an account's session is in open.
func (h *Handler) routes() *http.ServeMux {
	mux := http.NewServeMux()
	open := func(pattern string, serve func(*visit) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { h.serve(w, r, serve) })
	}
	page := func(pattern string, serve func(*visit) error) {
		open(pattern, func(v *visit) error {
			if err := v.enter(); err != nil {
				return err
			}
			return serve(v)
		})
	}
	open("GET /assets/{name}", (*visit).asset)
	open("GET /sign-in", (*visit).signInPage)
	open("GET /sign-in/{token}", (*visit).signInPage)
	open("POST /sign-in", (*visit).signIn)
	open("POST /sign-in/mail", (*visit).mailLink)
	page("POST /sign-out", (*visit).signOut)

	page("GET /{$}", (*visit).overview)
	page("GET /keys", (*visit).keys)
	page("POST /keys", (*visit).createKey)
	page("POST /keys/{key}/revoke", (*visit).revokeKey)

	page("GET /webhooks", (*visit).webhooks)
	page("POST /webhooks", (*visit).createWebhook)
	page("GET /webhooks/new", (*visit).newWebhook)
	page("GET /webhooks/{webhook}", (*visit).webhook)
	page("POST /webhooks/{webhook}", (*visit).updateWebhook)
	page("GET /webhooks/{webhook}/edit", (*visit).editWebhook)
	page("POST /webhooks/{webhook}/test", (*visit).testWebhook)
	page("POST /webhooks/{webhook}/state", (*visit).switchWebhook)
	page("POST /webhooks/{webhook}/rotate", (*visit).rotateWebhook)
	page("POST /webhooks/{webhook}/delete", (*visit).deleteWebhook)
	page("POST /webhooks/{webhook}/redeliver", (*visit).redeliverFailed)
	page("GET /deliveries/{delivery}", (*visit).delivery)
	page("GET /deliveries/{delivery}/body", (*visit).deliveryBody)
	page("POST /deliveries/{delivery}/redeliver", (*visit).redeliver)
	page("GET /failures", (*visit).failures)

	page("GET /campaigns", (*visit).campaigns)
	page("GET /campaigns/{campaign}", (*visit).campaign)
	page("GET /campaigns/{campaign}/export/{file}", (*visit).export)
	page("GET /campaigns/{campaign}/responses/{response}", (*visit).response)
	page("POST /campaigns/{campaign}/responses/{response}/status", (*visit).changeStatus)
	page("POST /campaigns/{campaign}/responses/{response}/comments", (*visit).comment)
	page("GET /files/{file}", (*visit).file)
	open("/", func(*visit) error { return formsvc.ErrNotFound })
	return mux
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// A ServeMux would lead from such a path to one without the prefix.
	if clean := path.Clean(r.URL.Path); clean != r.URL.Path && clean+"/" != r.URL.Path || strings.HasPrefix(r.URL.Path, "//") {
		h.serve(w, r, func(*visit) error { return formsvc.ErrNotFound })
		return
	}
	h.mux.ServeHTTP(w, r)
}

// policy lets pages load our style sheet and script, send forms to us, and nothing
// else: no inline script or style, no other host, no frame around them.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'"

// serve answers with a page, or with one that says what is wrong.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, page func(*visit) error) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	// With no-referrer, browsers say "Origin: null" of our own forms, and without TLS that
	// is all they say of where a form is from.
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store") // pages show what only their visitor may see
	v := &visit{h: h, w: w, r: r, svc: h.svc, base: basePath(r)}
	if h.baseURL != nil {
		v.base = h.baseURL.EscapedPath() // which a proxy may have taken off
	}
	err := h.origins.Check(r)
	if err != nil {
		err = &refusal{http.StatusForbidden, "This form was sent from another site", "Open the page here and send it again."}
	} else {
		err = page(v)
	}
	if err != nil {
		v.fail(err)
	}
}

// basePath returns the path that this handler is mounted under, as the browser knows
// it: what the path that was asked for has before the one that we are given.
func basePath(r *http.Request) string {
	asked, _, _ := strings.Cut(r.RequestURI, "?")
	if path, ok := strings.CutSuffix(asked, r.URL.EscapedPath()); ok && strings.HasPrefix(asked, "/") && !strings.HasPrefix(asked, "//") {
		return path
	}
	return ""
}
