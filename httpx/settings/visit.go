package settings

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
)

// maxForm is how many bytes a form may have: the largest comment and the longest
// headers of a webhook, escaped.
const maxForm = 256 << 10

// A visit is one request and its answer.
type visit struct {
	h    *Handler
	w    http.ResponseWriter
	r    *http.Request
	svc  *formsvc.Service // as the visitor
	base string           // the path that the pages are under
	who  *Visitor         // nil: nobody is signed in
	// principal is who the visitor is for the API, where the embedding program signs in.
	principal formsvc.Principal
	// session is the value of the cookie, "" where the embedding program has sessions.
	session string
	// wrong is what was wrong with the form that was sent, by the name of its field.
	wrong map[string]string
}

func (v *visit) ctx() context.Context { return v.r.Context() }

// account returns whose pages these are.
func (v *visit) account() formsvc.ID { return v.who.AccountID }

// id returns an identifier in the path.
func (v *visit) id(name string) formsvc.ID { return readID(v.r.PathValue(name)) }

// readID reads an identifier in any case. What is none names nothing, which the
// service says.
func readID(s string) formsvc.ID {
	if id, ok := formsvc.ParseID(s); ok {
		return id
	}
	return formsvc.ID(s)
}

// enter makes sure that somebody is signed in, and that a form is from one of our
// pages.
func (v *visit) enter() error {
	who, err := v.authenticate()
	if err != nil {
		return err
	}
	v.who = new(*who)
	v.principal = formsvc.Principal{AccountID: who.AccountID, UserID: who.UserID, KeyName: who.Name}
	if strings.TrimSpace(v.who.Name) == "" {
		v.who.Name = "account settings"
	}
	v.svc = v.h.svc.As(v.who.Name)
	if v.r.Method != http.MethodPost {
		return nil
	}
	return v.readForm()
}

// readForm reads the form that was sent. Browsers that don't tell where a form is
// from are too old to keep cookies to their own site, so forms have a token besides.
func (v *visit) readForm() error {
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxForm)
	if err := v.r.ParseForm(); err != nil {
		return &refusal{http.StatusBadRequest, "The form can't be read", "It is larger than it may be, or came in pieces. Try again."}
	}
	if !hmac.Equal([]byte(v.r.PostForm.Get("token")), []byte(v.token())) {
		return &refusal{http.StatusForbidden, "The form has expired", "You may have signed in again since it was shown. Go back, reload the page and send it again."}
	}
	for _, values := range v.r.PostForm {
		if err := formsvc.CheckText(values...); err != nil {
			return &refusal{http.StatusBadRequest, "The form can't be read", "It has text that is not UTF-8, or a NUL character."}
		}
	}
	return nil
}

// token returns what a form of this session must have, "" where sessions are the
// embedding program's.
func (v *visit) token() string {
	if v.session == "" {
		return ""
	}
	mac := hmac.New(sha256.New, []byte(v.session))
	mac.Write([]byte("form"))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// field returns a field of the form without the space around it.
func (v *visit) field(name string) string { return strings.TrimSpace(v.r.PostForm.Get(name)) }

// query returns a parameter of the address.
func (v *visit) query(name string) string { return strings.TrimSpace(v.r.URL.Query().Get(name)) }

// once returns the service for a form that must have its effect one time, however
// often it is sent: by a double click, or by reloading what it was answered with.
func (v *visit) once() *formsvc.Service {
	// The forms of a page have the same field, and an effect each.
	form := sha256.Sum256([]byte(v.r.URL.Path + " " + v.r.PostForm.Get("once")))
	key := "settings-" + base64.RawURLEncoding.EncodeToString(form[:])
	return v.svc.Once(&formsvc.Once{AccountID: v.account(), Key: key, Reply: func(any) formsvc.Reply {
		return formsvc.Reply{Request: form, Status: http.StatusSeeOther}
	}})
}

func newOnce() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// redirect answers with where to go on, which is always a page of ours.
func (v *visit) redirect(path string, query url.Values) error {
	location := v.base + path
	if len(query) > 0 {
		location += "?" + query.Encode()
	}
	v.w.Header().Set("Location", location)
	v.w.WriteHeader(http.StatusSeeOther)
	return nil
}

// show answers with a page.
func (v *visit) show(status int, name, title string, data any) error {
	p := page{
		Base: v.base, Name: name, Title: title, Section: sections[name], Token: v.token(), Once: newOnce(), Note: v.note(),
		Wrong: v.wrong, Version: v.h.version, Data: data,
	}
	if v.who != nil {
		p.Who, p.SignsOut = v.who.Name, v.session != ""
	}
	var b bytes.Buffer
	if err := v.h.pages[name].ExecuteTemplate(&b, "layout.html", &p); err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.WriteHeader(status)
	if v.r.Method != http.MethodHead {
		_, _ = v.w.Write(b.Bytes()) // an error means that the browser is gone
	}
	return nil
}

// A refusal is a page that says what is wrong.
type refusal struct {
	status        int
	title, detail string
}

func (e *refusal) Error() string { return e.title }

// kinds are the errors that visitors can do something about.
//
//nolint:gochecknoglobals // immutable
var kinds = []struct {
	err           error
	status        int
	title, detail string
}{
	{formsvc.ErrNotFound, http.StatusNotFound, "There is nothing here", "It was removed, or the address is wrong."},
	{formsvc.ErrRepeated, http.StatusConflict, "This was done already", "The form was sent twice. What it did is done once; a value that is shown once can't be shown again."},
	{formsvc.ErrStale, http.StatusConflict, "Somebody changed this meanwhile", "Go back, reload the page, and make your change again."},
	{formsvc.ErrNoSpace, http.StatusInsufficientStorage, "The server's disk is full", "Nothing was changed. Tell whoever runs this server."},
	{formsvc.ErrUnknownOutcome, http.StatusServiceUnavailable, "It is not known whether this was done", "The connection to the database broke. Look whether it is there before you try again."},
	{formsvc.ErrUnavailable, http.StatusServiceUnavailable, "The service can't answer now", "Nothing was changed. Try again in a moment."},
	{context.DeadlineExceeded, http.StatusServiceUnavailable, "The service can't answer now", "It took too long. Try again in a moment."},
}

// fail answers with the page that err is. Of what is not the visitor's fault it shows
// only an identifier, under which the log has the rest, but not the address: that of a
// sign-in link is a secret.
func (v *visit) fail(err error) {
	if errors.Is(err, formsvc.ErrUnauthenticated) {
		v.who = nil
		err = v.showSignIn(http.StatusUnauthorized, "")
		if err == nil {
			return
		}
	}
	refused, ok := errors.AsType[*refusal](err)
	for _, k := range kinds {
		if !ok && errors.Is(err, k.err) {
			refused, ok = &refusal{k.status, k.title, k.detail}, true
		}
	}
	id := ""
	if !ok {
		id = newOnce()
		refused = &refusal{http.StatusInternalServerError, "Something went wrong", "It is not your fault."}
	}
	if refused.status >= http.StatusInternalServerError && v.ctx().Err() == nil {
		v.h.logger.LogAttrs(v.ctx(), slog.LevelError, "settings page failed", slog.String("method", v.r.Method),
			slog.String("route", v.r.Pattern), slog.Int("status", refused.status), slog.String("error", err.Error()), slog.String("requestId", id))
	}
	if err := v.show(refused.status, "refused", refused.title, refusedPage{Detail: refused.detail, ID: id}); err != nil {
		http.Error(v.w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
	}
}

type refusedPage struct{ Detail, ID string }

// invalid keeps what is wrong with a form, to be shown beside its fields, and reports
// whether that is what err says. place names the field of a member of the input.
func (v *visit) invalid(err error, place func(pointer string) string) bool {
	invalid, ok := errors.AsType[*formsvc.ValidationError](err)
	if !ok {
		return false
	}
	v.wrong = map[string]string{}
	for _, f := range invalid.Fields {
		name := place(f.Pointer)
		if v.wrong[name] == "" {
			v.wrong[name] = f.Detail
		}
	}
	return true
}

// firstSegment is the place of a member in a form whose fields are called like members.
func firstSegment(pointer string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
	return name
}
