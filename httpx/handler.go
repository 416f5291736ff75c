package httpx

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/gate"
	"github.com/formsvc/toolkit/httpx/internal/limits"
	"github.com/formsvc/toolkit/httpx/internal/mount"
	"github.com/formsvc/toolkit/httpx/internal/wire"
)

// Defaults of [Options].
const (
	DefaultMaxRequests = 256              // of MaxRequests
	DefaultMaxMemory   = 128 << 20        // of MaxMemory: 128 MiB
	DefaultTimeout     = 30 * time.Second // of Timeout
)

// MaxBody is the limit of a JSON body in bytes.
const MaxBody = 4 << 20

// MaxErrors is the limit of entries that a problem document lists under errors.
const MaxErrors = wire.MaxErrors

// bodyGrace is how long a stream of HTTP/2 may take for a JSON body, besides a second for every 16 KiB. Over HTTP/1, the server's
// ReadTimeout limits it.
const bodyGrace = 10 * time.Second

// MaxRate is the maximum of [Options.Rate].
const MaxRate = 1_000_000

// Options configures a [Handler]. The zero value is ready for use.
type Options struct {
	// BaseURL is the public address of the API, without "/v1", for example "https://forms.example.com/api". The
	// Location header uses it, and the OpenAPI document names it as the server. It defaults to the path that the client
	// requested, which is right wherever the Handler is mounted, unless a proxy in front changes paths.
	BaseURL string
	// FormsURL is the public address of forms, for form.url of campaigns, or their path, such as "/f" for a httpx/intake.Handler at "/f/".
	// A path is at the host of BaseURL; without BaseURL, form.url is a path too. Defaults to "/f" under BaseURL, and to none without it.
	FormsURL string
	// MaxRequests is the limit of concurrent requests. Beyond it a request waits for up to a second, after its key and its
	// body were read, and then fails with 503 and Retry-After. If 40 times as many wait, it fails at once. A refused
	// request has changed nothing and doesn't count for the quota. Public routes always reply.
	//
	// A request holds a slot only while the server works on it, so slow clients block nobody. An account gets a slot only
	// while it holds fewer than are free. Look-ups of keys, lists, exports, and accounts with large bodies have slots of
	// their own. Twice as many file transfers may run at once, each of which takes up to 0.6 MiB of memory, besides what
	// the blob store uses. An export counts as a 32nd of them. Defaults to [DefaultMaxRequests].
	MaxRequests int
	// Timeout is how long the server may work on a request before it fails with 503: since it began, and again since its body was
	// read. It doesn't limit uploads, downloads and exports. A write that has begun to commit is not ended. Negative means no limit.
	// Defaults to [DefaultTimeout].
	Timeout time.Duration
	// MaxMemory is the limit of all JSON bodies held at once in bytes, without the first 16 KiB of each: those of
	// requests, and those of replies until the client has read them. It is at least 8 MiB. An account gets more
	// only if it then holds no more than was free. Decoded bodies take a few times as much memory. Beyond the limit, a request
	// fails with 503, but not one whose change is made. Defaults to [DefaultMaxMemory].
	MaxMemory int64
	// Authenticate returns the principal of a request that carries a login of the host application. For a request
	// without that login it returns [formsvc.ErrUnauthenticated]. Then the API key in the Authorization header decides,
	// so that keys work beside the login. A request without a valid key gets 401. The Handler doesn't change the
	// result, so requests may share it. If the login is a cookie, which browsers also send with requests from other
	// sites, wrap the Handler in [http.CrossOriginProtection]. Defaults to API keys alone.
	Authenticate func(*http.Request) (*formsvc.Principal, error)
	// ClientAddress returns the address of the client, for limiting failed authentication. Set it behind a proxy, for
	// example to [TrustedProxies]. It must not rely on headers that clients can forge: a client with a forged address
	// can fail as often as it likes. Defaults to the host of RemoteAddr.
	ClientAddress func(*http.Request) string
	// Rate is the limit of requests per second for a key, or for a user without a key, in the long run, at most [MaxRate].
	// A key may send those of a second at once. Beyond it a request gets 429 and doesn't count for the quota. Rate smooths
	// bursts on this Handler alone; the hourly limit is the quota of the service. Negative means no limit. Defaults to no limit.
	Rate float64
	// Links are shown by GET / after the documentation, in this order: pages that the program serves beside the
	// Handler, such as those of package [github.com/formsvc/toolkit/httpx/console]. Defaults to none.
	Links []Link
	// Logger gets failures that the client didn't cause: replies of 500 and above, and panics. Requests refused for
	// overload are summed up at most every ten seconds. A record has the request's id, its method, the pattern of its
	// route, and the cause; never a body, a key, an address or a query. Defaults to [slog.Default].
	Logger *slog.Logger
	// Ready decides what GET /readyz returns: 200 for nil and for a [*formsvc.DegradedError], whose components the body names, and
	// 503 for any other error. A result is used for a second, and logged when it changes, unless the error is
	// [http.ErrServerClosed]: then the server is shutting down. A call ends after 5 seconds. Defaults to [formsvc.Service.Ready],
	// which asks the store and the blob store.
	Ready func(context.Context) error
}

// A Handler serves the API. It is safe for concurrent use and starts no goroutines in the background. It takes a path as it was
// sent, and never redirects.
//
// A file or an export may take longer than ReadTimeout and WriteTimeout of the [http.Server]: the Handler moves the
// deadlines of the connection. The client may make the server wait for up to a minute at a time, and altogether for a
// minute and a second more for every 16 KiB.
type Handler struct {
	svc          *formsvc.Service
	baseURL      string
	formsURL     string // with a slash at its end; "": unknown
	timeout      time.Duration
	authenticate func(*http.Request) (*formsvc.Principal, error) // nil: keys alone
	logger       *slog.Logger
	ready        *readiness
	// clientAddress returns the address that failed authentication counts for.
	clientAddress func(*http.Request) string
	failures      *limits.Limiter // of authentication, by address
	rates         *limits.Limiter // of requests, by key; nil: any number
	archived      int             // the limit of files in an archive
	grace         time.Duration   // how long clients that send or take files may pause
	bodyGrace     time.Duration   // how long clients may pause while they send JSON over HTTP/2
	routes        *http.ServeMux
	links         []Link    // of the root
	calls         sync.Pool // of *call
	shared        *gate.Shared
	refused       atomic.Int64   // for overload, since the last log record
	refusals      rate.Sometimes // log records
}

// New returns a Handler for the service. It fails if an option is invalid.
func New(svc *formsvc.Service, opts *Options) (*Handler, error) {
	if svc == nil {
		return nil, errors.New("httpx: a service is required")
	}
	o := *cmp.Or(opts, &Options{})
	h := &Handler{
		svc: svc, timeout: cmp.Or(o.Timeout, DefaultTimeout), authenticate: o.Authenticate, logger: cmp.Or(o.Logger, slog.Default()),
		archived: maxArchived, grace: gate.Grace, bodyGrace: bodyGrace, refusals: rate.Sometimes{Interval: refusalsEvery}, clientAddress: o.ClientAddress,
		failures: limits.NewFailures(),
	}
	err := h.locate(o.BaseURL, o.FormsURL)
	if err != nil {
		return nil, err
	}
	if h.links, err = checkLinks(o.Links); err != nil {
		return nil, err
	}
	if o.MaxRequests < 0 || o.MaxMemory < 0 {
		return nil, errors.New("httpx: options: MaxRequests and MaxMemory must not be negative")
	}
	requests := cmp.Or(o.MaxRequests, DefaultMaxRequests)
	h.shared = gate.NewShared(gate.Bounds{
		Requests: requests, Waiting: 40 * requests, Transfers: 2 * requests, Wait: time.Second,
		Body: MaxBody, Memory: cmp.Or(o.MaxMemory, DefaultMaxMemory),
	})
	if h.rates, err = o.checkRate(); err != nil {
		return nil, err
	}
	if h.clientAddress == nil {
		h.clientAddress = limits.RemoteHost
	}
	if o.Ready == nil {
		o.Ready = svc.Ready
	}
	h.ready = &readiness{check: o.Ready, logger: h.logger, turn: make(chan struct{}, 1)}
	h.routes = h.mux(routes())
	return h, nil
}

// Limits returns the limits of concurrent work and memory, for httpx/intake.Options.
func (h *Handler) Limits() *gate.Shared { return h.shared }

// locate stores the public addresses of the API and of forms.
func (h *Handler) locate(base, forms string) error {
	host := &url.URL{}
	if base != "" {
		u, ok := mount.Address(base)
		if !ok || !mount.Public(u) {
			return errors.New("httpx: options: BaseURL must be an absolute http or https URL without query")
		}
		host, h.baseURL = u, strings.TrimRight(base, "/")
		forms = cmp.Or(forms, h.baseURL+"/f")
	}
	if forms == "" {
		return nil
	}
	u, ok := mount.Address(forms)
	if !ok {
		return errors.New("httpx: options: FormsURL must be a path that begins with a slash, or an absolute http or https URL without query")
	}
	h.formsURL = mount.Whole(u, host) + "/"
	return nil
}
