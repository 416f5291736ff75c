package console

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/limits"
)

// A signInPage is for visitors with a link, and for those who need one.
type signInPage struct {
	Token     string // of the link
	Code      string // that redeems it elsewhere
	Mails     bool   // whether the page offers to mail links
	Mailed    bool
	Own       bool // whether sessions are our own
	Email     string
	Account   string
	Providers []Provider
	Wrong     string
}

func (v *visit) showSignIn(status int, wrong string) error {
	p := signInPage{
		Token: v.r.PathValue("token"), Mails: v.h.opts.SendLink != nil, Mailed: v.query("mailed") != "", Own: v.h.opts.Authenticate == nil,
		Email: v.field("email"), Account: cmp.Or(v.field("account"), v.query("account")), Providers: v.h.opts.Providers, Wrong: wrong,
	}
	if p.Token != "" {
		code := formsvc.SignInCode(p.Token)
		p.Code = code[:4] + "-" + code[4:]
	}
	return v.show(status, "sign-in", "Sign in", p)
}

// signInPage shows the button that redeems a link. Opening the link doesn't redeem it, since mail scanners open links
// too.
func (v *visit) signInPage() error { return v.showSignIn(http.StatusOK, "") }

// signIn redeems a link, by its token, or by its code in the browser that asked for it.
func (v *visit) signIn() error {
	token, wrong := v.field("link"), "This link has been used, or is older than 15 minutes (an invitation: 7 days). Ask for a new one."
	if code := v.field("code"); code != "" {
		asked, _ := v.r.Cookie(v.named("formsvc_asked"))
		if asked == nil {
			asked = &http.Cookie{}
		}
		token, wrong = asked.Value+":"+strings.ToUpper(strings.NewReplacer("-", "", " ", "").Replace(code)), "This code doesn't fit. Enter it in the browser in which you asked for the link."
	}
	var session formsvc.Session
	var value string
	err := v.look(func() (err error) {
		session, value, err = v.h.svc.Sessions.SignIn(v.ctx(), token, v.r.UserAgent())
		return err
	})
	if errors.Is(err, formsvc.ErrUnauthenticated) {
		return v.showSignIn(http.StatusUnauthorized, wrong)
	}
	return v.signedIn(&session, value, err)
}

// signInByPassword checks an address and a password. The reply is the same whichever is wrong.
func (v *visit) signInByPassword() error {
	network := limits.Network(v.h.opts.ClientAddress(v.r))
	door := v.h.passwords
	if _, ok := v.h.seen.Get(network, v.svc.Now()); ok {
		door = v.h.trusted
	}
	slot, err := door.Acquire(v.ctx(), network)
	if err != nil {
		return busy(err)
	}
	slot.Rest(passwordRest)
	session, value, err := v.h.svc.Sessions.SignInByPassword(v.ctx(), formsvc.PasswordLogin{
		Email: v.field("email"), Password: v.r.PostForm.Get("password"), Account: v.field("account"), Network: network, Device: v.r.UserAgent(),
	})
	slot.Release()
	if errors.Is(err, formsvc.ErrUnauthenticated) {
		if err = v.limited(v.h.failures, network, nil); err == nil {
			return v.showSignIn(http.StatusUnauthorized, "The address or the password is wrong, or there were too many tries. Try again, or sign in by a link.")
		}
	}
	if err != nil {
		return err
	}
	v.h.seen.Put(network, struct{}{}, v.svc.Now().Add(networkSeen))
	return v.signedIn(&session, value, nil)
}

// signedIn gives the browser a new session, and ends its previous one, or passes on an error. If the previous one can't be ended, the visitor
// is signed in all the same, since a link is used up. Somebody who has just joined chooses a password.
func (v *visit) signedIn(session *formsvc.Session, value string, err error) error {
	if err != nil {
		return err
	}
	if old, err := v.r.Cookie(v.cookieName()); err == nil {
		if err := v.h.svc.Sessions.SignOut(v.ctx(), old.Value); err != nil {
			v.h.opts.Logger.LogAttrs(v.ctx(), slog.LevelError, "a previous session was not ended", slog.String("error", err.Error()))
		}
	}
	v.giveSession(session, value)
	if session.MemberID != "" && session.Way == formsvc.SignedInByLink {
		m, err := v.h.svc.Members.Get(v.ctx(), formsvc.MemberKey{AccountID: session.AccountID, ID: session.MemberID})
		if err == nil && m.Password == "" && m.Subject == "" {
			return v.done(nil, "/you", "welcome")
		}
	}
	return v.redirect(nil, "/", nil)
}

// giveSession sets the cookie of a session. That of a member is extended with each use, so it lasts as long as the session may.
func (v *visit) giveSession(session *formsvc.Session, value string) {
	last := session.ExpiresAt.Sub(v.h.svc.Now())
	if session.MemberID != "" {
		last = formsvc.SessionMaxTTL
	}
	v.setCookie(v.cookieName(), value, "/", last)
}

// provider returns the provider with a name, or nil.
func (h *Handler) provider(name string) Provider {
	for _, p := range h.opts.Providers {
		if p.Name() == name {
			return p
		}
	}
	return nil
}

// withProvider returns a page about the provider in the path.
func withProvider(serve func(*visit, Provider) error) func(*visit) error {
	return func(v *visit) error {
		if p := v.h.provider(v.r.PathValue("provider")); p != nil {
			return serve(v, p)
		}
		return formsvc.ErrNotFound
	}
}

// providerTime is how long a visitor may take to sign in at a provider.
const providerTime = 15 * time.Minute

// callback is where a provider sends the browser back to.
func (v *visit) callback(p Provider) string {
	return v.address("/sign-in/with/" + p.Name() + "/callback")
}

// beginProvider sends the browser to a provider.
func (v *visit) beginProvider(p Provider) error {
	location, state, err := p.Begin(v.ctx(), v.callback(p))
	if err != nil {
		return err
	}
	v.setCookie(v.named("formsvc_state"), base64.RawURLEncoding.EncodeToString([]byte(state)), "/", providerTime)
	v.w.Header().Set("Location", location)
	v.w.WriteHeader(http.StatusSeeOther)
	return nil
}

// finishProvider signs the visitor in as whom the provider names. A member who is signed in already gets this identity, if it is nobody's.
func (v *visit) finishProvider(p Provider) error {
	cookie, err := v.r.Cookie(v.named("formsvc_state"))
	if err != nil {
		return v.showSignIn(http.StatusUnauthorized, "This took too long, or began in another browser. Try again.")
	}
	v.setCookie(cookie.Name, "", "/", -time.Second)
	state, _ := base64.RawURLEncoding.DecodeString(cookie.Value) // one that is none doesn't fit
	var session formsvc.Session
	var value string
	var id formsvc.Identity
	err = v.look(func() (err error) {
		if id, err = p.Finish(v.ctx(), v.callback(p), string(state), v.r.URL.Query()); err == nil {
			id.Provider = p.Name()
			session, value, err = v.h.svc.Sessions.SignInAs(v.ctx(), id, v.r.UserAgent())
		}
		return err
	})
	if errors.Is(err, formsvc.ErrUnauthenticated) {
		if id.Subject != "" && v.connect(id) {
			return v.done(nil, "/you", "connected")
		}
		wrong := p.Title() + " didn't sign you in. Try again."
		if id.Subject != "" {
			wrong = "Nobody has invited you here under the address that " + p.Title() + " knows. Ask an administrator, or sign in in another way and connect " + p.Title() + " on your own page."
		}
		return v.showSignIn(http.StatusUnauthorized, wrong)
	}
	return v.signedIn(&session, value, err)
}

// connect gives the signed-in member an identity that nobody has, and reports whether it could.
func (v *visit) connect(id formsvc.Identity) bool {
	who, err := v.authenticate()
	if err != nil || who.member == nil {
		return false
	}
	_, err = v.h.svc.AsMember(who.member).Members.Connect(v.ctx(), who.member.Key(), id)
	return err == nil
}

// endProvider leads to where the session at the provider ends. It isn't a redirect, which the policy of the page with the form forbids.
func (v *visit) endProvider(p Provider) error {
	after := v.address("/sign-in")
	v.w.Header().Set("Refresh", "0; url="+cmp.Or(p.End(v.ctx(), after), after))
	return v.showSignIn(http.StatusOK, "")
}

// Limits of mailed links.
const (
	mailPause     = time.Minute // between two mails to one account
	mailBurst     = 20          // mails in all, then one every 3 seconds
	mailTime      = time.Minute // to create a link and hand over its mail
	mailersAtMost = 4           // requests whose account is looked for, or whose mail is sent, at once
	askBurst      = 10          // requests from one address, then one every askEvery
	askEvery      = 6 * time.Second
)

// mailLink mails a link to the members with an address, and to accounts whose contact it is and that have no such member. Its reply is the same
// whether or not there are any, and comes as soon: they are looked for afterwards.
func (v *visit) mailLink() error {
	h, email := v.h, v.field("email")
	if err := v.limited(h.asked, limits.Network(h.opts.ClientAddress(v.r)), nil); err != nil {
		return err
	}
	select {
	case h.mailers <- struct{}{}:
	default:
		return errBusy
	}
	browser := rand.Text()
	v.setCookie(v.named("formsvc_asked"), browser, "/", formsvc.LinkTTL)
	v.mail("no sign-in link was sent", func(ctx context.Context) error {
		defer func() { <-h.mailers }()
		return h.mailAll(ctx, email, browser)
	})
	return v.redirect(nil, "/sign-in", url.Values{"mailed": {"1"}})
}

// mail runs a function that mails, without waiting for it, and logs its error.
func (v *visit) mail(failure string, send func(ctx context.Context) error) {
	h := v.h
	ctx, cancel := context.WithTimeout(context.WithoutCancel(v.ctx()), mailTime)
	h.mailing.Go(func() {
		defer cancel()
		if err := send(ctx); err != nil {
			h.opts.Logger.LogAttrs(ctx, slog.LevelError, failure, slog.String("error", err.Error())) //nolint:sloglint // callers pass constants
		}
	})
}

// mailAll mails links to an address, to one after the other.
func (h *Handler) mailAll(ctx context.Context, email, browser string) error {
	if email == "" {
		return nil
	}
	svc := h.svc.As(formsvc.Actor{Name: "mail to the contact"})
	send := func(account, of formsvc.ID, to string, link func() (string, time.Time, error)) {
		if _, ok := h.mailed.Take(string(of), h.svc.Now()); !ok || !h.mails.AllowN(h.svc.Now(), 1) {
			return
		}
		token, until, err := link()
		if err == nil {
			err = h.opts.SendLink(ctx, to, h.baseURL.String()+"/sign-in/"+token, until)
		}
		if err != nil {
			h.opts.Logger.LogAttrs(ctx, slog.LevelError, "a sign-in link was not sent", slog.String("account", string(account)), slog.String("error", err.Error()))
		}
	}
	members, err := svc.Members.OfPerson(ctx, email)
	if err != nil {
		return err
	}
	with := map[formsvc.ID]bool{}
	for _, m := range members {
		with[m.AccountID] = true
		send(m.AccountID, m.ID, m.Email, func() (string, time.Time, error) { return svc.Sessions.NewMemberLink(ctx, &m, browser) })
	}
	accounts, err := svc.Accounts.List(ctx)
	for _, a := range accounts {
		if formsvc.FoldEmail(a.Contact) == formsvc.FoldEmail(email) && !with[a.ID] {
			send(a.ID, a.ID, a.Contact, func() (string, time.Time, error) { return svc.Sessions.NewLink(ctx, a.ID) })
		}
	}
	return err
}
