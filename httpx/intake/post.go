package intake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/gate"
	"github.com/formsvc/toolkit/httpx/internal/limits"
	"github.com/formsvc/toolkit/httpx/internal/wire"
)

// How long the service may work on a form and on one of its files, and how often a form that is being stored already is looked at again.
const (
	workTimeout = 30 * time.Second
	fileTimeout = 5 * time.Minute
	twinPause   = 50 * time.Millisecond
)

// preflight answers whether a script of another origin may post.
func (v *visit) preflight() error {
	v.script = true
	if err := v.find(); err != nil {
		return err
	}
	header := v.w.Header()
	if header.Get("Access-Control-Allow-Origin") == "" {
		return errOrigin
	}
	header.Set("Access-Control-Allow-Methods", "GET, HEAD, POST")
	header.Set("Access-Control-Allow-Headers", "Accept, Content-Type, Idempotency-Key, X-Request-Id, X-Requested-With, *")
	header.Set("Access-Control-Max-Age", "600")
	v.w.WriteHeader(http.StatusNoContent)
	return nil
}

// allowOrigin refuses a script of another origin, unless the campaign allows it.
func (v *visit) allowOrigin() error {
	if v.w.Header().Get("Access-Control-Allow-Origin") == "" && v.h.origins.Check(v.r) != nil {
		return errOrigin
	}
	return nil
}

// wantsJSON reports whether a script sent the request: a page that a person sees is asked for as HTML.
func wantsJSON(r *http.Request, allowed bool) bool {
	accept, mode := r.Header.Get("Accept"), r.Header.Get("Sec-Fetch-Mode")
	mediaType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return mediaType == "application/json" || mode == "cors" || mode == "same-origin" ||
		!strings.Contains(accept, "text/html") && (strings.Contains(accept, "application/json") || r.Header.Get("X-Requested-With") != "" || allowed && accept != "")
}

// tooMany refuses what is beyond a limit of the visitor's address.
func (v *visit) tooMany(limit *limits.Limiter, name string) error {
	if limit == nil {
		return nil
	}
	wait, ok := limit.Take(name, v.h.svc.Now())
	if ok {
		return nil
	}
	v.w.Header().Set("Retry-After", strconv.Itoa(limits.Seconds(wait, 1)))
	v.slow()
	return errMany
}

// post takes what a visitor sent.
func (v *visit) post() error {
	v.script = wantsJSON(v.r, false)
	if err := v.tooMany(v.h.address, v.address); err != nil {
		return err
	}
	refused := v.find()
	if refused == nil {
		if v.w.Header().Get("Access-Control-Allow-Origin") != "" {
			v.script = wantsJSON(v.r, true)
		}
		if err := v.tooMany(v.h.visitor, v.address+" "+v.token); err != nil {
			return err
		}
		if v.script {
			refused = v.allowOrigin()
		}
		refused = cmp.Or(refused, v.closed())
	} else if !v.script && v.h.origins.Check(v.r) == nil { // since our page was shown
		v.campaign = &formsvc.Campaign{CampaignInput: formsvc.CampaignInput{EmailOptional: true, Form: formsvc.Form{HideName: true}}}
	}
	if refused != nil && (v.script || v.campaign == nil) {
		return refused
	}
	most := v.h.most()
	if v.r.ContentLength > most {
		return cmp.Or[error](refused, &limitError{"large", byteCount(most)})
	}
	paced := gate.NewBody(v.w, v.r, bodyGrace)
	if err := cmp.Or(refused, v.read(&body{Reader: http.MaxBytesReader(v.w, paced, most), v: v})); err != nil {
		if v.sent != nil {
			v.sent.interpret(v.campaign, v.t)
		}
		return err
	}
	_ = http.NewResponseController(v.w).SetReadDeadline(time.Time{}) // a deadline that passes during our own work would end it
	return v.take(v.sent)
}

// most returns the largest size of a form with its files in bytes.
func (h *Handler) most() int64 { return fullFiles*h.svc.Files.Limit() + maxText }

// take checks and stores what was sent, and replies.
func (v *visit) take(s *sent) error {
	s.interpret(v.campaign, v.t)
	switch {
	case s.trapped:
		s.input.Held = formsvc.HeldTrap
	case s.tooQuick(v.h.svc.Now()):
		s.input.Held = formsvc.HeldQuick
	}
	if s.input.Held != formsvc.NotHeld {
		v.slow()
	}
	if s.page == "" && !v.script {
		// If the reply is our page, sending that completes what this request began. It counts as shown long ago.
		s.page = newPage(v.h.svc.Now().Add(-minFill))
	}
	s.input.FormToken = v.token
	if err := v.check(s); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(v.r.Context(), workTimeout)
	defer cancel()
	if s.input.Held == formsvc.NotHeld && v.judged(ctx, s) {
		s.input.Held = formsvc.HeldJudged
	}
	r, err := v.create(ctx, s)
	if errors.Is(err, formsvc.ErrErased) { // somebody deleted the response since
		return v.done("")
	}
	if err != nil {
		return v.faulty(s, err)
	}
	if err := v.upload(s, r.Key()); err != nil {
		return err
	}
	return v.done(r.Reference)
}

// judged reports whether the host's judge calls it spam.
func (v *visit) judged(ctx context.Context, s *sent) bool {
	if v.h.opts.Judge == nil {
		return false
	}
	spam, err := v.h.opts.Judge(ctx, Submission{Campaign: *v.campaign, Response: s.input, Address: v.address, Header: v.r.Header})
	if err != nil {
		v.h.opts.Logger.WarnContext(ctx, "judging a form failed; it is accepted", slog.String("requestId", v.id), slog.Any("error", err))
		return false
	}
	return spam
}

// create creates the response, once for a page and content. After a failed upload it returns the one whose files are missing.
func (v *visit) create(ctx context.Context, s *sent) (formsvc.Response, error) {
	release, err := v.slot(ctx, s)
	if err != nil {
		return formsvc.Response{}, err
	}
	defer release()
	var once *formsvc.Idempotency
	if s.page != "" {
		once = s.key(v.campaign)
		if s.resumed != "" {
			once.Key = s.named(s.resumed)
		}
	}
	for {
		r, repeated, err := formsvc.Do(v.h.svc, formsvc.Call{Idempotency: once}, func(svc *formsvc.Service) (formsvc.Response, error) {
			return svc.Responses.Create(ctx, v.campaign.Key(), s.input)
		})
		if s.resumed != "" && errors.Is(err, formsvc.ErrMismatch) || repeated && v.differs(ctx, s, &r) {
			s.resumed = "" // other content is another response
			*once = *s.key(v.campaign, s.key(v.campaign).Key, string(r.ID))
			continue
		}
		if !errors.Is(err, formsvc.ErrInFlight) {
			if once != nil {
				_, s.resumed, _ = strings.Cut(once.Key, ":")
			}
			return r, err
		}
		select { // a second click: the browser shows the reply to this one
		case <-ctx.Done():
			return r, err
		case <-time.After(twinPause):
		}
	}
}

// slot takes a slot for storing. Long bodies get few, and pauses, so that others don't wait for their writes.
func (v *visit) slot(ctx context.Context, s *sent) (release func(), err error) {
	if s.input.Held != formsvc.NotHeld {
		waiting, cancel := context.WithTimeout(ctx, slotWait)
		defer cancel()
		if v.h.heldSlots.Acquire(waiting, 1) != nil {
			return nil, cmp.Or[error](ctx.Err(), errBusy)
		}
		return func() { v.h.heldSlots.Release(1) }, nil
	}
	shared, long := v.h.opts.Limits, len(s.answers())
	from := shared.Requests
	if long >= longBody {
		from = shared.Heavy
	}
	slot, err := acquire(ctx, from, v.tenant())
	slot.PauseAfter(long, shared.Requests)
	return slot.Release, err
}

// differs reports whether a question that takes one file has another one in the response.
func (v *visit) differs(ctx context.Context, s *sent, r *formsvc.Response) bool {
	stored, err := v.h.svc.Files.List(ctx, r.Key(), formsvc.PageQuery{Limit: filesAtMost})
	return err == nil && slices.ContainsFunc(stored.Items, func(f formsvc.File) bool {
		m := s.modules[f.Module]
		return m != nil && !m.Multiple && slices.ContainsFunc(s.files, func(x file) bool { return x.module == f.Module && x.sum != f.SHA256 })
	})
}

// upload adds the files to the response. If it fails, the same page can be sent again and completes the response.
func (v *visit) upload(s *sent, to formsvc.ResponseKey) error {
	for i := range s.files {
		f, call := &s.files[i], formsvc.Call{}
		if s.page != "" {
			call.Idempotency = s.key(v.campaign, string(to.ID), f.module, f.name, f.contentType, string(f.sum[:]))
		}
		ctx, cancel := context.WithTimeout(v.r.Context(), fileTimeout)
		_, _, err := formsvc.Do(v.h.svc, call, func(svc *formsvc.Service) (formsvc.File, error) {
			return svc.Files.Upload(ctx, to, s.spooled.input(f))
		})
		cancel()
		if err != nil && !errors.Is(err, formsvc.ErrErased) {
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
		v.begin(http.StatusCreated, 0)
		_, _ = v.w.Write(wire.AppendReply(nil, map[string]string{"reference": reference})) // on an error the client has disconnected
		return nil
	}
	to := v.root + v.token + "/thanks" // relative, for any prefix
	if own := v.campaign.Form.RedirectURL; own == "" {
		v.remember(reference)
	} else {
		escaped := strings.ReplaceAll(url.QueryEscape(reference), "+", "%20") // for a path, too
		to = strings.ReplaceAll(own, "{reference}", escaped)
	}
	header.Set("Location", to)
	header.Set("Content-Security-Policy", v.policy())
	v.begin(http.StatusSeeOther, 0)
	return nil
}
