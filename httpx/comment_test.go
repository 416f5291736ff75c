package httpx_test

import (
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
	w.do("GET", list, "").is(200, "").has("[]", "items").has("0", "total")
	text := `"Ünï😀 \"<b>\" \\ \n\t"`
	a := w.do("POST", list, `{"body":`+text+`}`).is(201, "").has(text, "body").has(`"mine key"`, "author").
		has(`"2026-11-21T08:30:00.123Z"`, "createdAt")
	if len(a.object()) != 4 || a.header.Get("Location") != "" || a.header.Get("Etag") != "" || a.header.Get("Cache-Control") != "no-store" {
		a.errorf("%s %v", a.body, a.header)
	}
	if got := w.do("GET", list, "").is(200, "").has("1", "total"); !strings.Contains(got.body, `"items":[`+a.body+`]`) {
		got.errorf("%s is not in %s", a.body, got.body)
	}
	w.do("HEAD", list, "").is(200, "")
	w.do("GET", response, "").is(200, "").has(`"pending"`, "status")
	if items, _ := w.follow("", ""); len(items) != 1 {
		t.Errorf("%d events, want that of the response", len(items))
	}
	reader := w.key(w.mine, formsvc.ResponsesRead)
	w.do("POST", list, plainComment, as(reader)).is(403, "permission_denied")
	w.do("GET", list, "", as(reader)).is(200, "")
}

// A principal of the host application may have no name, or one that is too long.
func TestCommentByHostPrincipal(t *testing.T) {
	w := newWorld(t, nil)
	list := w.response(w.campaign(plainCampaign)) + "/comments"
	for name, want := range map[string]string{
		"": "null", strings.Repeat("é", formsvc.MaxAuthor+1): `"` + strings.Repeat("é", formsvc.MaxAuthor) + `"`,
	} {
		w.serve(&httpx.Options{Authenticate: func(*http.Request) (*formsvc.Principal, error) {
			return &formsvc.Principal{AccountID: w.mine.account.ID, KeyName: name, Permissions: formsvc.AllPermissions()}, nil
		}})
		w.do("POST", list, plainComment).is(201, "").has(want, "author")
	}
}

// The audit trail names the host application's principal for changes of webhooks.
func TestAuditNamesHostPrincipal(t *testing.T) {
	w := newWorld(t, nil)
	for _, name := range []string{"ada@example.com", ""} {
		w.serve(&httpx.Options{Authenticate: func(*http.Request) (*formsvc.Principal, error) {
			return &formsvc.Principal{AccountID: w.mine.account.ID, KeyName: name, Permissions: formsvc.AllPermissions()}, nil
		}})
		hook := w.do("POST", "/v1/webhooks", `{"url":"https://example.com/`+name+`","events":["response.created"]}`).is(201, "").text("uuid")
		page, err := w.svc.Audits.List(t.Context(), formsvc.AuditQuery{AccountID: w.mine.account.ID, Target: formsvc.ID(hook)})
		if err != nil || len(page.Items) != 1 || page.Items[0].Actor != name {
			t.Errorf("the audit trail says %+v (%v), want one entry of %q", page.Items, err, name)
		}
	}
}

func TestBadComments(t *testing.T) {
	w := newWorld(t, nil)
	response := w.response(w.campaign(plainCampaign))
	list := response + "/comments"
	for body, fault := range map[string]string{
		`{"body":" \n"}`: "required", `{"body":"` + strings.Repeat("ä", 10_001) + `"}`: "too_long", `{"body":"\u0000"}`: "nul_not_allowed",
	} {
		if a := w.do("POST", list, body); a.status != 422 && fault != "nul_not_allowed" || a.found() != "|/body "+fault {
			a.errorf("%d %s, want %s", a.status, a.body, fault)
		}
	}
	w.do("POST", list, `{"body":"`+strings.Repeat("ä", 10_000)+`"}`).is(201, "")
	w.do("GET", list+"/"+nobody, "").is(404, "not_found")
	if n := w.total(list); n != 1 {
		t.Errorf("%d comments, want the long one", n)
	}
}
