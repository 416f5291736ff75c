package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	_ "time/tzdata" // for the time zones of browsers, on machines without them

	"github.com/formsvc/toolkit/cmd/formsvc/internal/mailer"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/formsvc/digest"
	"github.com/formsvc/toolkit/httpx"
	"github.com/formsvc/toolkit/httpx/console"
	"github.com/formsvc/toolkit/httpx/intake"
)

// consolePath is the path of the pages under the base URL.
const consolePath = "/console"

// formsPath is the path of public forms under the base URL.
const formsPath = "/f"

type consoleLinkCmd struct {
	inAccount
	linking
}

// linking are the flags of commands that print links to the console.
type linking struct {
	BaseURL string `name:"base-url" placeholder:"URL" help:"Public address of the API. Defaults to that of the server that runs with --data on this machine."`
	Addr    string `placeholder:"ADDR" help:"Address that the server listens on, if none runs here. Defaults to 127.0.0.1:8080."`
}

// Run prints a link, alone, to standard output.
func (c *consoleLinkCmd) Run(ctx context.Context, g *global, std streams) error {
	return c.with(ctx, g, need{}, func(svc *formsvc.Service, id formsvc.ID) error {
		token, until, err := svc.Sessions.NewLink(ctx, id)
		if err != nil {
			return err
		}
		base := c.base(g, std)
		std.note("This link signs in once to the console of account %q, until %s:", c.Account, until.Local().Format("15:04:05"))
		_, err = fmt.Fprintln(std.out, signInLink(base, token))
		return err
	})
}

// base returns the address of the API, and prints a note if it is a guess.
func (c *linking) base(g *global, std streams) string {
	base := cmp.Or(c.BaseURL, g.whereServing())
	if base == "" {
		base = "http://" + reachable(cmp.Or(c.Addr, defaultAddr))
		std.note("No server runs here with --data %s. The link is for a server at %s; for another one, set --base-url.", g.Data, base)
	}
	return strings.TrimRight(base, "/")
}

// signInLink returns the link with a token.
func signInLink(base, token string) string { return base + consolePath + "/sign-in/" + token }

// console returns the pages, which preview forms, and mail sign-in links if there is a mailer.
func (c *serveCmd) console(n *node, m *mailer.Mailer, api *httpx.Handler, forms *intake.Handler) (http.Handler, error) {
	base, err := url.Parse(c.PublicURL)
	if err != nil {
		return nil, err
	}
	opts := &console.Options{Logger: n.logger, APIURL: c.PublicURL, ClientAddress: c.clientAddress(), Mail: m != nil, Preview: func(w http.ResponseWriter, r *http.Request, campaign *formsvc.Campaign) {
		forms.Preview(w, r, campaign, base.Path+formsPath+"/")
	}}
	opts.Providers, err = c.providers(n.logger)
	if err = cmp.Or(err, c.checkProxy()); err != nil {
		return nil, err
	}
	if c.AuthProxyHeader != "" {
		opts.Proxied = c.fromProxy
	}
	if c.PublicURL != "" {
		opts.BaseURL = c.PublicURL + consolePath
	}
	if m != nil && c.PublicURL != "" {
		opts.SendLink = func(ctx context.Context, to, link string, until time.Time) error {
			return m.Send(ctx, digest.Message{To: to, Subject: "Sign in to the console", Text: fmt.Sprintf("This link signs you in once, until %s:\n\n%s\n\n"+
				"If you didn't ask for it, ignore this mail: someone else entered your address.\n", until.UTC().Format("15:04 UTC"), link)})
		}
	}
	pages, err := console.New(n.svc, api, opts)
	if err != nil {
		return nil, usageError{fmt.Errorf("--base-url: %w", err)}
	}
	n.ended = pages.Close
	return pages, nil
}

// beside serves pages under a path beside the API, which has no routes there.
func beside(api http.Handler, path string, pages http.Handler) http.Handler {
	pages = http.StripPrefix(path, pages)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, path+"/"):
			pages.ServeHTTP(w, r)
		case r.URL.Path == path:
			w.Header().Set("Location", "."+path+"/") // relative, for any path prefix of a proxy
			w.WriteHeader(http.StatusPermanentRedirect)
		default:
			api.ServeHTTP(w, r)
		}
	})
}
