package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/mail"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/formsvc/toolkit/cmd/formsvc/internal/oidc"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/console"
)

// signingIn are the flags about how people sign in to the console.
type signingIn struct {
	OIDCIssuer          []string       `name:"oidc-issuer" placeholder:"URL"`
	OIDCClientID        []string       `name:"oidc-client-id" placeholder:"ID"`
	OIDCClientSecret    []string       `name:"oidc-client-secret" placeholder:"SECRET"`
	OIDCTitle           []string       `name:"oidc-title" placeholder:"TEXT"`
	OIDCScope           []string       `name:"oidc-scope" placeholder:"SCOPE"`
	OIDCRoleClaim       []string       `name:"oidc-role-claim" placeholder:"CLAIM"`
	OIDCRole            []string       `name:"oidc-role" placeholder:"VALUE=ROLE"`
	OIDCDomain          []string       `name:"oidc-domain" placeholder:"DOMAIN=ROLE"`
	OIDCAccount         []string       `name:"oidc-account" placeholder:"NAME"`
	OIDCAccountClaim    []string       `name:"oidc-account-claim" placeholder:"CLAIM"`
	AuthProxyHeader     string         `placeholder:"NAME"`
	AuthProxyNetworks   []netip.Prefix `placeholder:"CIDR"`
	AuthProxyNameHeader string         `placeholder:"NAME"`
	AuthProxyRole       formsvc.Role   `placeholder:"ROLE"`
	AuthProxyAccount    string         `default:"default" placeholder:"NAME"`
}

// A providerFlags reads flags whose values are for several providers, and keeps the first error. Errors don't show values, which may be secret.
type providerFlags struct {
	names []string
	err   error
}

func (p *providerFlags) fail(format string, args ...any) {
	p.err = cmp.Or(p.err, error(usageError{fmt.Errorf(format, args...)}))
}

// of returns a provider's values. A value may begin with the name of its provider and "="; it is then also for the values after it. Values
// before the first name are for the provider "oidc".
func (p *providerFlags) of(provider, flag string, values []string) (own []string) {
	name := "oidc"
	for _, v := range values {
		if first, rest, _ := strings.Cut(v, "="); slices.Contains(p.names, first) {
			name, v = first, rest
		}
		if !slices.Contains(p.names, name) {
			p.fail("--%s: no --oidc-issuer is named %q; write NAME=VALUE with the name of one: %s", flag, name, strings.Join(p.names, ", "))
		}
		if name == provider {
			own = append(own, v)
		}
	}
	return own
}

// one returns a provider's only value, which may have commas, or another one if it has none.
func (p *providerFlags) one(provider, flag string, values []string, other string) string {
	return cmp.Or(strings.Join(p.of(provider, flag, values), ","), other)
}

// roles returns the roles after the last "=" of a provider's values.
func (p *providerFlags) roles(provider, flag string, values []string) map[string]formsvc.Role {
	roles := map[string]formsvc.Role{}
	for _, v := range p.of(provider, flag, values) {
		i := strings.LastIndex(v, "=")
		if role := formsvc.Role(v[i+1:]); i > 0 && len(role.Permissions()) > 0 {
			roles[v[:i]] = role
		} else {
			p.fail("--%s: must be VALUE=ROLE with a role out of admin, editor, reviewer and viewer", flag)
		}
	}
	return roles
}

// providers returns the OpenID providers of the flags.
func (c *signingIn) providers(logger *slog.Logger) (list []console.Provider, err error) {
	var flags providerFlags
	var issuers []string
	for _, v := range c.OIDCIssuer {
		m := regexp.MustCompile(`^(?:([a-z0-9-]+)=)?(.*)$`).FindStringSubmatch(v)
		name := cmp.Or(m[1], "oidc")
		if slices.Contains(flags.names, name) {
			flags.fail("--oidc-issuer: two are named %q; write NAME=URL", name)
		}
		flags.names, issuers = append(flags.names, name), append(issuers, m[2])
	}
	others := slices.Concat(c.OIDCClientID, c.OIDCClientSecret, c.OIDCTitle, c.OIDCScope, c.OIDCRoleClaim, c.OIDCRole, c.OIDCDomain, c.OIDCAccount, c.OIDCAccountClaim)
	if len(issuers) == 0 && len(others) > 0 {
		flags.fail("--oidc-…: needs --oidc-issuer")
	}
	for i, name := range flags.names {
		o := oidc.Options{
			Name: name, Issuer: issuers[i], Logger: logger,
			Title:        flags.one(name, "oidc-title", c.OIDCTitle, ""),
			ClientID:     flags.one(name, "oidc-client-id", c.OIDCClientID, ""),
			ClientSecret: flags.one(name, "oidc-client-secret", c.OIDCClientSecret, ""),
			Scopes:       strings.Split(flags.one(name, "oidc-scope", c.OIDCScope, "openid,email,profile"), ","),
			RoleClaim:    flags.one(name, "oidc-role-claim", c.OIDCRoleClaim, "groups"),
			Roles:        flags.roles(name, "oidc-role", c.OIDCRole),
			Domains:      flags.roles(name, "oidc-domain", c.OIDCDomain),
			Account:      flags.one(name, "oidc-account", c.OIDCAccount, defaultAccount),
			AccountClaim: flags.one(name, "oidc-account-claim", c.OIDCAccountClaim, ""),
		}
		provider, err := oidc.New(o)
		if err != nil {
			flags.fail("%w", err)
		}
		list = append(list, provider)
	}
	return list, flags.err
}

// checkProxy rejects flags about a proxy that names people.
func (c *signingIn) checkProxy() error {
	everybody := func(p netip.Prefix) bool { return p.Bits() == 0 }
	switch none := c.AuthProxyHeader == ""; {
	case none && c.AuthProxyNameHeader+string(c.AuthProxyRole) != "", none != (len(c.AuthProxyNetworks) == 0):
		return usageError{errors.New("--auth-proxy-…: set both --auth-proxy-header and --auth-proxy-networks")}
	case slices.ContainsFunc(c.AuthProxyNetworks, everybody):
		return usageError{errors.New("--auth-proxy-networks: name the network of the proxy; everybody could claim to be anybody")}
	case !regexp.MustCompile(`^[A-Za-z0-9-]*$`).MatchString(c.AuthProxyHeader + c.AuthProxyNameHeader):
		return usageError{errors.New("--auth-proxy-header, --auth-proxy-name-header: a name has only letters, digits and hyphens")}
	case c.AuthProxyRole != "" && len(c.AuthProxyRole.Permissions()) == 0:
		return usageError{errors.New("--auth-proxy-role: must be admin, editor, reviewer or viewer")}
	}
	return nil
}

// fromProxy returns whom the trusted proxy has signed in, or nil if the request doesn't come from it or has no header.
func (c *signingIn) fromProxy(r *http.Request) (*formsvc.Identity, error) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	trusted := func(p netip.Prefix) bool { return p.Contains(peer.Addr().Unmap().WithZone("")) }
	if err != nil || !slices.ContainsFunc(c.AuthProxyNetworks, trusted) {
		return nil, nil //nolint:nilnil,nilerr // anybody may send the header
	}
	header, nameHeader := http.CanonicalHeaderKey(c.AuthProxyHeader), http.CanonicalHeaderKey(c.AuthProxyNameHeader)
	for field := range r.Header {
		// Some servers read underscores as hyphens, so that a proxy may remove one and pass on the other, which is the client's.
		dashed := http.CanonicalHeaderKey(strings.ReplaceAll(field, "_", "-"))
		if dashed != field && (dashed == header || dashed == nameHeader) {
			return nil, formsvc.ErrUnauthenticated
		}
	}
	emails, names := r.Header[header], r.Header[nameHeader]
	if len(emails) == 0 {
		return nil, nil //nolint:nilnil // nobody
	}
	email, err := mail.ParseAddress(emails[0])
	if err != nil || email.Address != emails[0] || len(emails) > 1 || len(names) > 1 {
		return nil, formsvc.ErrUnauthenticated
	}
	id := &formsvc.Identity{Email: email.Address, Name: strings.Join(names, ""), Account: c.AuthProxyAccount, Join: c.AuthProxyRole}
	return id, nil
}
