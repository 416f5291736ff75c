// Command host-auth is a server that had users, tenants and a Postgres before it got
// forms: they go by its own login, each tenant has an account, roles say who may what,
// and the tables lie in its database.
//
//	DATABASE_URL=postgres://localhost/shop go run ./examples/host-auth
package main

import (
	"context"
	"database/sql"
	"log"
	"net/http"
	"os"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of the host's database

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
	"github.com/formsvc/toolkit/storage/postgres"
)

// A user is what the host knows of who is signed in.
type user struct{ Name, Tenant, Role string }

func main() {
	db, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	handler, err := newServer(context.Background(), db)
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "127.0.0.1:8080", Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}

// newServer returns the host's server, with the forms API under /forms.
func newServer(ctx context.Context, db *sql.DB) (http.Handler, error) {
	store, err := postgres.OpenDB(ctx, db, nil)
	if err != nil {
		return nil, err
	}
	forms, err := formsvc.New(store, nil)
	if err != nil {
		return nil, err
	}
	logins := newLogins()
	api, err := httpx.New(forms, &httpx.Options{Authenticate: func(r *http.Request) (*formsvc.Principal, error) {
		u, ok := logins.user(r)
		if !ok {
			return nil, formsvc.ErrUnauthenticated
		}
		account, err := forms.Accounts.Ensure(r.Context(), "tenant "+u.Tenant)
		return &formsvc.Principal{AccountID: account, KeyName: u.Name, Permissions: permissions(u.Role)}, err
	}})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /login", logins.login)
	// Browsers send the cookie along when another site makes them post something.
	mux.Handle("/forms/", http.StripPrefix("/forms", http.NewCrossOriginProtection().Handler(api)))
	return mux, nil
}

func permissions(role string) []formsvc.Permission {
	switch role {
	case "admin":
		return formsvc.AllPermissions()
	case "clerk":
		return []formsvc.Permission{formsvc.CampaignsRead, formsvc.ResponsesRead, formsvc.ResponsesWrite}
	default:
		return nil
	}
}
