// Command host is a product with forms in it: tenants with plans, people with roles, a router and a database of its own. The toolkit
// adds the API, the console and the public forms to them, with the product's rules and looks.
package main

import (
	"context"
	"errors"
	"log"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
	"github.com/formsvc/toolkit/httpx/console"
	"github.com/formsvc/toolkit/httpx/intake"
	"github.com/formsvc/toolkit/storage/postgres"
	"github.com/formsvc/toolkit/webhook/delivery"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	p, err := newProduct(ctx, pool)
	if err != nil {
		log.Fatal(err)
	}
	p.mail = func(_ context.Context, to, text string) error { log.Println("mail to", to+":", text); return nil }
	log.Fatal(p.run(ctx, "127.0.0.1:8080"))
}

// product is the host's own program.
type product struct {
	pool   *pgxpool.Pool
	logins *logins
	forms  *formsvc.Service
	engine *delivery.Engine
	pages  *console.Handler
	web    http.Handler
	mail   func(ctx context.Context, to, text string) error
}

func newProduct(ctx context.Context, pool *pgxpool.Pool) (*product, error) {
	p := &product{pool: pool, logins: newLogins()}
	if err := p.migrate(ctx); err != nil {
		return nil, err
	}
	store, err := postgres.OpenDB(ctx, stdlib.OpenDBFromPool(pool), nil) // tables named formsvc_… beside the product's
	if err != nil {
		return nil, err
	}
	p.forms, err = formsvc.New(store, &formsvc.Options{
		CheckResponse: p.check,
		Limits:        p.limits,
		Formats:       map[string]formsvc.Format{"iban": {Label: "IBAN", Check: checkIBAN}},
		Workflows:     map[string]*formsvc.Workflow{"membership": decisions()},
	})
	if err != nil {
		return nil, err
	}
	if p.engine, err = delivery.New(store, nil); err != nil {
		return nil, err
	}
	api, err := httpx.New(p.forms, &httpx.Options{Authenticate: p.principal, FormsURL: "/f"})
	if err != nil {
		return nil, err
	}
	p.pages, err = console.New(p.forms, api, &console.Options{APIURL: "/app/forms", FormsURL: "/f", Authenticate: p.visitor, Theme: looks()})
	if err != nil {
		return nil, err
	}
	public, err := intake.New(p.forms, &intake.Options{Theme: looks()})
	if err != nil {
		return nil, err
	}
	r := chi.NewRouter()
	r.Use(middleware.RequestID, middleware.Recoverer) // no middleware.Timeout: uploads take as long as they take
	r.Post("/login", p.logins.login)
	r.Get("/dashboard", p.dashboard)
	r.Mount("/app/forms", http.NewCrossOriginProtection().Handler(api)) // browsers send the session with posts of other sites
	r.Mount("/app/forms/console", p.pages)
	r.Mount("/f", public)
	p.web = r
	return p, nil
}

// run serves until ctx ends.
func (p *product) run(ctx context.Context, address string) error {
	server := &http.Server{Addr: address, Handler: p.web, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 4)
	go func() { ended <- server.ListenAndServe() }()
	go func() { ended <- p.engine.Run(ctx) }() // delivers webhooks
	go func() { ended <- p.forms.Run(ctx) }()  // counts quotas, deletes old events
	go func() { ended <- p.mailAbout(ctx) }()  // tells tenants of new responses
	var err error
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	p.pages.Close() // live pages would keep the server up
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(err, server.Shutdown(last))
}
