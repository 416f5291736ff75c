package httpx_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"crypto/sha256"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
)

const plainComment = `{"body":"Looks good."}`

func TestComments(t *testing.T) {
	w := newWorld(t, nil)
	campaign, response := w.pair()
	w.do("PUT", campaign, `{"title":"Closed","status":"closed"}`).is(200, "")
	list := response + "/comments"
	w.do("POST", list, `{"body":" \t\n\u00a0"}`).is(422, "validation_failed").faults("/body required")
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
		"": "null", "ada@example.com": `"ada@example.com"`,
		strings.Repeat("é", formsvc.MaxAuthor+1): `"` + strings.Repeat("é", formsvc.MaxAuthor) + `"`,
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

// Events name a principal of the host application as their actor, by the name if it has no identifier.
func TestHostPrincipalIsActor(t *testing.T) {
	w := newWorld(t, nil)
	r := w.response(w.campaign(plainCampaign))
	for i, tc := range []struct{ id, name, want string }{
		{"u-7", "Ada", `{"type":"person","id":"u-7","name":"Ada"}`},
		{"u-7", "", `{"type":"person","id":"u-7","name":"u-7"}`},
		{"", "Ada", `{"type":"person","name":"Ada"}`},
		{"", "", `{"type":"system"}`},
	} {
		w.serve(&httpx.Options{Authenticate: func(*http.Request) (*formsvc.Principal, error) {
			return &formsvc.Principal{AccountID: w.mine.account.ID, UserID: tc.id, KeyName: tc.name, Permissions: formsvc.AllPermissions()}, nil
		}})
		w.do("PATCH", r, fmt.Sprintf(`{"user":{"lastName":"%d"}}`, i)).is(200, "")
		events := w.do("GET", "/v1/events?event=response.updated&order=desc&limit=1", "").is(200, "").body
		if !strings.Contains(events, `"actor":`+tc.want+`}}`) {
			t.Errorf("%q with the name %q: want the actor %s in %s", tc.id, tc.name, tc.want, events)
		}
	}
}

const plainSignature = `{"signer":{"email":"grace@example.com","firstName":"Grace","lastName":"Hopper"}}`

func sum(content string) string { return fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(content))) }

func TestSignatures(t *testing.T) {
	w := newWorld(t, nil)
	campaign := w.campaign(plainCampaign)
	response := w.response(campaign)
	list := response + "/signatures"
	of := w.do("POST", list, plainSignature).is(201, "").has(sum(`{"color":{"value":["blue"]}}`), "documentSha256").
		has("null", "fileUuid").has(`"2026-11-21T08:30:00.123Z"`, "signedAt")
	w.do("PUT", campaign, `{"title":"Closed","status":"closed"}`).is(200, "")
	w.do("PATCH", response, `{"status":"completed","responses":{"color":{"value":["red"]}}}`).is(200, "")
	file := w.do("POST", response+"/files", "the document").is(201, "").text("uuid")
	signed := w.do("POST", list, `{"signer":{"email":"a@example.com"},"fileUuid":"`+file+`","provider":"pen","signedAt":"2026-11-20T12:00:00.0009+02:00"}`).
		is(201, "").has(sum("the document"), "documentSha256").has(`"`+file+`"`, "fileUuid").has(`"pen"`, "provider").
		has(`"2026-11-20T10:00:00.000Z"`, "signedAt").has(`{"email":"a@example.com","firstName":"","lastName":""}`, "signer")
	changed := w.do("POST", list, `{"signer":{"email":"a@example.com"},"fileUuid":null,"provider":null,"signedAt":null}`).is(201, "").
		has(sum(`{"color":{"value":["red"]}}`), "documentSha256")
	all := w.do("GET", list, "").is(200, "").has("3", "total")
	if !strings.Contains(all.body, `"items":[`+changed.body+","+signed.body+","+of.body+`]`) {
		all.errorf("%s", all.body)
	}
	events, _ := w.follow("event=signature.completed", "")
	for i, a := range []*answer{of, signed, changed} {
		if len(events) != 3 || !strings.Contains(events[i], `"signature":`+a.body+`,"actor":{"type":"key","id":"`) {
			t.Errorf("%d events, want %s in %s", len(events), a.body, events)
		}
	}
}
