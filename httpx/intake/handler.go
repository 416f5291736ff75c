package intake

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"hash/crc32"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/limits"
)

// Options configures a [Handler]. The zero value is ready for use.
type Options struct {
	// Judge says whether a valid form is spam, which is then held. It is called concurrently, before the form is stored,
	// and must end with ctx. If it fails, its error is logged and the form is accepted. Defaults to none.
	Judge func(ctx context.Context, s Submission) (spam bool, err error)
	// PerVisitor is how many forms one address, or one /64 network of IPv6, may send to a campaign per minute. Negative
	// means no limit. Defaults to 10.
	PerVisitor int
	// LargeBodies is how many bodies with files, or of more than 16 KiB, are read at once. Further ones get 503. The
	// files of one, at most twice [formsvc.Options].MaxFile, wait in the directory of [os.TempDir] until all fields are
	// checked. Defaults to 16.
	LargeBodies int
	// ClientAddress returns the address that a request came from, such as httpx.TrustedProxies behind proxies. Defaults
	// to the host of RemoteAddr.
	ClientAddress func(*http.Request) string
	// Logger gets the errors that the visitor didn't cause. Defaults to [slog.Default].
	Logger *slog.Logger
}

// A Submission is what [Options].Judge judges.
type Submission struct {
	Campaign formsvc.Campaign
	Response formsvc.ResponseInput
	Address  string      // of the visitor
	Header   http.Header // of the request; must not be changed
}

// A Handler serves public forms. It is safe for concurrent use and starts no goroutines.
type Handler struct {
	svc     *formsvc.Service
	opts    Options
	now     func() time.Time
	page    *template.Template
	texts   map[string]texts
	version string // of the assets
	mux     *http.ServeMux
	origins *http.CrossOriginProtection
	visitor *limits.Limiter                  // nil: no limit
	recent  limits.Recent[*formsvc.Campaign] // by the token of their form, so that a busy form isn't read for each post
	large   *limits.Pool                     // of places for large bodies, by address
	slots   *semaphore.Weighted
	// heldSlots are for responses that are held.
	heldSlots *semaphore.Weighted
}

//go:embed templates/page.html assets/form.css assets/form.js assets/form.svg
var assets embed.FS

// New returns a Handler for the service. It fails if an option is invalid.
func New(svc *formsvc.Service, opts *Options) (*Handler, error) {
	if svc == nil {
		return nil, errors.New("intake: a service is required")
	}
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.LargeBodies = cmp.Or(o.LargeBodies, 16); o.LargeBodies < 0 {
		return nil, errors.New("intake: options: LargeBodies must not be negative")
	}
	o.PerVisitor, o.Logger = cmp.Or(o.PerVisitor, 10), cmp.Or(o.Logger, slog.Default())
	if o.ClientAddress == nil {
		o.ClientAddress = limits.RemoteHost
	}
	h := &Handler{
		svc: svc, opts: o, now: time.Now, mux: http.NewServeMux(), origins: http.NewCrossOriginProtection(),
		slots: semaphore.NewWeighted(slots), heldSlots: semaphore.NewWeighted(heldSlots),
		recent: limits.Recent[*formsvc.Campaign]{Most: campaignsMost}, large: limits.NewPool(int64(o.LargeBodies)),
	}
	if o.PerVisitor > 0 {
		h.visitor = &limits.Limiter{Rate: rate.Limit(float64(o.PerVisitor) / 60), Burst: o.PerVisitor}
	}
	var err error
	if h.texts, err = readTexts(); err != nil {
		return nil, fmt.Errorf("intake: %w", err)
	}
	if h.page, err = template.New("").Option("missingkey=error").ParseFS(assets, "templates/page.html"); err != nil {
		return nil, fmt.Errorf("intake: %w", err)
	}
	sum := crc32.NewIEEE()
	for _, name := range []string{"form.css", "form.js", "form.svg"} {
		b, _ := assets.ReadFile("assets/" + name) // embedded
		_, _ = sum.Write(b)
		h.mux.HandleFunc("GET /assets/"+name, asset)
	}
	h.version = strconv.FormatUint(uint64(sum.Sum32()), 36)
	h.mux.HandleFunc("GET /{token}", h.visited((*visit).form))
	h.mux.HandleFunc("POST /{token}", h.visited((*visit).post))
	h.mux.HandleFunc("OPTIONS /{token}", h.visited((*visit).preflight))
	h.mux.HandleFunc("/{token}", h.visited(func(v *visit) error {
		v.w.Header().Set("Allow", "GET, HEAD, OPTIONS, POST")
		return errMethod
	}))
	h.mux.HandleFunc("GET /{token}/thanks", h.visited((*visit).thanks))
	h.mux.HandleFunc("/", h.visited(func(*visit) error { return formsvc.ErrNotFound }))
	return h, nil
}

// Preview shows the form of a campaign that is neither stored nor open, without scripts. Nothing can be sent from it. root is the path that browsers know the handler by, such as "/f/".
func (h *Handler) Preview(w http.ResponseWriter, r *http.Request, c *formsvc.Campaign, root string) {
	h.visited(func(v *visit) error {
		v.campaign, v.preview = c, root
		return v.show(http.StatusOK, v.formPage(nil, ""))
	})(w, r)
}

// ServeHTTP serves one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// visited returns a handler that replies with an error page or document if serve fails.
func (h *Handler) visited(serve func(*visit) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := &visit{h: h, w: w, r: r, t: h.texts[preferred(r.Header.Get("Accept-Language"))], id: limits.RequestID(r), token: r.PathValue("token")}
		header := w.Header()
		header.Set("X-Request-Id", v.id)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer") // the address is a secret of sorts
		header.Set("Cache-Control", "no-store")      // each page is sent back once
		if err := serve(v); err != nil {
			v.fail(err)
		}
	}
}

// asset sends the style sheet, the script or the icon. Its address changes with its content.
func asset(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	http.ServeFileFS(w, r, assets, strings.TrimPrefix(r.URL.Path, "/")) //nolint:gosec // assets is embedded
}

// A visit is one request.
type visit struct {
	h        *Handler
	w        http.ResponseWriter
	r        *http.Request
	t        texts
	id       string
	token    string
	script   bool              // whether the reply is JSON
	campaign *formsvc.Campaign // nil until it is found
	sent     *sent             // nil until the body is read
	lost     string            // the module of a file that couldn't be stored
	preview  string            // the path of the handler, if this is a preview
}

// find looks up the campaign, and sets the headers that depend on it.
func (v *visit) find() error {
	if len(v.token) > maxToken {
		return formsvc.ErrNotFound
	}
	if v.r.Method == http.MethodPost { // the write confirms that the token is still the form's
		if c, ok := v.h.recent.Get(v.token, v.h.now()); ok {
			v.campaign = c
			return nil
		}
	}
	if err := acquire(v.r.Context(), v.h.slots); err != nil {
		return err
	}
	defer v.h.slots.Release(1)
	c, err := v.h.svc.Campaigns.ByForm(v.r.Context(), v.token)
	if err != nil {
		v.h.recent.Drop(v.token)
		return err
	}
	v.campaign = &c
	if c.Size() <= campaignSize {
		v.h.recent.Put(v.token, &c, v.h.now().Add(campaignAge))
	}
	return nil
}

// closed fails with [formsvc.ErrCampaignClosed] if the campaign takes no answers now.
func (v *visit) closed() error {
	bare := formsvc.CampaignInput{Status: v.campaign.Status, OpensAt: v.campaign.OpensAt, ClosesAt: v.campaign.ClosesAt, EmailOptional: true}
	return v.h.svc.Responses.Check(&formsvc.Campaign{CampaignInput: bare}, formsvc.ResponseInput{})
}

// form shows the page with the questions.
func (v *visit) form() error {
	if err := v.find(); err != nil {
		return err
	}
	if err := v.closed(); err != nil {
		return err
	}
	return v.show(http.StatusOK, v.formPage(nil, newPage(v.h.now())))
}

// thanks shows the page after a form was sent.
func (v *visit) thanks() error {
	if err := v.find(); err != nil {
		return err
	}
	about := v.campaign.Form.SuccessMessage
	if about == "" {
		about = v.t["thanks"]
	}
	return v.show(http.StatusOK, &page{Title: v.t["thanksTitle"], About: about})
}

// show sends a page.
func (v *visit) show(status int, p *page) error {
	p.T, p.Version = v.t, v.h.version
	p.Scripts = len(p.Fields) > 0 && v.preview == ""
	p.Root = cmp.Or(v.preview, strings.Repeat("../", max(strings.Count(v.r.URL.Path, "/")-1, 0)))
	var b bytes.Buffer
	if err := v.h.page.ExecuteTemplate(&b, "page", p); err != nil {
		return err
	}
	header := v.w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Language", v.t["code"])
	header.Set("Vary", "Accept-Language")
	header.Set("Content-Security-Policy", v.policy())
	header.Set("Content-Length", strconv.Itoa(b.Len()))
	v.w.WriteHeader(status)
	_, _ = v.w.Write(b.Bytes()) // on an error the browser has disconnected
	return nil
}

// policy returns the Content-Security-Policy of a page. Browsers hold the redirect after a form against form-action, too.
func (v *visit) policy() string {
	action, ancestors := "'self'", "'none'"
	if v.preview != "" {
		ancestors += "; sandbox"
	} else if v.campaign != nil {
		f := &v.campaign.Form
		if u, err := url.Parse(f.RedirectURL); err == nil && u.Host != "" {
			source := u.Scheme + "://" + u.Host
			if !cspSource.MatchString(source) { // such as a host with an umlaut
				source = u.Scheme + ":"
			}
			action += " " + source
		}
		if len(f.AllowedOrigins) > 0 {
			ancestors = strings.Join(f.AllowedOrigins, " ") // origins are checked when they are saved
		}
	}
	return "default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self'; base-uri 'none'; form-action " + action + "; frame-ancestors " + ancestors
}

// cspSource is a source that is safe in a header.
var cspSource = regexp.MustCompile(`^https?://[A-Za-z0-9.:\[\]_-]+$`)
