package oidc

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/formsvc/toolkit/formsvc"
)

const (
	callback = "https://forms.example.com/console/sign-in/with/fake/callback"
	secret   = "a-secret-of-the-client"
)

// A fake is a provider that says what a test wants. It knows one client, PKCE and codes that are valid once.
type fake struct {
	*httptest.Server

	key       *ecdsa.PrivateKey
	asked     url.Values     // the last request of Begin
	says      map[string]any // in the ID token, beside what must be there
	info      map[string]any // of userinfo; nil for no such address
	plain     bool           // the ID token has no signature
	status    int            // of the token endpoint, if it isn't 200
	discovery func(map[string]any)
	used      bool
}

func newFake(t *testing.T) *fake {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{key: key}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		doc := map[string]any{
			"issuer": f.URL, "authorization_endpoint": f.URL + "/auth", "token_endpoint": f.URL + "/token", "jwks_uri": f.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"ES256", "none"}, "end_session_endpoint": f.URL + "/end?policy=x",
		}
		if f.info != nil {
			doc["userinfo_endpoint"] = f.URL + "/userinfo"
		}
		if f.discovery != nil {
			f.discovery(doc)
		}
		reply(w, doc)
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: f.key.Public(), KeyID: "1", Algorithm: "ES256", Use: "sig"}}})
	})
	mux.HandleFunc("GET /userinfo", func(w http.ResponseWriter, _ *http.Request) { reply(w, f.info) })
	mux.HandleFunc("POST /token", f.token)
	f.Server = httptest.NewServer(mux)
	t.Cleanup(f.Close)
	return f
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func (f *fake) token(w http.ResponseWriter, r *http.Request) {
	challenge := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	_, password, _ := r.BasicAuth()
	if f.status != 0 {
		w.Header().Set("Location", "/token")
		http.Error(w, password, f.status)
		return
	}
	if password != secret || r.FormValue("code") != "code" || f.used || r.FormValue("redirect_uri") != callback ||
		f.asked.Get("code_challenge_method") != "S256" || f.asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(challenge[:]) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		reply(w, map[string]string{"error": "invalid_grant", "error_description": secret})
		return
	}
	f.used = true
	all := map[string]any{
		"iss": f.URL, "aud": "us", "sub": "17", "nonce": f.asked.Get("nonce"), "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(),
	}
	maps.Copy(all, f.says)
	reply(w, map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": f.sign(all)})
}

func (f *fake) sign(all map[string]any) string {
	text, _ := json.Marshal(all)
	if f.plain {
		return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + base64.RawURLEncoding.EncodeToString(text) + "."
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: f.key, KeyID: "1"}}, nil)
	if err != nil {
		panic(err)
	}
	signed, _ := signer.Sign(text)
	out, _ := signed.CompactSerialize()
	return out
}

// provider returns a provider that knows groups, a nested claim and a domain.
func (f *fake) provider(t *testing.T, log *bytes.Buffer) *Provider {
	t.Helper()
	p, err := New(Options{
		Name: "fake", Title: "Fake", Issuer: f.URL, ClientID: "us", ClientSecret: secret, Scopes: []string{"openid", "email"}, RoleClaim: "realm_access.roles",
		Roles:   map[string]formsvc.Role{"bosses": formsvc.Admin, "staff": formsvc.Editor, "staff,bosses": formsvc.Viewer},
		Domains: map[string]formsvc.Role{"Example.COM": formsvc.Viewer}, Account: "acme", Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// signIn goes to the provider and back, with a query that edit may change.
func (f *fake) signIn(t *testing.T, p *Provider, edit func(url.Values)) (formsvc.Identity, error) {
	t.Helper()
	location, state, err := p.Begin(t.Context(), callback)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(location)
	if err != nil || !strings.HasPrefix(location, f.URL+"/auth?") {
		t.Fatalf("sent to %q: %v", location, err)
	}
	f.asked = u.Query()
	query := url.Values{"code": {"code"}, "state": {f.asked.Get("state")}}
	if edit != nil {
		edit(query)
	}
	return p.Finish(t.Context(), callback, state, query)
}

// A person is who the provider says, and has an address only if the provider has verified it.
func TestIdentity(t *testing.T) {
	t.Parallel()
	type says = map[string]any
	verified := says{"email": "Ada@Example.com", "email_verified": true}
	with := func(more says) says { all := maps.Clone(verified); maps.Copy(all, more); return all }
	joining := formsvc.Identity{Email: "Ada@Example.com", Name: "Ada@Example.com", Account: "acme", Join: formsvc.Viewer}
	role := func(r formsvc.Role) formsvc.Identity { id := joining; id.Role = r; return id }
	for what, c := range map[string]struct {
		says, info says
		want       formsvc.Identity
	}{
		"verified":            {verified, nil, joining},
		"verified as text":    {with(says{"email_verified": "true"}), nil, joining},
		"not verified":        {with(says{"email_verified": false}), nil, formsvc.Identity{Name: "Ada@Example.com"}},
		"not, as text":        {with(says{"email_verified": "false"}), nil, formsvc.Identity{Name: "Ada@Example.com"}},
		"verified is null":    {with(says{"email_verified": nil, "xms_edov": true}), nil, formsvc.Identity{Name: "Ada@Example.com"}},
		"verified is 1":       {with(says{"email_verified": 1}), nil, formsvc.Identity{Name: "Ada@Example.com"}},
		"verified is missing": {says{"email": "Ada@Example.com"}, nil, formsvc.Identity{Name: "Ada@Example.com"}},
		"by Entra":            {says{"email": "Ada@Example.com", "xms_edov": "1"}, nil, joining},
		"not by Entra":        {says{"email": "Ada@Example.com", "xms_edov": "0"}, nil, formsvc.Identity{Name: "Ada@Example.com"}},
		"another domain":      {says{"email": "a@sub.example.com", "email_verified": true}, nil, formsvc.Identity{Email: "a@sub.example.com", Name: "a@sub.example.com"}},
		"domain as prefix":    {says{"email": "a@example.com.evil.test", "email_verified": true}, nil, formsvc.Identity{Email: "a@example.com.evil.test", Name: "a@example.com.evil.test"}},
		"domain in quotes":    {says{"email": `"a@example.com"@evil.test`, "email_verified": true}, nil, formsvc.Identity{Email: `"a@example.com"@evil.test`, Name: `"a@example.com"@evil.test`}},
		"names":               {says{"name": "Ada", "preferred_username": "ada"}, nil, formsvc.Identity{Name: "Ada"}},
		"a user name":         {with(says{"name": "", "preferred_username": "ada"}), nil, formsvc.Identity{Email: "Ada@Example.com", Name: "ada", Account: "acme", Join: formsvc.Viewer}},
		"a role":              {with(says{"realm_access": says{"roles": "staff"}}), nil, role(formsvc.Editor)},
		"the highest role":    {with(says{"realm_access": says{"roles": []string{"staff", "bosses", "x"}}}), nil, role(formsvc.Admin)},
		"the literal claim":   {with(says{"realm_access.roles": []string{"staff"}, "realm_access": says{"roles": "bosses"}}), nil, role(formsvc.Editor)},
		"a list as text":      {with(says{"realm_access": says{"roles": "staff,bosses"}}), nil, role(formsvc.Viewer)},
		"another case":        {with(says{"realm_access": says{"roles": []any{"Bosses", " bosses", 1, nil}}}), nil, joining},
		"a claim elsewhere":   {with(says{"roles": "bosses", "realm_access": []string{"bosses"}}), nil, joining},
		"userinfo":            {says{"name": "Ada"}, says{"sub": "17", "name": "Eve", "email": "ada@example.com", "email_verified": true}, formsvc.Identity{Email: "ada@example.com", Name: "Ada", Account: "acme", Join: formsvc.Viewer}},
		"userinfo not needed": {verified, says{"sub": "18", "realm_access": says{"roles": "bosses"}}, joining},
		"of another client":   {with(says{"aud": []string{"us", "them"}, "azp": "us"}), nil, joining},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			f := newFake(t)
			f.says, f.info = c.says, c.info
			id, err := f.signIn(t, f.provider(t, &log), nil)
			c.want.Issuer, c.want.Subject, c.want.Provider = f.URL, "17", "fake"
			if err != nil || id != c.want {
				t.Errorf("%+v, want %+v (%v)\n%s", id, c.want, err, &log)
			}
		})
	}
}

// Nobody is signed in by a reply that doesn't fit. The log says why, without a secret.
func TestRefusals(t *testing.T) {
	t.Parallel()
	type says = map[string]any
	past := time.Now().Add(-time.Hour).Unix()
	for what, c := range map[string]struct {
		set   func(*fake)
		query func(url.Values)
		log   string // "": nothing is logged
	}{
		"another audience":   {set: func(f *fake) { f.says = says{"aud": "them"} }, log: "audience"},
		"another client":     {set: func(f *fake) { f.says = says{"aud": []string{"us", "them"}, "azp": "them"} }, log: "other nonce or client"},
		"another issuer":     {set: func(f *fake) { f.says = says{"iss": "https://evil.test"} }, log: "different provider"},
		"another nonce":      {set: func(f *fake) { f.says = says{"nonce": "x"} }, log: "other nonce"},
		"no nonce":           {set: func(f *fake) { f.says = says{"nonce": ""} }, log: "other nonce"},
		"no subject":         {set: func(f *fake) { f.says = says{"sub": ""} }, log: "no subject"},
		"expired":            {set: func(f *fake) { f.says = says{"exp": past} }, log: "expired"},
		"no signature":       {set: func(f *fake) { f.plain = true }, log: "malformed jwt"},
		"another subject":    {set: func(f *fake) { f.info = says{"sub": "18", "email": "a@example.com", "email_verified": true} }, log: "other subject"},
		"used code":          {set: func(f *fake) { f.used = true }, log: "invalid_grant"},
		"another code":       {query: func(q url.Values) { q.Set("code", "x") }, log: "invalid_grant"},
		"a redirect":         {set: func(f *fake) { f.status = http.StatusTemporaryRedirect }, log: "status 307"},
		"denied":             {query: func(q url.Values) { q.Set("error", "access_denied") }, log: "access_denied"},
		"another state":      {query: func(q url.Values) { q.Set("state", "x") }},
		"no state":           {query: func(q url.Values) { q.Del("state") }},
		"denied, no state":   {query: func(q url.Values) { q.Del("state"); q.Set("error", "access_denied") }},
		"two states, not it": {query: func(q url.Values) { q["state"] = append([]string{"x"}, q["state"]...) }},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			f := newFake(t)
			if c.set != nil {
				c.set(f)
			}
			id, err := f.signIn(t, f.provider(t, &log), c.query)
			if id != (formsvc.Identity{}) || !errors.Is(err, formsvc.ErrUnauthenticated) || (c.log == "") != (log.Len() == 0) || !strings.Contains(log.String(), c.log) {
				t.Errorf("%+v, %v; logged %q", id, err, &log)
			}
			if strings.Contains(log.String()+err.Error(), secret) {
				t.Errorf("the secret is in %q or %q", err, &log)
			}
		})
	}
}

// The state of one attempt isn't valid for another one, and a state that is none never.
func TestStates(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	p := f.provider(t, new(bytes.Buffer))
	_, other, err := p.Begin(t.Context(), callback)
	if err != nil {
		t.Fatal(err)
	}
	location, state, _ := p.Begin(t.Context(), callback)
	u, _ := url.Parse(location)
	f.asked = u.Query()
	query := url.Values{"code": {"code"}, "state": {f.asked.Get("state")}}
	value, _, _ := strings.Cut(state, ".")
	mixed := value + other[strings.Index(other, "."):] // with the nonce and verifier of the other one
	for _, s := range []string{other, "", "..", ".", value, mixed, state + ".x"} {
		if id, err := p.Finish(t.Context(), callback, s, query); !errors.Is(err, formsvc.ErrUnauthenticated) {
			t.Errorf("with %q: %+v, %v", s, id, err)
		}
	}
	if _, err := p.Finish(t.Context(), callback, "..", url.Values{"state": {""}}); !errors.Is(err, formsvc.ErrUnauthenticated) {
		t.Errorf("an empty state: %v", err)
	}
	if _, err := p.Finish(t.Context(), callback, state, query); err != nil {
		t.Errorf("its own state: %v", err)
	}
}

// A provider may be down when the server starts, and is tried again. It gets our address at the end of a session.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	p := f.provider(t, new(bytes.Buffer))
	f.discovery = func(doc map[string]any) { doc["padding"] = strings.Repeat("x", maxBody) }
	_, _, err := p.Begin(t.Context(), callback)
	if !errors.Is(err, formsvc.ErrUnavailable) || len(err.Error()) > 500 || !strings.Contains(err.Error(), `"fake"`) {
		t.Errorf("a discovery document of more than a MiB: %.600v", err)
	}
	if to := p.End(t.Context(), "https://forms.example.com/console/"); to != "" {
		t.Errorf("it ends at %q", to)
	}
	f.discovery = nil
	if to := p.End(t.Context(), "https://forms.example.com/console/"); to != f.URL+"/end?client_id=us&policy=x&post_logout_redirect_uri=https%3A%2F%2Fforms.example.com%2Fconsole%2F" {
		t.Errorf("it ends at %q", to)
	}
	f.status = http.StatusServiceUnavailable
	if _, err := f.signIn(t, p, nil); !errors.Is(err, formsvc.ErrUnavailable) || strings.Contains(err.Error(), secret) {
		t.Errorf("a token endpoint that is down: %v", err)
	}
	f.Close()
	if _, err := f.signIn(t, p, nil); !errors.Is(err, formsvc.ErrUnavailable) { // Begin needs no request any more
		t.Errorf("a provider that is down: %v", err)
	}
	f = newFake(t)
	f.discovery = func(doc map[string]any) { delete(doc, "end_session_endpoint") }
	if to := f.provider(t, new(bytes.Buffer)).End(t.Context(), callback); to != "" {
		t.Errorf("without an address it ends at %q", to)
	}
}

// The claim of accounts decides for everybody, and must have one value.
func TestAccountClaim(t *testing.T) {
	t.Parallel()
	for account, want := range map[any]string{"north": "north", "": "", 1: ""} {
		f := newFake(t)
		f.says = map[string]any{"email": "a@example.com", "email_verified": true, "tenant": account}
		p := f.provider(t, new(bytes.Buffer))
		p.AccountClaim = "tenant"
		if id, err := f.signIn(t, p, nil); id.Account != want || (err == nil) != (want != "") {
			t.Errorf("%v: %+v, %v", account, id, err)
		}
	}
}
