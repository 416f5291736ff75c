package main

import (
	"net/http"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/settings"
)

// A user is what the host knows of who is signed in.
type user struct{ Name, Tenant, Role string }

// members tell the API and the pages who of the host's users asks.
type members struct {
	logins *logins
	forms  *formsvc.Service
}

// principal is for the API. A request without the host's session may have an API key: what
// is ErrUnauthenticated here is answered by that, or refused.
func (m *members) principal(r *http.Request) (*formsvc.Principal, error) {
	u, ok := m.logins.user(r)
	if !ok {
		return nil, formsvc.ErrUnauthenticated
	}
	account, err := m.account(r, u)
	return &formsvc.Principal{AccountID: account, UserID: u.Name, KeyName: u.Name, Permissions: permissions(u.Role)}, err
}

// visitor is for the pages, where a visitor may do everything: administrators may.
func (m *members) visitor(r *http.Request) (*settings.Visitor, error) {
	u, ok := m.logins.user(r)
	if !ok || u.Role != "admin" {
		return nil, formsvc.ErrUnauthenticated
	}
	account, err := m.account(r, u)
	return &settings.Visitor{AccountID: account, UserID: u.Name, Name: u.Name}, err
}

// account returns the account of the user's tenant, which is made at the first request.
func (m *members) account(r *http.Request, u user) (formsvc.ID, error) {
	return m.forms.Accounts.Ensure(r.Context(), "tenant "+u.Tenant)
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
