package console

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
	"github.com/formsvc/toolkit/httpx/internal/gate"
	"github.com/formsvc/toolkit/httpx/internal/limits"
	"github.com/formsvc/toolkit/httpx/internal/mount"
	"github.com/formsvc/toolkit/httpx/internal/theme"
)

// Options configures a [Handler]. The zero value is ready for use.
type Options struct {
	// Authenticate returns the signed-in visitor, by a session of the host application. For
	// [formsvc.ErrUnauthenticated] the browser gets a page that asks to sign in, with the status 401. Defaults to
	// links, passwords and sessions in the store, and to pages about people.
	Authenticate func(*http.Request) (*Visitor, error)
	// BaseURL is the public address of the pages, for example "https://forms.example.com/console". Links begin with
	// its path, and mailed links with all of it. If its scheme is https, the cookie is sent over TLS alone, whatever
	// the last proxy speaks. Defaults to the address that the browser requested, and to no mail.
	BaseURL string
	// APIURL is where the pages' commands call the API: a path at the host of the pages, such as "/forms" for an API at "/forms/v1",
	// or a public address, such as "https://api.example.com". Defaults to "/", for an API at "/v1".
	APIURL string
	// FormsURL is the public address of forms, or a path at the host of the pages, such as "/f" for a httpx/intake.Handler at "/f/".
	// Defaults to "/f" under APIURL.
	FormsURL string
	// SendLink mails a sign-in link or an invitation; the link is valid until the given time. It is called in
	// a goroutine after the reply, so that the time of a reply doesn't reveal which addresses are known, and must end with
	// ctx, after a minute. Its error is logged. Defaults to none, so that only [formsvc.Sessions.NewLink] creates links.
	SendLink func(ctx context.Context, to, link string, until time.Time) error
	// Mail says that deliveries by mail are sent: the engine has a Mail in its options. Defaults to false, and pages say so.
	Mail bool
	// Providers are the OpenID providers where people can sign in, in the order of their buttons, with distinct names. Defaults to none.
	Providers []Provider
	// Proxied returns whom a trusted proxy has signed in, by a header of the request, or nil if the request doesn't come from it. Each
	// request is such a person's, without a session. An error is [formsvc.ErrUnauthenticated]. Defaults to none.
	Proxied func(*http.Request) (*formsvc.Identity, error)
	// Preview replies with the form of a campaign that isn't saved, as Preview of httpx/intake.Handler does. Defaults to
	// none, so that campaigns are edited without a preview.
	Preview func(http.ResponseWriter, *http.Request, *formsvc.Campaign)
	// ClientAddress returns the address of the client, for limiting guesses of links and sessions, such as that of
	// [httpx.TrustedProxies] behind proxies. Defaults to the address of the connection.
	ClientAddress func(*http.Request) string
	// Theme has the looks and texts of the host. Defaults to ours.
	Theme formsvc.Theme
	// Logger gets the errors that the visitor didn't cause. Defaults to [slog.Default].
	Logger *slog.Logger
}

// A Visitor is the signed-in user of the pages.
type Visitor struct {
	AccountID formsvc.ID
	// UserID and Name identify the visitor to the API, as in [formsvc.Principal], so that the overview shows the quota
	// that they have used. Name is also shown on pages, is the author of comments, and the actor of every change. Defaults
	// to "console", without a quota.
	UserID, Name string
	// Permissions lists everything that the visitor may do, such as [formsvc.Role.Permissions]. The pages neither show nor do
	// anything else: they reply with 403. A page of a campaign needs [formsvc.CampaignsRead] beside its own permission, and a change
	// needs the permission to read what it changes. An empty list permits nothing. Defaults to everything, for nil.
	Permissions []formsvc.Permission

	member *formsvc.Member // nil for the operator and for users of a host
}

// A Provider signs people in by OpenID Connect. Its methods are called concurrently.
type Provider interface {
	// Name is the last segment of its path under sign-in, and Title what its button says.
	Name() string
	Title() string
	// Begin returns where the browser goes to sign in, and a state that only this browser gets. The provider sends it back to callback.
	Begin(ctx context.Context, callback string) (location, state string, err error)
	// Finish returns who has signed in, from the query of the request to callback and the state of Begin. It fails with
	// [formsvc.ErrUnauthenticated] if the provider didn't sign anybody in, or if something doesn't fit.
	Finish(ctx context.Context, callback, state string, query url.Values) (formsvc.Identity, error)
	// End returns where a browser goes to end its session there, to come back to after; "" for nowhere.
	End(ctx context.Context, after string) string
}

// A Handler serves the pages. It is safe for concurrent use and starts no goroutines in the background, except to
// call [Options].SendLink.
type Handler struct {
	svc       *formsvc.Service
	mailing   sync.WaitGroup // calls of sendLink
	opts      Options
	baseURL   *url.URL // nil: as the browser requested
	apiURL    *url.URL // without a host: at the host of the pages
	formsURL  *url.URL // like apiURL
	origins   *http.CrossOriginProtection
	pages     pages
	theme     *theme.Theme
	words     map[string]string // of the theme
	snippets  *template.Template
	texts     map[string]map[string]string // of pages by kind, of snippets by language
	api       *httpx.Handler               // for downloads, with the visitor as principal
	mux       *http.ServeMux
	needs     map[string][]formsvc.Permission // of the pages for visitors who are signed in, by pattern
	passwords *gate.Gate                      // limits checks of passwords, fairly between networks
	trusted   *gate.Gate                      // those of the next
	seen      limits.Recent[struct{}]         // networks from where somebody has signed in by a password
	failures  *limits.Limiter                 // links, passwords and sessions that don't exist, by network
	asked     *limits.Limiter                 // requests for links, by network
	mailed    *limits.Limiter                 // links, by account
	mailers   chan struct{}                   // holds a token for each mail that is being sent
	mails     *rate.Limiter                   // links in all
	streams   streams
	closed    chan struct{}
	closeOnce sync.Once
	counts    counts
	// These are the constants, except in tests.
	searchTime, countTime, deleteTime time.Duration
}

//go:embed templates
var templates embed.FS

//go:embed assets
var assets embed.FS

// New returns a Handler for the service. Files and exports come from its API, whose limits of concurrent work and memory the pages
// share. It fails if an option is invalid.
func New(svc *formsvc.Service, api *httpx.Handler, opts *Options) (*Handler, error) {
	if svc == nil || api == nil {
		return nil, errors.New("console: a service and its API are required")
	}
	o := *cmp.Or(opts, &Options{})
	h := &Handler{
		svc: svc, api: api, opts: o, origins: http.NewCrossOriginProtection(), searchTime: searchTime, countTime: countTime, deleteTime: deleteTime,
		failures: limits.NewFailures(), asked: limits.NewLimiter(rate.Every(askEvery), askBurst),
		passwords: gate.New(passwordSlots, passwordRoom, passwordWait),
		trusted:   gate.New(passwordSlots, passwordRoom, passwordWait), seen: limits.NewRecent[struct{}](limits.Size), mailers: make(chan struct{}, mailersAtMost),
		mailed: limits.NewLimiter(rate.Every(mailPause), 1), mails: rate.NewLimiter(rate.Every(mailPause/mailBurst), mailBurst), closed: make(chan struct{}),
		streams: streams{of: map[formsvc.ID]int{}}, needs: map[string][]formsvc.Permission{},
	}
	h.opts.Logger = cmp.Or(o.Logger, slog.Default())
	if o.ClientAddress == nil {
		h.opts.ClientAddress = limits.RemoteHost
	}
	if err := h.locate(o.BaseURL, cmp.Or(o.APIURL, "/")); err != nil {
		return nil, err
	}
	if o.Authenticate != nil && (len(o.Providers) > 0 || o.Proxied != nil) {
		return nil, errors.New("console: options: Providers and Proxied can't be combined with Authenticate")
	}
	if o.SendLink != nil && (h.baseURL == nil || o.Authenticate != nil) {
		return nil, errors.New("console: options: SendLink needs BaseURL and can't be combined with Authenticate")
	}
	var err error
	if h.theme, err = theme.New(&o.Theme, assets); err != nil {
		return nil, fmt.Errorf("console: options: Theme: %w", err)
	}
	if h.pages, err = h.parsePages(); err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	h.mux = h.routes()
	return h, nil
}

// Checks of passwords at once, waiting, and how long they wait. A check takes a processor for some 40 ms, so while strangers guess, half a
// processor is left alone. Guesses don't delay networks from where somebody has signed in.
const (
	passwordSlots = 2
	passwordRoom  = 200
	passwordWait  = 10 * time.Second
	passwordRest  = 3
	networkSeen   = 30 * 24 * time.Hour
)

// locate stores the public addresses of the pages and of the API.
func (h *Handler) locate(base, api string) error {
	var ok bool
	if h.apiURL, ok = mount.Address(api); !ok {
		return errors.New("console: options: APIURL must be a path that begins with a slash, or an absolute http or https URL without query")
	}
	if h.formsURL, ok = mount.Address(cmp.Or(h.opts.FormsURL, strings.TrimRight(api, "/")+"/f")); !ok {
		return errors.New("console: options: FormsURL must be a path that begins with a slash, or an absolute http or https URL without query")
	}
	if base == "" {
		return nil
	}
	u, ok := mount.Address(base)
	if !ok || !mount.Public(u) {
		return errors.New("console: options: BaseURL must be an absolute http or https URL without query")
	}
	h.baseURL = u
	// A proxy may use another host name for us than browsers do.
	return h.origins.AddTrustedOrigin(u.Scheme + "://" + u.Host)
}

// ServeHTTP serves one request. As the API does, it sets Pattern of the request to the method and pattern of the page, relative to the pages, for
// middleware that measures or traces requests.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	below := mount.Below(r, nil)
	if mount.Plain(below) {
		h.mux.ServeHTTP(w, below)
	} else {
		h.serve(w, below, func(*visit) error { return formsvc.ErrNotFound })
	}
	r.Pattern = below.Pattern
}

// policy lets pages load our style sheet, script and images and send forms to us. It forbids inline scripts and styles, other
// hosts and frames.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'"

// serve runs a page, or shows the error page if it fails.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, page func(*visit) error) {
	header := w.Header()
	header.Set("X-Request-Id", limits.RequestID(r))
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	// With no-referrer, browsers send "Origin: null" with our own forms. Without TLS there is no other sign of a form's
	// origin.
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store") // pages show private data
	v := &visit{h: h, w: w, r: r, svc: h.svc, base: mount.Prefix(r), zone: zoneOf(r), wrong: map[string]string{}}
	if h.baseURL != nil {
		v.base = h.baseURL.EscapedPath() // a proxy may have removed it from the request
	}
	if v.secure() && h.opts.Authenticate == nil { // a host application decides for itself
		header.Set("Strict-Transport-Security", "max-age=31536000")
	}
	defer func() { v.slot.Release() }()
	err := h.origins.Check(r)
	if err != nil {
		err = &refusal{http.StatusForbidden, "This form was sent from another site", "Reload the page here and submit it again."}
	} else {
		err = page(v)
	}
	if err != nil {
		v.fail(err)
	}
}
