package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/settings"
)

// settingsPath is where the pages are, below the base URL.
const settingsPath = "/settings"

type settingsLinkCmd struct {
	inAccount
	BaseURL string `name:"base-url" placeholder:"URL" help:"The public address of the API. Defaults to that of the server that runs with --data on this machine."`
	Addr    string `placeholder:"ADDR" help:"Where the server listens, for when none runs here. Defaults to 127.0.0.1:8080."`
}

// Run prints a link, and nothing else, to standard output.
func (c *settingsLinkCmd) Run(ctx context.Context, g *global, std streams) error {
	return c.with(ctx, g, func(svc *formsvc.Service, id formsvc.ID) error {
		token, until, err := svc.Sessions.NewLink(ctx, id)
		if err != nil {
			return err
		}
		base := c.base(ctx, g, std)
		_, _ = fmt.Fprintf(std.err, "This link signs in to the settings of the account %q, once, until %s:\n", c.Account, until.Local().Format("15:04:05"))
		_, err = fmt.Fprintln(std.out, signInLink(base, token))
		return err
	})
}

// base returns the address of the API, and says when it is not known for sure.
func (c *settingsLinkCmd) base(ctx context.Context, g *global, std streams) string {
	if c.BaseURL != "" {
		return strings.TrimRight(c.BaseURL, "/")
	}
	s, running := g.whereServing(ctx)
	if running {
		return s.BaseURL
	}
	if c.Addr != "" || s.BaseURL == "" {
		s.BaseURL = "http://" + reachable(cmp.Or(c.Addr, defaultAddr))
	}
	_, _ = fmt.Fprintf(std.err, "No server runs here with --data %s. The link is for one at %s; for another one, name it with --base-url.\n", g.Data, s.BaseURL)
	return s.BaseURL
}

// signInLink returns the link with a token.
func signInLink(base, token string) string { return base + settingsPath + "/sign-in/" + token }

// settings returns the pages for account settings, which mail links if there is a mailer.
func (c *serveCmd) settings(n *node, m *mailer) (http.Handler, error) {
	opts := &settings.Options{Logger: n.logger}
	if c.BaseURL != "" {
		opts.BaseURL = c.BaseURL + settingsPath
	}
	if m != nil && c.BaseURL != "" {
		opts.SendLink = func(ctx context.Context, to, link string, until time.Time) error {
			return m.send(ctx, to, "Sign in to account settings", fmt.Sprintf("This link signs you in, once, until %s:\n\n%s\n\n"+
				"If you did not ask for it, somebody else typed your address; nothing has happened.\n", until.UTC().Format("15:04 UTC"), link))
		}
	}
	pages, err := settings.New(n.svc, cmp.Or(c.BaseURL, "/"), opts)
	if err != nil {
		return nil, err
	}
	return http.StripPrefix(settingsPath, pages), nil
}

// withSettings serves the pages beside the API, which has no such path.
func withSettings(api, pages http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == settingsPath:
			w.Header().Set("Location", "."+settingsPath+"/") // whatever a proxy has before it
			w.WriteHeader(http.StatusPermanentRedirect)
		case strings.HasPrefix(r.URL.Path, settingsPath+"/"):
			pages.ServeHTTP(w, r)
		default:
			api.ServeHTTP(w, r)
		}
	})
}
