package main

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"sync"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/console"
)

// A user is a signed-in user of the host application.
type user struct {
	Name, Tenant string
	Role         formsvc.Role
}

// members stands for the host application's login: sessions, signed tokens, or a proxy that authenticates.
type members struct {
	forms    *formsvc.Service
	mu       sync.Mutex
	sessions map[string]user
	users    map[string]user
}

func newMembers(forms *formsvc.Service) *members {
	return &members{forms: forms, sessions: make(map[string]user), users: map[string]user{
		"ada":  {Name: "ada", Tenant: "42", Role: "admin"},
		"bob":  {Name: "bob", Tenant: "42", Role: "reviewer"},
		"carl": {Name: "carl", Tenant: "43", Role: "admin"},
	}}
}

// login starts a session. Every password is "secret".
func (m *members) login(w http.ResponseWriter, r *http.Request) {
	name, password, _ := r.BasicAuth()
	u, known := m.users[name]
	if !known || subtle.ConstantTimeCompare([]byte(password), []byte("secret")) == 0 {
		http.Error(w, "wrong name or password", http.StatusUnauthorized)
		return
	}
	session := rand.Text()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sessions[session] = u
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure wherever there is TLS
		Name: "session", Value: session, Path: "/", HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteLaxMode,
	})
}

// signedIn returns the user of a request, and the account of the user's tenant, which the first request creates.
func (m *members) signedIn(r *http.Request) (u user, account formsvc.ID, err error) {
	if cookie, err := r.Cookie("session"); err == nil {
		m.mu.Lock()
		u = m.sessions[cookie.Value]
		m.mu.Unlock()
	}
	if u.Name == "" {
		return u, "", formsvc.ErrUnauthenticated
	}
	account, err = m.forms.Accounts.Ensure(r.Context(), "tenant "+u.Tenant)
	return u, account, err
}

// principal authenticates requests to the API. Without a session of the host application, the API looks for an API key.
func (m *members) principal(r *http.Request) (*formsvc.Principal, error) {
	u, account, err := m.signedIn(r)
	return &formsvc.Principal{AccountID: account, UserID: u.Name, KeyName: u.Name, Permissions: u.Role.Permissions()}, err
}

// visitor authenticates visitors of the console, who may do there what their role permits.
func (m *members) visitor(r *http.Request) (*console.Visitor, error) {
	u, account, err := m.signedIn(r)
	return &console.Visitor{AccountID: account, UserID: u.Name, Name: u.Name, Permissions: u.Role.Permissions()}, err
}
