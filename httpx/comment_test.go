package httpx_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
)

const plainComment = `{"body":"Looks good."}`

func TestComments(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
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
		w.settle(1)
		if items, _ := w.follow("", ""); len(items) != 1 {
			t.Errorf("%d events, want that of the response", len(items))
		}
		reader := w.key(w.mine, formsvc.ResponsesRead)
		w.do("POST", list, plainComment, as(reader)).is(403, "permission_denied")
		w.do("GET", list, "", as(reader)).is(200, "")
	})
}

// A principal of the host application may have no name, or one that is too long.
func TestCommentByHostPrincipal(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		list := w.response(w.campaign(plainCampaign)) + "/comments"
		for name, want := range map[string]string{
			"": "null", strings.Repeat("é", formsvc.MaxAuthor+1): `"` + strings.Repeat("é", formsvc.MaxAuthor) + `"`,
		} {
			w.serve(&httpx.Options{Authenticate: func(*http.Request) (*formsvc.Principal, error) {
				return &formsvc.Principal{AccountID: w.mine.account.ID, KeyName: name, Permissions: formsvc.AllPermissions()}, nil
			}})
			w.do("POST", list, plainComment).is(201, "").has(want, "author")
		}
	})
}

// The audit trail names the host application's principal for changes of webhooks.
func TestAuditNamesHostPrincipal(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
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
	})
}

func TestBadComments(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		response := w.response(w.campaign(plainCampaign))
		list := response + "/comments"
		for _, row := range []struct {
			body   string
			status int
			code   string
			faults []string
		}{
			{`{}`, 422, "validation_failed", f("/body required")},
			{`{"body":" \n"}`, 422, "validation_failed", f("/body required")},
			{`{"body":"` + strings.Repeat("ä", 10_001) + `"}`, 422, "validation_failed", f("/body too_long")},
			{`{"body":null}`, 400, "invalid_body", f("/body invalid_type")},
			{`{"body":1,"author":"me","uuid":"x"}`, 400, "invalid_body", f("/body invalid_type", "/author unknown_member", "/uuid unknown_member")},
			{`{"body":"\u0000"}`, 400, "invalid_body", f("/body nul_not_allowed")},
			{`{"author":"me"}`, 400, "invalid_body", f("/author unknown_member", "/body required")},
			{`{"body":"a","body":"b"}`, 400, "duplicate_member", f("/body duplicate_member")},
			{`[]`, 400, "not_an_object", nil},
			{``, 400, "empty_body", nil},
		} {
			w.do("POST", list, row.body).is(row.status, row.code).faults(row.faults...)
		}
		w.do("POST", list, `{"body":"`+strings.Repeat("ä", 10_000)+`"}`).is(201, "")
		w.do("POST", list+"?x=1", plainComment).is(400, "invalid_parameter")
		w.do("POST", list, plainComment, header("Content-Type", "text/plain")).is(415, "unsupported_media_type")
		w.do("PUT", list, plainComment).is(405, "method_not_allowed")
		w.do("GET", list+"/"+nobody, "").is(404, "not_found")
		w.do("POST", list, plainComment, as(w.other.key)).is(404, "not_found")
		w.do("GET", list, "", as(w.other.key)).is(404, "not_found")
		w.do("POST", strings.Replace(list, response[strings.LastIndexByte(response, '/')+1:], nobody, 1), plainComment).is(404, "not_found")
		if n := w.total(list); n != 1 {
			t.Errorf("%d comments, want the long one", n)
		}
	})
}

// Lists of a response's records behave like all lists, and each accepts only its own cursors.
func TestListsOfResponses(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		campaign := w.campaign(plainCampaign)
		response, other := w.response(campaign), w.response(campaign)
		for name, body := range map[string]string{"/comments": plainComment, "/signatures": plainSignature} {
			var made []string
			for range 5 {
				made = append(made, w.do("POST", response+name, body).is(201, "").text("uuid"))
				w.do("POST", other+name, body).is(201, "")
				w.now = w.now.Add(time.Millisecond)
			}
			newest := slices.Clone(made)
			slices.Reverse(newest)
			list := response + name
			for query, want := range map[string][]string{"": newest, "?order=asc": made, "?limit=2&offset=1": newest[1:3], "?offset=9": nil} {
				if got, _ := w.page(list + query); !slices.Equal(got, want) {
					t.Errorf("%s%s: %v, want %v", name, query, got, want)
				}
			}
			first, cursor := w.page(list + "?limit=2")
			second, end := w.page(list + "?limit=3&cursor=" + cursor)
			if !slices.Equal(append(first, second...), newest) || end != "" {
				t.Errorf("%s: %v, then %v and %q; want %v", name, first, second, end, newest)
			}
			elsewhere := map[string]string{"/comments": "/signatures", "/signatures": "/comments"}[name]
			w.do("GET", other+name+"?cursor="+cursor, "").is(400, "invalid_cursor")
			w.do("GET", response+elsewhere+"?cursor="+cursor, "").is(400, "invalid_cursor")
			w.do("GET", list+"?status=pending", "").is(400, "invalid_parameter").faults("status unknown_parameter")
			w.do("GET", list+"?limit=2", "").is(200, "").has("5", "total").has("2", "limit").has("0", "offset")
		}
	})
}

// A retry with the same key creates no second comment or signature.
func TestRepeatedCommentsAndSignatures(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		response := w.response(w.campaign(plainCampaign))
		for name, body := range map[string]string{"/comments": plainComment, "/signatures": plainSignature} {
			once := header("Idempotency-Key", "key"+name)
			first := w.do("POST", response+name, body, once).is(201, "")
			again := w.do("POST", response+name, body, once).is(201, "")
			if again.body != first.body || again.header.Get("Idempotent-Replayed") != "true" {
				again.errorf("%s %v, want %s", again.body, again.header, first.body)
			}
			kept, err := w.svc.Recall(t.Context(), w.mine.account.ID, "key"+name)
			if err != nil || !strings.HasSuffix(response, "/"+string(kept.ResponseID)) {
				t.Errorf("kept for the response %q, %v; want %s", kept.ResponseID, err, response)
			}
			w.do("POST", response+name, strings.Replace(body, "o", "0", 1), once).is(422, "idempotency_mismatch")
			if n := w.total(response + name); n != 1 {
				t.Errorf("%d of %s", n, name)
			}
		}
		w.settle(2)
		if items, _ := w.follow("event=signature.completed", ""); len(items) != 1 {
			t.Errorf("%d events", len(items))
		}
	})
}
