package main

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"sync"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/console"
)

// A user is one of the product's.
type user struct {
	Name, Tenant string
	Role         formsvc.Role
}

// logins stands for the product's own login. Every password is "secret".
type logins struct {
	mu       sync.Mutex
	sessions map[string]user
	users    map[string]user
}

func newLogins() *logins {
	return &logins{sessions: make(map[string]user), users: map[string]user{
		"ada": {"ada", "rowing", formsvc.Admin}, "bob": {"bob", "rowing", formsvc.Reviewer}, "cleo": {"cleo", "rowing", formsvc.Viewer},
		"dan": {"dan", "chess", formsvc.Admin},
	}}
}

func (l *logins) login(w http.ResponseWriter, r *http.Request) {
	name, password, _ := r.BasicAuth()
	u, known := l.users[name]
	if !known || subtle.ConstantTimeCompare([]byte(password), []byte("secret")) == 0 {
		http.Error(w, "wrong name or password", http.StatusUnauthorized)
		return
	}
	session := rand.Text()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sessions[session] = u
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure wherever there is TLS
		Name: "session", Value: session, Path: "/", HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteLaxMode,
	})
}

// signedIn returns the user of a request, with the account of the user's tenant.
func (p *product) signedIn(r *http.Request) (u user, account formsvc.ID, err error) {
	cookie, err := r.Cookie("session")
	if err != nil {
		return u, "", formsvc.ErrUnauthenticated // the API then looks for a key
	}
	p.logins.mu.Lock()
	u, ok := p.logins.sessions[cookie.Value]
	p.logins.mu.Unlock()
	if !ok {
		return u, "", formsvc.ErrUnauthenticated
	}
	account, err = p.forms.Accounts.Ensure(r.Context(), u.Tenant)
	return u, account, err
}

func (p *product) principal(r *http.Request) (*formsvc.Principal, error) {
	u, account, err := p.signedIn(r)
	return &formsvc.Principal{AccountID: account, UserID: u.Name, KeyName: u.Name, Permissions: u.Role.Permissions()}, err
}

func (p *product) visitor(r *http.Request) (*console.Visitor, error) {
	u, account, err := p.signedIn(r)
	return &console.Visitor{AccountID: account, UserID: u.Name, Name: u.Name, Permissions: u.Role.Permissions()}, err
}
