package main

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"sync"
)

// logins stands for the host application's login: sessions, signed tokens, or a proxy
// that authenticates.
type logins struct {
	mu       sync.Mutex
	sessions map[string]user
	users    map[string]user
}

func newLogins() *logins {
	return &logins{sessions: make(map[string]user), users: map[string]user{
		"ada":  {Name: "ada", Tenant: "42", Role: "admin"},
		"bob":  {Name: "bob", Tenant: "42", Role: "reviewer"},
		"carl": {Name: "carl", Tenant: "43", Role: "admin"},
	}}
}

// login starts a session. Every password is "secret".
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

// user returns the signed-in user of a request.
func (l *logins) user(r *http.Request) (user, bool) {
	cookie, err := r.Cookie("session")
	if err != nil {
		return user{}, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	u, ok := l.sessions[cookie.Value]
	return u, ok
}
