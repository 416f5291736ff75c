package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/cmd/formsvc/internal/oidc"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/sqlite"
)

// linkPattern is a link to the console, alone.
const linkPattern = `^http://localhost:1/console/sign-in/(m-[A-Z2-7]{52})\n$`

// People are invited by a link that is printed alone, invited again, listed, given roles, signed in and removed.
func TestPeopleCommands(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.do(t, "accounts", "create", "default")
	add := func(line ...string) string {
		r := s.try(t, append([]string{"people", "add", "--addr", ":1"}, line...)...)
		m := regexp.MustCompile(linkPattern).FindStringSubmatch(r.out)
		if m == nil || strings.Contains(r.err, m[1]) {
			t.Fatalf("people add %q: %+v", line, r)
		}
		return m[1]
	}
	first := add("--email", "ada@example.com", "--name", "Ada", "--role", "editor")
	again := add("--email", "ADA@example.com", "--role", "admin")
	s.refuses(t, []mistake{
		{"people link --email ben@example.com", 1, `no person with the address "ben@example.com": "formsvc people list"`},
		{"people role --email ada@example.com --role viewer", 1, "ada@example.com is the last admin"},
		{"people add --email ada@example.com --role viewer", 1, "ada@example.com is the last admin"},
		{"people remove --email ada@example.com", 1, "last admin"},
		{"people add --email nonsense --role viewer", 1, "must be an e-mail address"},
		{"people add --email ben@example.com --role boss", 2, "--role"},
		{"people add --email ben@example.com", 2, "--role"},
		{"people list --account Nobody", 1, `no account "Nobody"`},
	})
	signIn := func(token string, works bool) {
		t.Helper()
		s.within(t, func(svc *formsvc.Service) {
			if _, _, err := svc.Sessions.SignIn(t.Context(), token, ""); (err == nil) != works {
				t.Errorf("signing in by %s: %v, want %v", token, err, works)
			}
		})
	}
	signIn(first, false) // replaced
	signIn(again, true)
	s.refuses(t, []mistake{{"people add --email ada@example.com --role viewer", 1, `has joined account "default": "formsvc people role"`}})
	ada := s.list(t, "people", "list")[0]
	if ada["name"] != "Ada" || ada["role"] != "admin" || ada["state"] != "joined" || ada["invitedUntil"] != nil || ada["signedInAt"] == nil || fmt.Sprint(ada["ways"]) != "[]" {
		t.Errorf("Ada: %v", ada)
	}
	ben := s.record(t, "people", "add", "--email", "ben@example.com", "--role", "viewer", "--base-url", "https://forms.example.com/")
	if ben["name"] != "ben@example.com" || ben["state"] != "invited" || !strings.HasPrefix(ben["link"].(string), "https://forms.example.com/console/sign-in/m-") {
		t.Errorf("Ben: %v", ben)
	}
	s.change(t, "UPDATE formsvc_members SET invited_until = 1 WHERE email = 'ben@example.com'")
	equal(t, s.list(t, "people", "list")[1]["state"], any("expired"), "Ben's invitation is %v")
	s.refuses(t, []mistake{{"people link --email ben@example.com", 1, `the invitation of ben@example.com has expired: "formsvc people add"`}})
	add("--email", "ben@example.com", "--role", "viewer")
	equal(t, s.record(t, "people", "role", "--email", "BEN@example.com", "--role", "reviewer")["role"], any("reviewer"), "Ben's role is %v")
	for range 2 { // one for a member, and one for a person who is only invited
		link := s.try(t, "people", "link", "--email", "ben@example.com", "--addr", ":1")
		signIn(regexp.MustCompile(linkPattern).FindStringSubmatch(link.out)[1], true)
	}
	s.do(t, "people", "remove", "--email", "ben@example.com")
	table := s.do(t, "people", "list")
	if !regexp.MustCompile(`^EMAIL +NAME +ROLE +STATE +INVITED UNTIL +LAST SIGNED IN +BY\nada@example.com +Ada +admin +joined +- +\S+Z +-\n$`).MatchString(table) {
		t.Errorf("people list prints\n%s", table)
	}
}

// within runs a function on the service of the default database.
func (s *shell) within(t *testing.T, do func(svc *formsvc.Service)) {
	t.Helper()
	db := must(sqlite.Open(t.Context(), s.data+"/formsvc.db", nil))
	do(must(formsvc.New(db, nil)))
	noError(t, db.Close())
}

// The table of the audit trail has the names of people, of those who were removed too. Passwords stay out of every list.
func TestPeopleInAudit(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.do(t, "accounts", "create", "default")
	s.do(t, "people", "add", "--email", "ada@example.com", "--role", "admin", "--name", "Ada\u202e")
	s.within(t, func(svc *formsvc.Service) {
		account := must(svc.Accounts.ByName(t.Context(), "default"))
		m := must(svc.Members.ByEmail(t.Context(), account.ID, "ada@example.com"))
		for _, email := range []string{"ben@example.com", "eve@example.com"} {
			_, _, err := svc.AsMember(&m).Members.Invite(t.Context(), account.ID, formsvc.MemberInput{Email: email, Name: email, Role: formsvc.Admin})
			noError(t, err)
		}
		ben := must(svc.Members.ByEmail(t.Context(), account.ID, "ben@example.com"))
		noError(t, svc.AsMember(&ben).Members.Remove(t.Context(), m.Key()))
		id := formsvc.Identity{Issuer: "https://id.example.com", Subject: "17", Email: "eve@example.com", Provider: "oidc"}
		_, _, err := svc.Sessions.SignInAs(t.Context(), id, "")
		noError(t, err)
	})
	contains(t, "audit list", s.do(t, "audit", "list"), `"ben@example.com"  member.removed`, `"cli `, `"Ada\u202e"`)
	lacks(t, "audit list", s.do(t, "audit", "list"), `"person `)
	contains(t, "audit list --json", s.do(t, "audit", "list", "--json"), `"actor":"person `)
	contains(t, "people list", s.do(t, "people", "list"), "eve@example.com", "https://id.example.com")
}

// serveFlags parses flags of serve.
func serveFlags(t *testing.T, line ...string) *serveCmd {
	t.Helper()
	commands := new(cli)
	_, err := must(newParser(commands)).Parse(append([]string{"serve"}, line...))
	noError(t, err)
	return &commands.Serve
}

// Flags for several providers sort their values by the provider's name.
func TestProviderFlags(t *testing.T) {
	t.Parallel()
	c := serveFlags(t, "--oidc-issuer", "https://id.example.com/realms/x?", "--oidc-issuer", "https://a.example.com,corp=https://b.example.com")
	if _, err := c.providers(slog.Default()); err == nil || !strings.Contains(err.Error(), `two are named "oidc"`) {
		t.Errorf("two without a name: %v", err)
	}
	c = serveFlags(t, "--oidc-issuer", "https://a.example.com,corp=https://b.example.com", "--oidc-client-id", "id=1,corp=2", "--oidc-client-secret", "corp=a=b,c", "--oidc-title", "corp=Corp, the company",
		"--oidc-scope", "corp=openid,groups", "--oidc-role", `staff=editor,corp=cn=x=admin,y=viewer`, "--oidc-domain", "corp=example.com=reviewer", "--oidc-account", "corp=north",
		"--oidc-role-claim", "corp=roles", "--oidc-account-claim", "tenant")
	list := must(c.providers(slog.Default()))
	for i, want := range []string{
		"oidc|a.example.com|https://a.example.com|id=1||[openid email profile]|groups|map[staff:editor]|map[]|default|tenant",
		"corp|Corp, the company|https://b.example.com|2|a=b,c|[openid groups]|roles|map[cn=x:admin y:viewer]|map[example.com:reviewer]|north|",
	} {
		o := list[i].(*oidc.Provider).Options
		equal(t, fmt.Sprintf("%s|%s|%s|%s|%s|%v|%s|%v|%v|%s|%s", o.Name, list[i].Title(), o.Issuer, o.ClientID, o.ClientSecret, o.Scopes, o.RoleClaim, o.Roles, o.Domains, o.Account, o.AccountClaim),
			want, "provider %d is %q", i)
	}
	equal(t, len(list), 2, "there are %d providers")
	equal(t, len(must(serveFlags(t).providers(slog.Default()))), 0, "without flags there are %d providers")
}

// Unusable flags about signing in end the command at once. The message doesn't show a secret.
func TestSignInFlagMistakes(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	const oidcFlags = "serve --oidc-issuer https://id.example.com --oidc-client-id us "
	s.refuses(t, []mistake{
		{"serve --oidc-issuer https://id.example.com", 2, `--oidc-client-id: "oidc" needs one`},
		{"serve --oidc-issuer http://id.example.com --oidc-client-id x", 2, "https://"},
		{"serve --oidc-issuer http://localhost.evil.test --oidc-client-id x", 2, "https://"},
		{"serve --oidc-issuer http://127.0.0.1@evil.test --oidc-client-id x", 2, "https://"},
		{"serve --oidc-issuer https://a:b@id.example.com --oidc-client-id x", 2, "no user"},
		{"serve --oidc-issuer Corp=https://id.example.com --oidc-client-id x", 2, "https://"},
		{"serve --oidc-client-id x", 2, "needs --oidc-issuer"},
		{"serve --oidc-domain example.com=viewer", 2, "needs --oidc-issuer"},
		{"serve --oidc-issuer corp=https://id.example.com --oidc-client-id us", 2, `no --oidc-issuer is named "oidc"; write NAME=VALUE with the name of one: corp`},
		{oidcFlags + "--oidc-role staff=boss", 2, "--oidc-role: must be VALUE=ROLE"},
		{oidcFlags + "--oidc-role =admin", 2, "--oidc-role: must be VALUE=ROLE"},
		{oidcFlags + "--oidc-domain example.com", 2, "--oidc-domain: must be VALUE=ROLE"},
		{"serve --auth-proxy-header X-Forwarded-Email", 2, "--auth-proxy-networks"},
		{"serve --auth-proxy-networks 10.0.0.0/8", 2, "--auth-proxy-header"},
		{"serve --auth-proxy-role viewer", 2, "--auth-proxy-header"},
		{"serve --auth-proxy-header X-Forwarded-Email --auth-proxy-networks 10.0.0.0/8,0.0.0.0/0", 2, "everybody"},
		{"serve --auth-proxy-header X-Forwarded-Email --auth-proxy-networks ::/0", 2, "everybody"},
		{"serve --auth-proxy-header X_Forwarded_Email --auth-proxy-networks 10.0.0.0/8", 2, "hyphens"},
		{"serve --auth-proxy-header X-Forwarded-Email --auth-proxy-networks 10.0.0.0/8 --auth-proxy-role boss", 2, "--auth-proxy-role"},
	})
	s.env = environment{"FORMSVC_OIDC_ISSUER=corp=https://id.example.com", "FORMSVC_OIDC_CLIENT_SECRET=very-secret"}
	if r := s.try(t, "serve"); r.status != 2 || strings.Contains(r.err+r.out, "very-secret") {
		t.Errorf("a secret of nobody: %+v", r)
	}
}

// The header of a proxy names people only if the connection comes from the proxy, and only without doubt.
func TestProxyHeader(t *testing.T) {
	t.Parallel()
	c := serveFlags(t, "--auth-proxy-header", "x-forwarded-email", "--auth-proxy-networks", "10.0.0.0/8,fd00::/8", "--auth-proxy-name-header", "X-Name", "--auth-proxy-role", "viewer")
	const proxy, field, name = "10.1.2.3:4", "X-Forwarded-Email", "X-Name"
	ada := &formsvc.Identity{Email: "ada@example.com", Account: "default", Join: formsvc.Viewer}
	for what, x := range map[string]struct {
		peer   string
		header http.Header
		want   *formsvc.Identity
		fails  bool
	}{
		"from the proxy":       {proxy, http.Header{field: {"ada@example.com"}}, ada, false},
		"over IPv6":            {"[fd00::1]:4", http.Header{field: {"ada@example.com"}}, ada, false},
		"IPv4 over IPv6":       {"[::ffff:10.1.2.3]:4", http.Header{field: {"ada@example.com"}}, ada, false},
		"with a zone":          {"[fd00::1%eth0]:4", http.Header{field: {"ada@example.com"}}, ada, false},
		"with a name":          {proxy, http.Header{field: {"ada@example.com"}, name: {"Ada"}}, &formsvc.Identity{Email: "ada@example.com", Name: "Ada", Account: "default", Join: formsvc.Viewer}, false},
		"from elsewhere":       {"11.1.2.3:4", http.Header{field: {"ada@example.com"}}, nil, false},
		"from this machine":    {"127.0.0.1:4", http.Header{field: {"ada@example.com"}}, nil, false},
		"as if from the proxy": {"11.1.2.3:4", http.Header{field: {"ada@example.com"}, "X-Forwarded-For": {"10.1.2.3"}, "X-Real-Ip": {"10.1.2.3"}}, nil, false},
		"from a socket":        {"@", http.Header{field: {"ada@example.com"}}, nil, false},
		"no header":            {proxy, http.Header{name: {"Ada"}}, nil, false},
		"underscores":          {proxy, http.Header{"X_forwarded_email": {"eve@example.com"}}, nil, true},
		"some underscores":     {proxy, http.Header{"X-Forwarded_email": {"eve@example.com"}, field: {"ada@example.com"}}, nil, true},
		"a name's underscores": {proxy, http.Header{"X_name": {"Eve"}, field: {"ada@example.com"}}, nil, true},
		"others' underscores":  {proxy, http.Header{"X_other": {"Eve"}, field: {"ada@example.com"}}, ada, false},
		"not from the proxy":   {"11.1.2.3:4", http.Header{"X_forwarded_email": {"eve@example.com"}}, nil, false},
		"twice":                {proxy, http.Header{field: {"ada@example.com", "eve@example.com"}}, nil, true},
		"two in one":           {proxy, http.Header{field: {"ada@example.com, eve@example.com"}}, nil, true},
		"two names":            {proxy, http.Header{field: {"ada@example.com"}, name: {"Ada", "Eve"}}, nil, true},
		"empty":                {proxy, http.Header{field: {""}}, nil, true},
		"no address":           {proxy, http.Header{field: {"ada"}}, nil, true},
		"a name and address":   {proxy, http.Header{field: {"Ada <ada@example.com>"}}, nil, true},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/console/", nil)
		r.RemoteAddr, r.Header = x.peer, x.header
		id, err := c.fromProxy(r)
		if (err != nil) != x.fails || fmt.Sprint(id) != fmt.Sprint(x.want) {
			t.Errorf("%s: %+v, %v; want %+v", what, id, err, x.want)
		}
	}
	c.AuthProxyNetworks = []netip.Prefix{}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/console/", nil)
	r.Header.Set(field, "ada@example.com")
	if id, err := c.fromProxy(r); id != nil || err != nil {
		t.Errorf("without networks: %v, %v", id, err)
	}
}
