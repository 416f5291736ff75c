package console

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/gate"
	"github.com/formsvc/toolkit/httpx/internal/wire"
	"github.com/formsvc/toolkit/webhook"
)

// maxForm is the limit of a form in bytes. It fits the longest comment, the longest headers of a webhook, and each campaign that the
// editor shows (maxEdited), whose choices are sent twice and whose bytes become three each.
const maxForm = 768 << 10

// A visit is one request and its reply.
type visit struct {
	h    *Handler
	w    http.ResponseWriter
	r    *http.Request
	svc  *formsvc.Service // with the visitor as actor
	base string           // the path that the pages are under
	zone *time.Location   // of the browser
	who  *Visitor         // nil: not signed in
	// slot is held while the page is made, but not while it is sent.
	slot gate.Slot
	// campaign is that in the path.
	campaign formsvc.Campaign
	// session is the value of the cookie, "" if the host application has the sessions.
	session string
	began   formsvc.Session // that session
	sort    string          // what the table is sorted by, "" for the date
	// wrong has the errors of the form, by the name of the field.
	wrong map[string]string
}

func (v *visit) ctx() context.Context { return v.r.Context() }

// account returns the account that the pages show.
func (v *visit) account() formsvc.ID { return v.who.AccountID }

// id returns an identifier in the path.
func (v *visit) id(name string) formsvc.ID { return readID(v.r.PathValue(name)) }

// readID reads an identifier in any case. It returns an invalid one unchanged; the service then finds no such record.
func readID(s string) formsvc.ID {
	if id, ok := formsvc.ParseID(s); ok {
		return id
	}
	return formsvc.ID(s)
}

// enter checks that a visitor is signed in, and that a form comes from one of our pages. It reads the campaign in the
// path.
func (v *visit) enter() error {
	who, err := v.authenticate()
	if err != nil {
		return err
	}
	v.who = new(*who)
	v.who.UserID = cmp.Or(who.UserID, who.Name) // as for [formsvc.Principal.Subject]
	if strings.TrimSpace(v.who.Name) == "" {
		v.who.Name = "console"
	}
	v.svc = v.h.svc.As(formsvc.Actor{Type: webhook.ActorPerson, ID: v.who.UserID, Name: v.who.Name})
	if v.who.member != nil {
		v.svc = v.h.svc.AsMember(v.who.member)
	}
	if err := cmp.Or(v.permitted(v.r.Pattern), v.readForm()); err != nil {
		return err
	}
	list := v.r.Method == http.MethodGet // the requests of forms are small
	if v.slot, err = v.h.api.Limits().For(string(v.account()), list, v.svc.Now()).Acquire(v.ctx(), string(v.account())); err != nil {
		return busy(err)
	}
	if v.r.PathValue("campaign") == "" {
		return nil
	}
	v.campaign, err = v.svc.Campaigns.Get(v.ctx(), formsvc.CampaignKey{AccountID: v.account(), ID: v.id("campaign")})
	return err
}

// readForm reads the form, if there is one. Browsers that don't send a form's origin are too old for SameSite cookies,
// so forms have a token too. Line ends become those of stored texts: browsers send others, even in fields that nobody sees.
func (v *visit) readForm() error {
	if v.r.Method != http.MethodPost {
		return nil
	}
	most := int64(maxForm)
	if v.r.Pattern == looksPattern {
		most = maxLooks
		transfers := v.h.api.Limits().Transfers
		if !transfers.Take(string(v.account()), 1) {
			return errBusy
		}
		defer transfers.Give(string(v.account()), 1)
	}
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, most)
	err := v.r.ParseForm()
	if err == nil {
		err = v.r.ParseMultipartForm(most) // keeps all of it in memory
	}
	if err != nil && !errors.Is(err, http.ErrNotMultipart) {
		return &refusal{http.StatusBadRequest, "The form can't be read", fmt.Sprintf("It's incomplete, or has more than %d kB. Make it smaller, and submit it again.", most/1000)}
	}
	if !hmac.Equal([]byte(v.r.PostForm.Get("token")), []byte(v.token())) {
		return &refusal{http.StatusForbidden, "The form has expired", "You may have signed in again since you opened it. Go back, reload the page and submit it again."}
	}
	for _, values := range v.r.PostForm {
		if err := formsvc.CheckText(values...); err != nil {
			return &refusal{http.StatusBadRequest, "The form can't be read", "The text isn't valid UTF-8 or has a NUL character."}
		}
		for i, text := range values {
			values[i] = strings.ReplaceAll(text, "\r\n", "\n")
		}
	}
	return nil
}

// token returns the token that forms of this session must have, or "" if the host application has the sessions.
func (v *visit) token() string {
	if v.session == "" {
		return ""
	}
	mac := hmac.New(sha256.New, []byte(v.session))
	mac.Write([]byte("form"))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// field returns a field of the form without surrounding space.
func (v *visit) field(name string) string { return strings.TrimSpace(v.r.PostForm.Get(name)) }

// query returns a parameter of the address.
func (v *visit) query(name string) string { return strings.TrimSpace(v.r.URL.Query().Get(name)) }

// once calls a method for a form that must take effect once, even if a double click or a reload sends it again. repeated is
// true if it did before.
func once[T any](v *visit, method func(*formsvc.Service) (T, error)) (result T, repeated bool, err error) {
	// Forms of one page share the field "once", but each must take effect.
	form := sha256.Sum256([]byte(v.r.URL.Path + " " + v.r.PostForm.Get("once")))
	key := "console-" + base64.RawURLEncoding.EncodeToString(form[:])
	idem := formsvc.Idempotency{Key: key, Request: sha256.Sum256([]byte(v.r.PostForm.Encode()))}
	return formsvc.Do(v.svc, formsvc.Call{Idempotency: &idem}, method)
}

// errShown is the refusal of a form that was submitted again, after its result was shown.
var errShown = &refusal{
	http.StatusConflict, "Already done", "The form was submitted twice, and took effect once. A key or secret that was shown once can't be shown again.",
}

// redirect redirects to one of our pages, or returns err.
func (v *visit) redirect(err error, path string, query url.Values) error {
	if err != nil {
		return err
	}
	location := v.base + path
	if len(query) > 0 {
		location += "?" + query.Encode()
	}
	v.w.Header().Set("Location", location)
	v.w.WriteHeader(http.StatusSeeOther)
	return nil
}

// done redirects to one of our pages with a note, or returns err.
func (v *visit) done(err error, path, note string) error {
	return v.redirect(err, path, url.Values{"note": {note}})
}

// path returns the path of a page of the campaign; "" is that with its responses.
func (v *visit) path(page string) string { return "/campaigns/" + string(v.campaign.ID) + page }

// show sends a page.
func (v *visit) show(status int, name, title string, data any) error {
	p := page{
		Base: v.base, Name: name, Title: title, Section: v.h.texts["sections"][name], Token: v.token(), Once: rand.Text(), Note: v.note(),
		Wrong: v.wrong, Version: v.h.theme.Version, Campaign: &v.campaign, Data: data,
		Zone: v.zone.String(), TellZone: v.r.Method == http.MethodGet, visit: v,
	}
	if v.who != nil {
		p.Who, p.SignsOut, p.Own = v.who.Name, v.session != "", v.h.opts.Authenticate == nil
		p.Operator = p.Own && v.who.member == nil
	}
	var err error
	if p.Frame, err = v.h.theme.Frame(v.base+"/", title, v.h.words); err != nil {
		return err
	}
	var b bytes.Buffer
	for p.Part = 1; p.Part == 1 || p.parted && b.Len() > pageBytes && p.Part <= mostParts; p.Part *= 2 {
		b.Reset()
		p.Cut = false
		if err := v.h.pages[name].ExecuteTemplate(&b, "layout.html", &p); err != nil {
			return err
		}
	}
	page := v.localTimes(b.Bytes())
	v.slot.Release()
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.WriteHeader(status)
	_, _ = v.w.Write(page) // on an error the browser has disconnected
	return nil
}

// errBusy is the refusal of a page while the server is overloaded. It isn't logged: there may be many.
var errBusy = &refusal{http.StatusServiceUnavailable, "The server is busy", "Nothing was changed. Try again in a moment."}

// busy returns the refusal for an error of a gate.
func busy(err error) error {
	if errors.Is(err, gate.ErrCrowded) || errors.Is(err, gate.ErrNoSlot) {
		return errBusy
	}
	return err
}

// A refusal is a page that shows an error.
type refusal struct {
	status        int
	title, detail string
}

func (e *refusal) Error() string { return e.title }

// refusalOf returns what the page says about an error. Visitors know no keys and versions, so some texts are not the API's.
func (v *visit) refusalOf(err error) *refusal {
	p := wire.ProblemOf(v.ctx(), err)
	if p.Title == "" {
		return &refusal{http.StatusInternalServerError, "Something went wrong", "This is a problem on the server."}
	}
	r := &refusal{p.Status, p.Title, cmp.Or(v.h.texts["refusals"][p.Code], p.Detail)}
	if errors.Is(err, formsvc.ErrLimit) {
		r.detail += " Delete or revoke one first."
	}
	switch p.Code {
	case "validation_failed", "too_large":
		for _, f := range p.Fields {
			if f.Pointer != "/status" { // of a host's rule
				r.detail = "Nothing was changed. Go back, and correct this first: " + place(f.Pointer) + " " + f.Detail + "."
			}
		}
	case "response_deleted", "precondition_failed", "idempotency_mismatch":
		r.status = http.StatusConflict
	}
	return r
}

// fail shows the error page for err. If the visitor didn't cause the error, the page shows an identifier, and the
// log has the rest. The log doesn't have the address, since that of a sign-in link is a secret.
func (v *visit) fail(err error) {
	if errors.Is(err, formsvc.ErrUnauthenticated) {
		v.who = nil
		err = v.showSignIn(http.StatusUnauthorized, "")
		if err == nil {
			return
		}
	}
	refused, ok := errors.AsType[*refusal](err)
	if !ok {
		refused = v.refusalOf(err)
	}
	if errors.Is(err, formsvc.ErrQuota) {
		v.w.Header().Set("Retry-After", wire.QuotaWait)
	}
	id := ""
	if refused.status >= http.StatusInternalServerError && refused != errBusy && v.ctx().Err() == nil {
		id = v.w.Header().Get("X-Request-Id")
		v.h.opts.Logger.LogAttrs(v.ctx(), slog.LevelError, "console page failed", slog.String("method", v.r.Method),
			slog.String("route", v.r.Pattern), slog.Int("status", refused.status), slog.String("error", err.Error()), slog.String("requestId", id))
	}
	if err := v.show(refused.status, "refused", refused.title, refusedPage{Detail: refused.detail, ID: id}); err != nil {
		http.Error(v.w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
	}
}

type refusedPage struct{ Detail, ID string }

// invalid keeps the errors of a form, to show them beside its fields, and reports whether err has any.
func (v *visit) invalid(err error) bool {
	invalid, ok := errors.AsType[*formsvc.ValidationError](err)
	if !ok {
		return false
	}
	v.wrong = map[string]string{}
	for _, f := range invalid.Fields {
		name := place(f.Pointer)
		switch {
		case v.wrong[name] == "":
			v.wrong[name] = f.Detail
		case name == "headers": // each names its header
			v.wrong[name] += "; " + f.Detail
		}
	}
	return true
}

// A choice is a value that a field of a form can have.
type choice struct {
	Value, Text string
	Icon        string // of the sprite; "" for none
	Chosen      bool
}

// choices returns the values in their order.
func choices[T ~string](h *Handler, values, chosen []T) (list []choice) {
	for _, value := range values {
		list = append(list, choice{Value: string(value), Text: h.texts["choices"][string(value)], Chosen: slices.Contains(chosen, value)})
	}
	return list
}

// place maps a pointer in an input to a field of a form, such as title, form.redirectUrl or modules.3.options.
func place(pointer string) string {
	parts := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	depth := max(map[string]int{"form": 2, "modules": 3}[parts[0]], 1)
	if strings.HasPrefix(pointer, "/form/texts/") || strings.HasPrefix(pointer, "/form/theme/") || strings.HasPrefix(pointer, "/form/confirmation/") {
		depth = 3
	}
	return strings.Join(parts[:min(len(parts), depth)], ".")
}
