// Command host-auth is a server with users, tenants and a Postgres of its own that embeds
// the forms API: its login authenticates, each tenant is an account, roles become
// permissions, and the tables are in its database.
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

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of the host application's database

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
	"github.com/formsvc/toolkit/httpx/console"
	"github.com/formsvc/toolkit/storage/postgres"
)

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

// newServer returns the host application's server, with the forms API under /forms and
// the console under /forms/console.
func newServer(ctx context.Context, db *sql.DB) (http.Handler, error) {
	store, err := postgres.OpenDB(ctx, db, nil)
	if err != nil {
		return nil, err
	}
	forms, err := formsvc.New(store, nil)
	if err != nil {
		return nil, err
	}
	members := newMembers(forms)
	api, err := httpx.New(forms, &httpx.Options{Authenticate: members.principal})
	if err != nil {
		return nil, err
	}
	pages, err := console.New(forms, api, &console.Options{APIURL: "/forms", Authenticate: members.visitor})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /login", members.login)
	// Browsers send the session cookie with posts that another site triggers.
	mux.Handle("/forms/", http.StripPrefix("/forms", http.NewCrossOriginProtection().Handler(api)))
	mux.Handle("/forms/console/", http.StripPrefix("/forms/console", pages))
	return mux, nil
}
