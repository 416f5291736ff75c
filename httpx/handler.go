package httpx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// Defaults of [Options].
const (
	DefaultMaxBody      = 4 << 20     // of MaxBody: 4 MiB
	DefaultMaxTransfers = 512         // of MaxTransfers
	DefaultMaxRequests  = 256         // of MaxRequests
	DefaultMaxWaiting   = 10_000      // of MaxWaiting
	DefaultMaxWait      = time.Second // of MaxWait
	DefaultMaxBodies    = 128 << 20   // of MaxBodies: 128 MiB
)

// MaxRate is the largest [Options.Rate].
const MaxRate = 1_000_000

// Options changes how a [Handler] works. The zero value is ready for use.
type Options struct {
	// BaseURL is the public address of the API, without "/v1", for example
	// "https://forms.example.com/api". It is used in Location, and is the server
	// that the description names. Defaults to the path that the client asked for,
	// which is right wherever the Handler is mounted, unless a proxy in front
	// changes paths.
	BaseURL string
	// MaxBody is how many bytes a JSON body may have. Defaults to
	// [DefaultMaxBody].
	MaxBody int64
	// MaxTransfers is how many files, in both directions together, and exports may
	// be on their way at once; each takes up to 1.2 MiB of memory, besides what the
	// blob store bounds by itself. One more is answered 503. Defaults to [DefaultMaxTransfers].
	MaxTransfers int
	// MaxRequests is how many requests may be worked on at once. One more waits,
	// before anything is known of it, for MaxWait at most, and is then answered 503
	// with Retry-After: what is refused has changed nothing and does not count for the
	// quota. To refuse it at once would bring the client's next request at once, and no
	// refusal is so cheap that a server could give ten of them for each request that it
	// serves; one that waits costs no more than an idle connection.
	//
	// A place is for work and not for waiting on clients: a request has none while its
	// body arrives, from where its answer begins, or while it transfers a file. So slow
	// clients keep nobody out. Public routes always answer. Defaults to
	// [DefaultMaxRequests].
	MaxRequests int
	// MaxWaiting is how many requests may wait for that. One more is answered 503 at
	// once, and its connection is closed. Defaults to [DefaultMaxWaiting].
	MaxWaiting int
	// MaxWait is how long a request may wait before it is answered 503. Defaults to
	// [DefaultMaxWait].
	MaxWait time.Duration
	// MaxBodies is how many bytes of JSON bodies are held at once, without the first
	// 16 KiB of each, and at least MaxBody; what is made of them takes a few times as
	// much. A body beyond it is answered 503. Defaults to [DefaultMaxBodies].
	MaxBodies int64
	// Authenticate says who a request speaks for, by a login of the embedding program's
	// own. It returns [formsvc.ErrUnauthenticated] for a request that has nothing of that
	// login: then the API key in the Authorization header decides, so that keys work
	// beside the login, and without a good one the answer is 401. The result is not
	// changed and may be shared between requests. Where it goes by a cookie, which
	// browsers also send with requests that other sites make them send, put
	// [http.CrossOriginProtection] around the Handler. Defaults to API keys alone.
	Authenticate func(*http.Request) (*formsvc.Principal, error)
	// ClientAddress returns the address that a request came from, where that is not
	// who connects, as behind a proxy. What clients can forge lets them fail as
	// often as they like: how often authentication may fail is limited for each
	// address. [TrustedProxies] reads what proxies say of it. Defaults to the host of
	// RemoteAddr.
	ClientAddress func(*http.Request) string
	// Rate is how many requests a second a key, or a user without one, may make in the long run, from 0 to
	// [MaxRate]; what is faster is answered 429 and does not count for the quota. It
	// smooths bursts on this Handler alone; what an hour may have is the quota of the
	// service. Defaults to any number.
	Rate float64
	// Burst is how many requests a key may make at once under Rate. Defaults to as
	// many as Rate allows in a second, and to one at least.
	Burst int
	// Links are what GET / leads to besides the documentation, in their order: pages that
	// the program serves beside the Handler, such as those of package
	// [github.com/formsvc/toolkit/httpx/settings]. Defaults to none.
	Links []Link
	// NoQuota leaves the quota of the service alone: requests are not counted. Defaults
	// to counting them.
	NoQuota bool
	// Logger gets what can't be blamed on the client: answers of 500 and above, and
	// panics; of what is refused for overload every ten seconds how much that was. A
	// record has the request's id, its method and the pattern of its route, and the
	// cause; never a body, a key, an address or a query. Defaults to [slog.Default].
	Logger *slog.Logger
	// Ready says whether GET /readyz answers 200. That it does not is logged, unless
	// the error is [http.ErrServerClosed]: the server stops because it was told to.
	// Defaults to [formsvc.Service.Ready], which asks the store and the blob store.
	Ready func(context.Context) error
}

// A Handler serves the API. It is safe for concurrent use and runs nothing by
// itself.
//
// A path is taken as it was sent, and is never redirected. (A [http.ServeMux] in
// front redirects paths with an empty or a dot segment by itself before it asks the
// Handler.)
//
// A file or an export may take longer than ReadTimeout and WriteTimeout of the
// [http.Server]: the deadlines of the connection move as long as the client neither
// makes the server wait for a minute, nor for a minute and a second more for every
// 16 KiB altogether. They are set like that also on a server without timeouts.
type Handler struct {
	svc          *formsvc.Service
	baseURL      string
	maxBody      int64
	authenticate func(*http.Request) (*formsvc.Principal, error) // nil: keys alone
	logger       *slog.Logger
	ready        func(context.Context) error
	// Where a request comes from, for failures.
	clientAddress func(*http.Request) string
	failures      *limiter // of authentication, by address
	rates         *limiter // of requests, by key; nil: any number
	quota         quotaPolicy
	now           func() time.Time // of the limiters
	grace         time.Duration    // of clients that send or take files
	resources     []resource
	links         []Link        // of the root
	calls         sync.Pool     // of *call
	transfers     chan struct{} // has an element for every file on its way
	gate          *gate         // before all other requests that need a key
	bodies        bodies
	refusals      refusals
}

// New returns a Handler for the service. It fails when an option can't be used.
func New(svc *formsvc.Service, opts *Options) (*Handler, error) {
	if svc == nil {
		return nil, errors.New("httpx: a service is required")
	}
	var o Options
	if opts != nil {
		o = *opts
	}
	h := &Handler{
		svc: svc, maxBody: o.MaxBody, authenticate: o.Authenticate, logger: o.Logger, ready: o.Ready,
		grace: paceGrace, resources: compile(routes()),
		clientAddress: o.ClientAddress, failures: newFailures(), quota: newQuotaPolicy(svc.Quotas), now: time.Now,
	}
	if o.NoQuota {
		h.quota = quotaPolicy{}
	}
	var err error
	if h.baseURL, err = checkBaseURL(o.BaseURL); err != nil {
		return nil, err
	}
	if h.links, err = checkLinks(o.Links); err != nil {
		return nil, err
	}
	if o.MaxBody < 0 {
		return nil, errors.New("httpx: options: MaxBody must not be negative")
	}
	if h.maxBody == 0 {
		h.maxBody = DefaultMaxBody
	}
	if err = h.bound(&o); err != nil {
		return nil, err
	}
	if h.rates, err = o.checkRate(); err != nil {
		return nil, err
	}
	if h.clientAddress == nil {
		h.clientAddress = remoteHost
	}
	if h.logger == nil {
		h.logger = slog.Default()
	}
	if h.ready == nil {
		h.ready = svc.Ready
	}
	return h, nil
}

// bound sets how much may be under way at once.
func (h *Handler) bound(o *Options) error {
	if o.MaxTransfers < 0 || o.MaxRequests < 0 || o.MaxWaiting < 0 || o.MaxWait < 0 || o.MaxBodies < 0 {
		return errors.New("httpx: options: MaxTransfers, MaxRequests, MaxWaiting, MaxWait and MaxBodies must not be negative")
	}
	h.transfers = make(chan struct{}, cmp.Or(o.MaxTransfers, DefaultMaxTransfers))
	h.gate = newGate(cmp.Or(o.MaxRequests, DefaultMaxRequests), cmp.Or(o.MaxWaiting, DefaultMaxWaiting), cmp.Or(o.MaxWait, DefaultMaxWait))
	h.bodies.limit = max(cmp.Or(o.MaxBodies, DefaultMaxBodies), h.maxBody)
	return nil
}

// checkBaseURL returns the address without its trailing slash.
func checkBaseURL(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" ||
		u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return "", errors.New("httpx: options: BaseURL must be an absolute http or https URL without query")
	}
	return strings.TrimRight(s, "/"), nil
}

// ServeHTTP answers one request. As [http.ServeMux] does, it sets Pattern of the request to
// the method and pattern of the [Route], such as "GET /v1/campaigns/{uuid}", for whatever
// is around it and measures or traces requests. Pattern stays as it is where there is no
// such route.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, _ := h.calls.Get().(*call)
	if c == nil {
		c = new(call)
	}
	c.begin(w, r)
	defer h.end(c)
	if err := h.serve(c); err != nil {
		h.fail(c, err)
	}
}

// serve goes through the checks that all routes share, then the route's own.
func (h *Handler) serve(c *call) error {
	resource := h.find(c)
	if resource == nil {
		return formsvc.ErrNotFound
	}
	if c.route = resource.route(c.r.Method); c.route == nil {
		return &problem{
			status: http.StatusMethodNotAllowed, code: "method_not_allowed", allow: resource.allow,
			detail: "This address takes " + resource.allow + ".",
		}
	}
	c.r.Pattern = c.route.matched
	if !c.route.Public {
		if err := h.enter(c); err != nil {
			return err
		}
		if err := h.admit(c); err != nil {
			return err
		}
	}
	if c.route.Method == http.MethodPost && len(c.r.Header["Idempotency-Key"]) > 0 {
		return h.serveOnce(c)
	}
	return c.route.handle(h, c)
}

// fail answers with the problem that err is.
func (h *Handler) fail(c *call, err error) {
	p := problemOf(c.r.Context(), err)
	if (p.status >= http.StatusInternalServerError || p.status == statusClientGone) && !p.told {
		level := slog.LevelError
		if p.status == statusClientGone {
			level = slog.LevelDebug
		}
		h.logger.LogAttrs(c.r.Context(), level, "request failed",
			c.logged(slog.Int("status", p.status), slog.String("error", err.Error()))...)
	}
	if c.sent { // part of another answer is out: only cutting it short tells the client
		panic(http.ErrAbortHandler)
	}
	c.sendProblem(p)
}

// end gives the call back, or answers for a handler that panicked. A call that
// panicked is not used again.
func (h *Handler) end(c *call) {
	v := recover()
	c.leave()
	h.bodies.give(c.weight)
	c.weight = 0
	if v == nil {
		c.reset()
		h.calls.Put(c)
		return
	}
	if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(v)
	}
	h.logger.LogAttrs(c.r.Context(), slog.LevelError, "panic",
		c.logged(slog.String("error", fmt.Sprint(v)), slog.String("stack", string(debug.Stack())))...)
	if c.sent {
		panic(http.ErrAbortHandler)
	}
	c.sendProblem(problemOf(c.r.Context(), errPanic))
}

// logged adds to a log record which request it is about.
func (c *call) logged(attrs ...slog.Attr) []slog.Attr {
	pattern := ""
	if c.route != nil {
		pattern = c.route.Pattern
	}
	return append(attrs, slog.String("requestId", c.requestID),
		slog.String("method", c.r.Method), slog.String("route", pattern))
}
