package intake

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
	"slices"
	"strings"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/gate"
	"github.com/formsvc/toolkit/httpx/internal/limits"
	"github.com/formsvc/toolkit/httpx/internal/mount"
	"github.com/formsvc/toolkit/httpx/internal/theme"
	"github.com/formsvc/toolkit/webhook"
)

// Options configures a [Handler]. The zero value is ready for use.
type Options struct {
	// Judge says whether a valid form is spam, which is then held. It is called concurrently, before the form is stored,
	// and must end with ctx. If it fails, its error is logged and the form is accepted. Defaults to none.
	Judge func(ctx context.Context, s Submission) (spam bool, err error)
	// PerVisitor is how many forms one address, or one /64 network of IPv6, may send to a campaign per minute. It may send three
	// times as many to all campaigns. Negative means no limit. Defaults to 10.
	PerVisitor int
	// LargeBodies is how many bodies with more than 16 KiB of text are read and answered at once. Further ones get 503. The
	// files of one, at most twice [formsvc.Options].MaxFile, wait in the directory of [os.TempDir] until all fields are
	// checked. Defaults to 16.
	LargeBodies int
	// TempBytes is how many bytes of files may wait there. Further forms with files get 503. One address gets at most half.
	// Defaults to 1 GiB, or to what two forms with the largest files take if that is more.
	TempBytes int64
	// Limits are those of the API in the same process (Limits of httpx.Handler), which the forms share. Defaults to limits
	// of their own.
	Limits *gate.Shared
	// ClientAddress returns the address that a request came from, such as httpx.TrustedProxies behind proxies. Defaults
	// to the host of RemoteAddr.
	ClientAddress func(*http.Request) string
	// Theme has the looks and texts of the host. Defaults to ours.
	Theme formsvc.Theme
	// Logger gets the errors that the visitor didn't cause. Defaults to [slog.Default].
	Logger *slog.Logger
}

// A Submission is what [Options].Judge judges.
type Submission struct {
	Campaign formsvc.Campaign // its logo and cover may be missing
	Response formsvc.ResponseInput
	Address  string      // of the visitor
	Header   http.Header // of the request; must not be changed
}

// A Handler serves public forms. It is safe for concurrent use and starts no goroutines.
type Handler struct {
	svc     *formsvc.Service
	opts    Options
	page    *template.Template
	theme   *theme.Theme
	texts   map[string]texts
	origins *http.CrossOriginProtection
	address *limits.Limiter       // of an address over all forms; nil: no limit
	visitor *limits.Limiter       // of an address at one form; nil: no limit
	recent  limits.Recent[found]  // by the token of their form, without pictures, so that a busy form isn't read for each post
	huge    limits.Recent[found]  // those that are slow to read, also for their pages
	pages   limits.Recent[[]byte] // large pages, see render
	large   *limits.Pool          // of places for large bodies and pages, by address
	spooled *limits.Pool          // of bytes in temporary files, by address
	// heldSlots are for responses that are held.
	heldSlots *semaphore.Weighted
}

//go:embed templates/page.html assets/form.css assets/form.js assets/form.svg assets/frame.js assets/embed.js
var assets embed.FS

// New returns a Handler for the service. It fails if an option is invalid, or as [Handler.Ready] does.
func New(svc *formsvc.Service, opts *Options) (*Handler, error) {
	if svc == nil {
		return nil, errors.New("intake: a service is required")
	}
	o := *cmp.Or(opts, &Options{})
	if o.LargeBodies = cmp.Or(o.LargeBodies, 16); o.LargeBodies < 0 || o.TempBytes < 0 {
		return nil, errors.New("intake: options: LargeBodies and TempBytes must not be negative")
	}
	o.PerVisitor, o.Logger = cmp.Or(o.PerVisitor, 10), cmp.Or(o.Logger, slog.Default())
	if o.ClientAddress == nil {
		o.ClientAddress = limits.RemoteHost
	}
	if o.Limits == nil {
		o.Limits = gate.NewShared(gate.Bounds{Requests: slots, Waiting: 4 * slots, Transfers: 8 * slots, Wait: slotWait})
	}
	o.TempBytes = cmp.Or(o.TempBytes, max(1<<30, 2*fullFiles*svc.Files.Limit()))
	h := &Handler{
		svc: svc.As(formsvc.Actor{Type: webhook.ActorVisitor}), opts: o, origins: http.NewCrossOriginProtection(), heldSlots: semaphore.NewWeighted(heldSlots),
		recent: limits.NewRecent[found](campaignsMost), huge: limits.NewRecent[found](pagesMost), pages: limits.NewRecent[[]byte](pagesMost),
		large: limits.NewPool(int64(o.LargeBodies)), spooled: limits.NewPool(o.TempBytes),
	}
	if o.PerVisitor > 0 {
		h.visitor = limits.NewLimiter(rate.Limit(float64(o.PerVisitor)/60), o.PerVisitor)
		h.address = limits.NewLimiter(3*h.visitor.Rate, 3*o.PerVisitor)
	}
	if err := h.Ready(); err != nil {
		return nil, err
	}
	var err error
	if h.theme, err = theme.New(&o.Theme, assets); err == nil {
		h.texts, err = readTexts(h.theme, o.Theme.Texts)
	}
	for _, code := range svc.Campaigns.Languages() {
		if err == nil && h.texts[code] == nil {
			err = fmt.Errorf("there are no texts in %q, a language of the service", code)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("intake: options: Theme: %w", err)
	}
	if h.page, err = template.New("").Option("missingkey=error").ParseFS(assets, "templates/page.html"); err != nil {
		return nil, fmt.Errorf("intake: %w", err)
	}
	return h, nil
}

// Preview shows the form of a campaign that is neither stored nor open. Conditions work in it, but nothing can be sent. root
// is the path that browsers know the handler by, such as "/f/".
func (h *Handler) Preview(w http.ResponseWriter, r *http.Request, c *formsvc.Campaign, root string) {
	h.visited(func(v *visit) error {
		v.found, v.preview, v.root = h.newFound(c), true, root
		v.translate()
		return v.show(http.StatusOK, v.formPage(nil, ""))
	})(w, r)
}

// ServeHTTP serves one request. It never redirects out of the handler's prefix: all its addresses are relative. As the API does, it sets
// Pattern of the request, such as "POST /{token}", for middleware that measures or traces requests; to "/" if no form can have the path.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimLeft(mount.Below(r, nil).URL.Path, "/")
	r.Pattern = "/"
	if name, ok := strings.CutPrefix(path, "assets/"); ok && (h.theme.Serve(w, r, name) || h.theme.ServeLooks(w, r, name)) {
		r.Pattern = "GET /assets/{name}"
		return
	}
	token, rest, _ := strings.Cut(path, "/")
	rest = strings.TrimLeft(rest, "/")
	kind, _, dash := strings.Cut(rest, "-")
	h.visited(func(v *visit) error {
		v.token, v.root = formToken(token), strings.Repeat("../", strings.Count(path, "/"))
		switch {
		case token == "mail" && rest != "" && (r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodPost):
			r.Pattern = r.Method + " /mail/{token}"
			return v.mail(rest)
		case v.token != "" && dash && (kind == "logo" || kind == "cover") && (r.Method == http.MethodGet || r.Method == http.MethodHead):
			r.Pattern = "GET /{token}/" + kind
			return v.picture(rest)
		case v.token == "" || rest != "thanks" && strings.ContainsFunc(rest, letter):
			return formsvc.ErrNotFound
		case r.Method == http.MethodPost && rest != "thanks":
			r.Pattern = "POST /{token}"
			return v.post()
		case r.Method == http.MethodOptions && rest != "thanks":
			r.Pattern = "OPTIONS /{token}"
			return v.preflight()
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD, OPTIONS, POST")
			return errMethod
		case rest == "thanks":
			r.Pattern = "GET /{token}/thanks"
			return v.thanks()
		}
		r.Pattern = "GET /{token}"
		return v.form(path == v.token)
	})(w, r)
}

// formToken returns the token that a segment of a path begins with. Programs make what follows an address a part of the link:
// a full stop, a quote, a bracket.
func formToken(segment string) string {
	segment = strings.TrimLeftFunc(segment, func(r rune) bool { return !letter(r) })
	if i := strings.IndexFunc(segment, func(r rune) bool { return !letter(r) }); i >= 0 {
		return segment[:i]
	}
	return segment
}

// letter reports whether tokens may have the character.
func letter(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' || r >= '0' && r <= '9' }

// visited returns a handler that replies with an error page or document if serve fails.
func (h *Handler) visited(serve func(*visit) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := &visit{h: h, w: w, r: r, t: h.texts[h.preferred(r.Header.Get("Accept-Language"))], id: limits.RequestID(r)}
		v.address = limits.Network(h.opts.ClientAddress(r))
		defer v.leave()
		header := w.Header()
		header.Set("X-Request-Id", v.id)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")     // the address is a secret of sorts
		header.Set("Cache-Control", "private, no-cache") // a browser must keep pages to go back to what was typed
		header.Set("Access-Control-Expose-Headers", "Retry-After, X-Request-Id")
		if err := serve(v); err != nil {
			v.fail(err)
		}
	}
}

// A visit is one request.
type visit struct {
	h       *Handler
	w       http.ResponseWriter
	r       *http.Request
	t       texts
	id      string
	address string // of the visitor, as it is counted
	token   string
	root    string                    // the relative path to the handler
	script  bool                      // whether the reply is JSON
	found                             // its campaign is nil until it is found
	filled  map[string][]string       // what the address fills in
	sent    *sent                     // nil until the body is read
	lost    string                    // the module of a file that couldn't be stored
	places  map[formsvc.Limited]int64 // that are left, once they are counted
	preview bool
	placed  bool // whether it has a place for large bodies and pages
	moving  bool // whether it has a slot for files
}

// leave frees what the visit holds, after the reply was written.
func (v *visit) leave() {
	if v.sent != nil {
		v.sent.spooled.close()
	}
	if v.placed {
		v.h.large.Give(v.address, 1)
	}
	if v.moving {
		v.h.opts.Limits.Transfers.Give(v.address, 1)
	}
}

// place takes a place for a large body or page, unless the visit has one.
func (v *visit) place() bool {
	v.placed = v.placed || v.h.large.Take(v.address, 1)
	return v.placed
}

// transfer takes a slot for files, unless the visit has one.
func (v *visit) transfer() bool {
	v.moving = v.moving || v.h.opts.Limits.Transfers.Take(v.address, 1)
	return v.moving
}

// found is a campaign that was looked up.
type found struct {
	campaign    *formsvc.Campaign
	logo, cover picture
	looks       theme.Style
}

func (h *Handler) newFound(c *formsvc.Campaign) found {
	look := &c.Form.Theme
	return found{c, newPicture("logo", look.Logo), newPicture("cover", look.Cover), h.theme.Looks(look)}
}

// find looks up the campaign, and sets the headers that depend on it.
func (v *visit) find() error {
	if len(v.token) > maxToken {
		return formsvc.ErrNotFound
	}
	f, ok := v.h.huge.Get(v.token, v.h.svc.Now())
	if !ok && v.r.Method == http.MethodPost { // the write confirms that the token is still the form's
		f, ok = v.h.recent.Get(v.token, v.h.svc.Now())
	}
	if !ok {
		err := v.lookUp(func(ctx context.Context) error {
			c, err := v.h.svc.Campaigns.ByForm(ctx, v.token)
			f = v.h.newFound(&c)
			return err
		})
		if err != nil {
			v.h.recent.Drop(v.token)
			return err
		}
		bare := *f.campaign
		bare.Form.Theme.Logo, bare.Form.Theme.Cover = nil, nil
		if until := v.h.svc.Now().Add(campaignAge); bare.Size() > campaignSize {
			v.h.huge.Put(v.token, f, until)
		} else {
			v.h.recent.Put(v.token, found{&bare, f.logo, f.cover, f.looks}, until)
		}
	}
	v.found = f
	c := f.campaign
	v.translate()
	header, origin := v.w.Header(), v.r.Header.Get("Origin")
	if v.r.Method != http.MethodGet || len(c.Form.AllowedOrigins) > 0 {
		header.Add("Vary", "Origin")
	}
	if slices.Contains(c.Form.AllowedOrigins, origin) {
		header.Set("Access-Control-Allow-Origin", origin)
	}
	return nil
}

// closed fails with [formsvc.ErrCampaignClosed] if the campaign takes no answers now.
func (v *visit) closed() error {
	if v.campaign.Accepts(v.h.svc.Now()) {
		return nil
	}
	return formsvc.ErrCampaignClosed
}

// form shows the page with the questions, at its own address.
func (v *visit) form(own bool) error {
	if err := v.find(); err != nil {
		return err
	}
	if !own {
		to := cmp.Or(v.root, "./") + v.token
		if v.r.URL.RawQuery != "" {
			to += "?" + v.r.URL.RawQuery
		}
		v.w.Header().Set("Location", to)
		v.w.WriteHeader(http.StatusFound)
		return nil
	}
	if err := cmp.Or(v.closed(), v.count()); err != nil {
		return err
	}
	if v.full() {
		return formsvc.ErrCampaignFull
	}
	if v.filled = v.prefilled(); len(v.filled) > 0 {
		return v.again(http.StatusOK, func() *page { return v.formPage(nil, newPage(v.h.svc.Now())) }) // not kept for others
	}
	return v.blank()
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
	p := &page{Title: v.t["thanksTitle"], About: about}
	if reference := v.remembered(); reference != "" {
		p.Reference = v.t.format("reference", reference)
	}
	return v.show(http.StatusOK, p)
}

// The cookie that tells the thanks page what was sent, for five minutes. In a frame of another site browsers may not keep it; the page then shows
// no reference. In the address anybody could put a text of theirs on the page.
const (
	sentCookie = "formsvc-sent"
	sentFor    = "; Max-Age=300; HttpOnly; SameSite=Lax"
)

// remember sets the cookie. Its path is by default that of the handler.
func (v *visit) remember(reference string) {
	cookie := sentCookie + "=" + v.token + "+" + url.QueryEscape(reference) + sentFor // http.SetCookie takes a fifth of the time of a reply
	if v.r.TLS != nil {
		cookie += "; Secure"
	}
	v.w.Header().Add("Set-Cookie", cookie)
}

// remembered returns the reference of the response that this form was last sent with, or "".
func (v *visit) remembered() string {
	cookie, err := v.r.Cookie(sentCookie)
	if err != nil {
		return ""
	}
	value, err := url.QueryUnescape(cookie.Value)
	token, reference, _ := strings.Cut(value, " ")
	if err != nil || token != v.token || len(reference) > maxReference {
		return ""
	}
	return reference
}

// maxReference is the largest size of a reference in bytes: 64 characters.
const maxReference = 256
