package main

import (
	"net/http"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/console"
)

// A user is a signed-in user of the host application.
type user struct {
	Name, Tenant string
	Role         formsvc.Role
}

// members identifies the user of a request, for the API and for the pages.
type members struct {
	logins *logins
	forms  *formsvc.Service
}

// principal authenticates requests to the API. It returns ErrUnauthenticated for requests
// without a session of the host application; the API then looks for an API key.
func (m *members) principal(r *http.Request) (*formsvc.Principal, error) {
	u, ok := m.logins.user(r)
	if !ok {
		return nil, formsvc.ErrUnauthenticated
	}
	account, err := m.account(r, u)
	return &formsvc.Principal{AccountID: account, UserID: u.Name, KeyName: u.Name, Permissions: u.Role.Permissions()}, err
}

// visitor authenticates visitors of the console, who may do there what their role permits.
func (m *members) visitor(r *http.Request) (*console.Visitor, error) {
	u, ok := m.logins.user(r)
	if !ok {
		return nil, formsvc.ErrUnauthenticated
	}
	account, err := m.account(r, u)
	return &console.Visitor{AccountID: account, UserID: u.Name, Name: u.Name, Permissions: u.Role.Permissions()}, err
}

// account returns the account of the user's tenant, and creates it at the first request.
func (m *members) account(r *http.Request, u user) (formsvc.ID, error) {
	return m.forms.Accounts.Ensure(r.Context(), "tenant "+u.Tenant)
}
