package httpx_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
)

const plainComment = `{"body":"Looks good."}`

func TestComments(t *testing.T) {
	w := newWorld(t, nil)
	response := w.response(w.campaign(plainCampaign))
	list := response + "/comments"
	text := `"Ünï😀 \"<b>\" \\ \n\t"`
	a := w.do("POST", list, `{"body":`+text+`}`).is(201, "").has(text, "body").has(`"mine key"`, "author").
		has(`"2026-11-21T08:30:00.123Z"`, "createdAt")
	if a.header.Get("Location") != "" || a.header.Get("Etag") != "" || a.header.Get("Cache-Control") != "no-store" {
		a.errorf("%s %v", a.body, a.header)
	}
	if got := w.do("GET", list, "").is(200, "").has("1", "total"); !strings.Contains(got.body, `"items":[`+a.body+`]`) {
		got.errorf("%s is not in %s", a.body, got.body)
	}
	if items, _ := w.follow("", ""); len(items) != 1 {
		t.Errorf("%d events, want that of the response", len(items))
	}
}

// A principal of the host application may have no name, or one that is too long. Comments and the audit trail name it.
func TestHostPrincipalIsNamed(t *testing.T) {
	w := newWorld(t, nil)
	list := w.response(w.campaign(plainCampaign)) + "/comments"
	for name, author := range map[string]string{
		"": "null", "ada@example.com": `"ada@example.com"`, strings.Repeat("é", formsvc.MaxAuthor+1): `"` + strings.Repeat("é", formsvc.MaxAuthor) + `"`,
	} {
		w.serve(&httpx.Options{Authenticate: func(*http.Request) (*formsvc.Principal, error) {
			return &formsvc.Principal{AccountID: w.mine.account.ID, KeyName: name, Permissions: formsvc.AllPermissions()}, nil
		}})
		w.do("POST", list, plainComment).is(201, "").has(author, "author")
		hook := strings.TrimPrefix(w.webhook(hookBody(fmt.Sprint(len(name)))), "/v1/webhooks/")
		page, err := w.svc.Audits.List(t.Context(), formsvc.AuditQuery{AccountID: w.mine.account.ID, Target: formsvc.ID(hook)})
		if err != nil || len(page.Items) != 1 || len(name) < 100 && page.Items[0].Actor != name {
			t.Errorf("the audit trail says %+v (%v), want one entry of %q", page.Items, err, name)
		}
	}
}
