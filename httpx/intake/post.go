package intake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/limits"
)

// How long the service may work on a form, and how often a form that is being stored already is looked at again.
const (
	workTimeout = 30 * time.Second
	twinPause   = 50 * time.Millisecond
)

// preflight answers whether a script of another origin may post.
func (v *visit) preflight() error {
	v.script = true
	if err := v.find(); err != nil {
		return err
	}
	if err := v.allowOrigin(); err != nil {
		return err
	}
	header := v.w.Header()
	header.Set("Access-Control-Allow-Methods", http.MethodPost)
	header.Set("Access-Control-Allow-Headers", "Content-Type, Idempotency-Key")
	header.Set("Access-Control-Max-Age", "600")
	v.w.WriteHeader(http.StatusNoContent)
	return nil
}

// allowOrigin refuses a script of another origin, unless the campaign allows it.
func (v *visit) allowOrigin() error {
	header, origin := v.w.Header(), v.r.Header.Get("Origin")
	header.Add("Vary", "Origin")
	if slices.Contains(v.campaign.Form.AllowedOrigins, origin) {
		header.Set("Access-Control-Allow-Origin", origin)
		return nil
	}
	if v.r.Method == http.MethodOptions || v.h.origins.Check(v.r) != nil {
		return errOrigin
	}
	return nil
}

// wantsJSON reports whether a script sent the request.
func wantsJSON(r *http.Request) bool {
	accept := r.Header.Get("Accept")
	mediaType, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(mediaType), "application/json") ||
		strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/html")
}

// post takes what a visitor sent.
func (v *visit) post() error {
	v.script = wantsJSON(v.r)
	address := limits.Network(v.h.opts.ClientAddress(v.r))
	if len(v.token) > maxToken {
		return formsvc.ErrNotFound
	}
	if v.h.visitor != nil {
		if wait, ok := v.h.visitor.Take(address+" "+v.token, v.h.now()); !ok {
			v.w.Header().Set("Retry-After", strconv.Itoa(limits.Seconds(wait, 1)))
			v.w.Header().Set("Access-Control-Allow-Origin", "*") // so that scripts see the status
			v.slow()
			return errMany
		}
	}
	if err := v.find(); err != nil {
		return err
	}
	if v.script {
		if err := v.allowOrigin(); err != nil {
			return err
		}
	}
	if err := v.closed(); err != nil {
		return err
	}
	if v.r.ContentLength < 0 || v.r.ContentLength > smallBody {
		if !v.h.large.Take(address, 1) {
			return errBusy
		}
		defer v.h.large.Give(address, 1)
	}
	most := v.h.most()
	if v.r.ContentLength > most {
		return errTooMuch
	}
	v.r.Body = &pacedBody{ReadCloser: http.MaxBytesReader(v.w, v.r.Body, most), control: http.NewResponseController(v.w), began: time.Now()}
	s, err := v.read()
	defer s.spooled.close()
	if err != nil {
		return err
	}
	return v.take(s, address)
}

// most returns the largest size of a form with its files in bytes.
func (h *Handler) most() int64 { return fullFiles*h.svc.Files.Limit() + maxText }

// take checks and stores what was sent, and replies.
func (v *visit) take(s *sent, address string) error {
	v.sent = s
	s.interpret(v.campaign)
	switch {
	case s.trapped:
		s.input.Held = formsvc.HeldTrap
	case s.tooQuick(v.h.now()):
		s.input.Held = formsvc.HeldQuick
	}
	if s.input.Held != formsvc.NotHeld {
		v.slow()
	}
	if s.page == "" && !v.script {
		// If the reply is our page, sending that completes what this request began. It counts as shown long ago.
		s.page = newPage(v.h.now().Add(-minFill))
	}
	s.input.FormToken = v.token
	if err := v.check(s); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(v.r.Context(), workTimeout)
	defer cancel()
	if s.input.Held == formsvc.NotHeld && v.judged(ctx, s, address) {
		s.input.Held = formsvc.HeldJudged
	}
	r, err := v.create(ctx, s)
	if errors.Is(err, formsvc.ErrErased) { // somebody deleted the response since
		return v.done("")
	}
	if err != nil {
		return err
	}
	if err := v.upload(s, r.Key()); err != nil {
		return err
	}
	return v.done(r.Reference)
}

// judged reports whether the host's judge calls it spam.
func (v *visit) judged(ctx context.Context, s *sent, address string) bool {
	if v.h.opts.Judge == nil {
		return false
	}
	spam, err := v.h.opts.Judge(ctx, Submission{Campaign: *v.campaign, Response: s.input, Address: address, Header: v.r.Header})
	if err != nil {
		v.h.opts.Logger.WarnContext(ctx, "judging a form failed; it is accepted", slog.String("requestId", v.id), slog.Any("error", err))
		return false
	}
	return spam
}

// create creates the response, once for a page and content.
func (v *visit) create(ctx context.Context, s *sent) (formsvc.Response, error) {
	slots := v.h.slots
	if s.input.Held != formsvc.NotHeld {
		slots = v.h.heldSlots
	}
	if err := acquire(ctx, slots); err != nil {
		return formsvc.Response{}, err
	}
	defer slots.Release(1)
	svc := v.h.svc
	if s.page != "" {
		svc = svc.Once(s.key(v.campaign))
	}
	for {
		r, err := svc.Responses.Create(ctx, v.campaign.Key(), s.input)
		if !errors.Is(err, formsvc.ErrInFlight) {
			return r, err
		}
		select { // a second click: the browser shows the reply to this one
		case <-ctx.Done():
			return r, err
		case <-time.After(twinPause):
		}
	}
}

// upload adds the files to the response. If it fails, the same page can be sent again and completes the response.
func (v *visit) upload(s *sent, to formsvc.ResponseKey) error {
	for i := range s.files {
		f, svc := &s.files[i], v.h.svc
		if s.page != "" {
			svc = svc.Once(s.key(v.campaign, f.module, f.name, f.contentType, string(f.sum[:])))
		}
		if _, err := svc.Files.Upload(v.r.Context(), to, s.spooled.input(f)); err != nil && !errors.Is(err, formsvc.ErrErased) {
			v.lost = f.module
			return fmt.Errorf("%w: %w", errFile, err)
		}
	}
	return nil
}

// done says that it was sent.
func (v *visit) done(reference string) error {
	header := v.w.Header()
	if v.script {
		header.Set("Content-Type", "application/json")
		v.w.WriteHeader(http.StatusCreated)
		_ = json.MarshalWrite(v.w, map[string]string{"reference": reference}) // on an error the client has disconnected
		return nil
	}
	to := v.campaign.Form.RedirectURL
	if to == "" {
		to = url.PathEscape(v.token) + "/thanks" // relative, for any prefix
	}
	header.Set("Location", to)
	header.Set("Content-Security-Policy", v.policy())
	v.w.WriteHeader(http.StatusSeeOther)
	return nil
}
