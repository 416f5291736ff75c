// Package oidc signs people in by OpenID Connect.
package oidc

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/formsvc/toolkit/formsvc"
)

const (
	timeout = 10 * time.Second // for discovery, and for all requests of one sign-in
	maxBody = 1 << 20          // of a response, in bytes
)

// Options configures a [Provider].
type Options struct {
	Name, Title            string // see console.Provider; the title defaults to the issuer's host
	Issuer                 string // exactly as in the provider's ID tokens
	ClientID, ClientSecret string
	Scopes                 []string
	RoleClaim              string                  // see claims.at
	Roles                  map[string]formsvc.Role // by value of the claim; the highest applies
	Domains                map[string]formsvc.Role // of people who need no invitation, by the domain of their address
	Account                string                  // that they join, by name
	AccountClaim           string                  // has the name of everybody's account instead; "" for none
	Logger                 *slog.Logger            // gets the reasons of refusals, without personal data
}

// A Provider is an OpenID provider, as console.Provider. It connects when it is first used.
type Provider struct {
	Options

	client *http.Client
	found  atomic.Pointer[oidc.Provider]
}

// New returns a Provider. Its errors name the flags.
func New(o Options) (*Provider, error) {
	if !regexp.MustCompile(`^https://[^/?#@]+(/[^?#@]*)?$|^http://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?(/[^?#@]*)?$`).MatchString(o.Issuer) {
		return nil, fmt.Errorf("--oidc-issuer: the address of %q must begin with https://, or http:// on this machine, and have no user or query", o.Name)
	}
	if o.ClientID == "" {
		return nil, fmt.Errorf("--oidc-client-id: %q needs one", o.Name)
	}
	o.Title = cmp.Or(o.Title, strings.Split(o.Issuer, "/")[2])
	// Redirects could take the secret elsewhere.
	refuse := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Provider{Options: o, client: &http.Client{Timeout: timeout, Transport: bounded{}, CheckRedirect: refuse}}, nil
}

// bounded is a transport that truncates long bodies.
type bounded struct{}

// RoundTrip sends a request.
func (bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxBody), resp.Body}
	}
	return resp, err
}

// Name implements console.Provider.
func (p *Provider) Name() string { return p.Options.Name }

// Title implements console.Provider.
func (p *Provider) Title() string { return p.Options.Title }

// discover returns a context for requests to the provider, and its addresses. A call after a failed one tries again.
func (p *Provider) discover(ctx context.Context) (context.Context, *oidc.Provider, error) {
	ctx = oidc.ClientContext(ctx, p.client)
	found := p.found.Load()
	if found == nil {
		var err error
		if found, err = oidc.NewProvider(ctx, p.Issuer); err != nil {
			return ctx, nil, p.unavailable(err)
		}
		p.found.Store(found)
	}
	return ctx, found, nil
}

func (p *Provider) unavailable(err error) error {
	return fmt.Errorf("OpenID provider %q: %w: %.300s", p.Options.Name, formsvc.ErrUnavailable, err.Error())
}

func (p *Provider) config(found *oidc.Provider, callback string) *oauth2.Config {
	return &oauth2.Config{ClientID: p.ClientID, ClientSecret: p.ClientSecret, Endpoint: found.Endpoint(), RedirectURL: callback, Scopes: p.Scopes}
}

// Begin implements console.Provider. The state has only letters, digits, dots, "-" and "_".
func (p *Provider) Begin(ctx context.Context, callback string) (location, state string, err error) {
	_, found, err := p.discover(ctx)
	if err != nil {
		return "", "", err
	}
	value, nonce, verifier := rand.Text(), rand.Text(), oauth2.GenerateVerifier()
	location = p.config(found, callback).AuthCodeURL(value, oidc.Nonce(nonce), oauth2.S256ChallengeOption(verifier))
	return location, value + "." + nonce + "." + verifier, nil
}

// Finish implements console.Provider.
func (p *Provider) Finish(ctx context.Context, callback, state string, query url.Values) (id formsvc.Identity, err error) {
	parts := strings.Split(state, ".")
	if len(parts) != 3 || !same(query.Get("state"), parts[0]) {
		return id, formsvc.ErrUnauthenticated
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ctx, found, err := p.discover(ctx)
	if err != nil {
		return id, err
	}
	if code := query.Get("error"); code != "" {
		return id, p.refused(ctx, "it returned %.50q", code)
	}
	tokens, err := p.config(found, callback).Exchange(ctx, query.Get("code"), oauth2.VerifierOption(parts[2]))
	if e, ok := errors.AsType[*oauth2.RetrieveError](err); ok && e.Response.StatusCode < http.StatusInternalServerError {
		return id, p.refused(ctx, "its token endpoint replied with status %d and %.50q", e.Response.StatusCode, e.ErrorCode)
	}
	if err != nil {
		return id, p.unavailable(err)
	}
	raw, _ := tokens.Extra("id_token").(string)
	token, err := found.VerifierContext(ctx, &oidc.Config{ClientID: p.ClientID}).Verify(ctx, raw)
	if err != nil {
		return id, p.refused(ctx, "ID token: %.300s", err)
	}
	var all claims
	err = token.Claims(&all)
	if azp, ok := all["azp"]; err != nil || token.Subject == "" || !same(token.Nonce, parts[1]) || ok && azp != p.ClientID {
		return id, p.refused(ctx, "ID token: other nonce or client, or no subject")
	}
	if all["email"] == nil && found.UserInfoEndpoint() != "" {
		info, err := found.UserInfo(ctx, oauth2.StaticTokenSource(tokens))
		var more claims
		if err != nil || info.Subject != token.Subject || info.Claims(&more) != nil {
			return id, p.refused(ctx, "userinfo: other subject, or error: %.300v", err)
		}
		maps.Copy(more, all)
		all = more
	}
	return p.identity(ctx, token.Subject, all)
}

func same(got, want string) bool {
	return want != "" && subtle.ConstantTimeCompare([]byte(got), []byte(want)) == 1
}

// refused logs why the provider signed nobody in.
func (p *Provider) refused(ctx context.Context, format string, args ...any) error {
	p.Logger.LogAttrs(ctx, slog.LevelWarn, "sign-in refused", slog.String("provider", p.Options.Name), slog.String("error", fmt.Sprintf(format, args...)))
	return formsvc.ErrUnauthenticated
}

// identity returns who has these claims.
func (p *Provider) identity(ctx context.Context, subject string, all claims) (formsvc.Identity, error) {
	id := formsvc.Identity{Issuer: p.Issuer, Subject: subject, Provider: p.Options.Name}
	for _, name := range []string{"email", "preferred_username", "name"} {
		if s, _ := all[name].(string); s != "" {
			id.Name = s
		}
	}
	if all.verified() {
		id.Email, _ = all["email"].(string)
		for domain, role := range p.Domains {
			if _, at, _ := strings.Cut(formsvc.FoldEmail(id.Email), "@"); at == formsvc.FoldEmail(domain) {
				id.Join, id.Account = role, p.Account
			}
		}
	}
	for _, value := range all.values(p.RoleClaim) {
		if role := p.Roles[value]; len(role.Permissions()) > len(id.Role.Permissions()) {
			id.Role = role
		}
	}
	if p.AccountClaim != "" {
		names := all.values(p.AccountClaim)
		if len(names) != 1 || names[0] == "" {
			return formsvc.Identity{}, p.refused(ctx, "the claim of accounts has %d values, not one", len(names))
		}
		id.Account = names[0]
	}
	return id, nil
}

// End implements console.Provider.
func (p *Provider) End(ctx context.Context, after string) string {
	var more struct {
		Address string `json:"end_session_endpoint"`
	}
	_, found, err := p.discover(ctx)
	if err != nil || found.Claims(&more) != nil {
		return ""
	}
	u, err := url.Parse(more.Address)
	if err != nil || u.Host == "" {
		return ""
	}
	q := u.Query()
	q.Set("client_id", p.ClientID)
	q.Set("post_logout_redirect_uri", after)
	u.RawQuery = q.Encode()
	return u.String()
}

// claims are what a provider says about a person.
type claims map[string]any

// at returns the claim at a path: a name, or names of nested claims with dots between, such as realm_access.roles. Names may have dots
// themselves. It returns nil if there is none.
func (c claims) at(path string) any {
	value := c[path]
	for i := 0; i < len(path) && value == nil; i++ {
		if nested, ok := c[path[:i]].(map[string]any); ok && path[i] == '.' {
			value = claims(nested).at(path[i+1:])
		}
	}
	return value
}

// values returns the texts of a claim that is one or a list of them. A text with commas or blanks is one.
func (c claims) values(path string) (list []string) {
	value := c.at(path)
	several, ok := value.([]any)
	if !ok {
		several = []any{value}
	}
	for _, v := range several {
		if s, ok := v.(string); ok {
			list = append(list, s)
		}
	}
	return list
}

// verified reports whether the provider says that the address belongs to the person. Microsoft Entra has a claim of its own for that.
func (c claims) verified() bool {
	if value, ok := c["email_verified"]; ok {
		return value == true || value == "true"
	}
	edov := c["xms_edov"]
	return edov == true || edov == "true" || edov == "1" || edov == 1.0
}
