package httpx_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

const plainSignature = `{"signer":{"email":"grace@example.com","firstName":"Grace","lastName":"Hopper"}}`

// file uploads a file to a response and returns its identifier.
func (w *world) file(response, content string, edits ...func(*http.Request)) string {
	w.tb.Helper()
	return w.do("POST", response+"/files", content, edits...).is(201, "").text("uuid")
}

func sum(content string) string { return fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(content))) }

func TestSignatures(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		campaign := w.campaign(plainCampaign)
		response := w.response(campaign)
		list := response + "/signatures"
		w.do("GET", list, "").is(200, "").has("[]", "items").has("0", "total")
		of := w.do("POST", list, plainSignature).is(201, "").has(sum(`{"color":{"value":["blue"]}}`), "documentSha256").
			has(`{"email":"grace@example.com","firstName":"Grace","lastName":"Hopper"}`, "signer").has("null", "fileUuid").
			has("null", "provider").has(`"2026-11-21T08:30:00.123Z"`, "signedAt").has(`"2026-11-21T08:30:00.123Z"`, "createdAt")
		if len(of.object()) != 7 || of.header.Get("Location") != "" || of.header.Get("Cache-Control") != "no-store" {
			of.errorf("%s %v", of.body, of.header)
		}
		w.do("PUT", campaign, `{"title":"Closed","status":"closed"}`).is(200, "")
		w.do("PATCH", response, `{"status":"completed","responses":{"color":{"value":["red"]}}}`).is(200, "")
		file := w.file(response, "the document")
		signed := w.do("POST", list, `{"signer":{"email":"a@example.com"},"fileUuid":"`+file+`","provider":"pen","signedAt":"2026-11-20T12:00:00.0009+02:00"}`).
			is(201, "").has(sum("the document"), "documentSha256").has(`"`+file+`"`, "fileUuid").has(`"pen"`, "provider").
			has(`"2026-11-20T10:00:00.000Z"`, "signedAt").has(`{"email":"a@example.com","firstName":"","lastName":""}`, "signer")
		changed := w.do("POST", list, `{"signer":{"email":"a@example.com"},"fileUuid":null,"provider":null,"signedAt":null}`).is(201, "").
			has(sum(`{"color":{"value":["red"]}}`), "documentSha256")
		all := w.do("GET", list, "").is(200, "").has("3", "total")
		if !strings.Contains(all.body, `"items":[`+changed.body+","+signed.body+","+of.body+`]`) {
			all.errorf("%s", all.body)
		}
		w.do("HEAD", list, "").is(200, "")
		w.settle(8)
		events, _ := w.follow("event=signature.completed", "")
		for i, a := range []*answer{of, signed, changed} {
			if len(events) != 3 || !strings.Contains(events[i], `"signature":`+a.body+`}}`) {
				t.Errorf("%d events, want %s in %s", len(events), a.body, events)
			}
		}
		reader := w.key(w.mine, formsvc.ResponsesRead)
		w.do("POST", list, plainSignature, as(reader)).is(403, "permission_denied")
		w.do("GET", list, "", as(reader)).is(200, "")
	})
}

func TestBadSignatures(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		campaign := w.campaign(plainCampaign)
		response, neighbour := w.response(campaign), w.response(campaign)
		list := response + "/signatures"
		theirs := w.response(w.campaign(plainCampaign, as(w.other.key)), as(w.other.key))
		long := strings.Repeat("ä", 201)
		signed := func(members string) string { return `{"signer":{"email":"a@example.com"},` + members + `}` }
		later := w.now.Add(6 * time.Minute).Format(time.RFC3339)
		for _, row := range []struct {
			body   string
			status int
			code   string
			faults []string
		}{
			{`{}`, 422, "validation_failed", f("/signer required")},
			{`{"signer":{}}`, 422, "validation_failed", f("/signer/email required")},
			{`{"signer":{"email":""}}`, 422, "validation_failed", f("/signer/email required")},
			{
				`{"signer":{"email":"x","firstName":"` + long + `","lastName":"` + long + `"},"fileUuid":"` + nobody +
					`","provider":"` + long + `","signedAt":"` + later + `"}`, 422, "validation_failed",
				f("/signer/email invalid_email", "/signer/firstName too_long", "/signer/lastName too_long", "/fileUuid unknown_file",
					"/provider too_long", "/signedAt in_the_future"),
			},
			{
				`{"signer":{"mail":"x","email":1},"fileUuid":"x","provider":2,"signedAt":"2026-11-21T08:30:00","documentSha256":"x"}`,
				400, "invalid_body",
				f("/signer/mail unknown_member", "/signer/email invalid_type", "/fileUuid invalid_uuid", "/provider invalid_type",
					"/signedAt invalid_timestamp", "/documentSha256 unknown_member"),
			},
			{`{"signer":null,"uuid":"x"}`, 400, "invalid_body", f("/signer invalid_type", "/uuid unknown_member")},
			{`{"signer":{},"uuid":"x"}`, 400, "invalid_body", f("/uuid unknown_member", "/signer/email required")},
			{signed(`"provider":"\u0000"`), 400, "invalid_body", f("/provider nul_not_allowed")},
			{signed(`"fileUuid":"` + w.file(neighbour, "x") + `"`), 422, "validation_failed", f("/fileUuid unknown_file")},
			{signed(`"fileUuid":"` + w.file(theirs, "x", as(w.other.key)) + `"`), 422, "validation_failed", f("/fileUuid unknown_file")},
			{signed(`"fileUuid":"` + nobody + `"`), 422, "validation_failed", f("/fileUuid unknown_file")},
			{signed(`"provider":"a","provider":"b"`), 400, "duplicate_member", f("/provider duplicate_member")},
			{`null`, 400, "not_an_object", nil},
		} {
			w.do("POST", list, row.body).is(row.status, row.code).faults(row.faults...)
		}
		w.do("POST", list+"?x=1", plainSignature).is(400, "invalid_parameter")
		w.do("DELETE", list, "").is(405, "method_not_allowed")
		w.do("GET", list+"/"+nobody, "").is(404, "not_found")
		w.do("POST", list, plainSignature, as(w.other.key)).is(404, "not_found")
		w.do("GET", list, "", as(w.other.key)).is(404, "not_found")
		// Another account can't find out which files the response has.
		w.do("POST", list, signed(`"fileUuid":"`+w.file(response, "x")+`"`), as(w.other.key)).is(404, "not_found")
		w.do("POST", strings.Replace(list, response[strings.LastIndexByte(response, '/')+1:], nobody, 1), plainSignature).is(404, "not_found")
		if n := w.total(list); n != 0 {
			t.Errorf("%d signatures", n)
		}
	})
}

// Receivers get a signature as the API shows it.
func TestDeliveryOfSignature(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		engine := w.engine()
		r := newReceiver(t, 200)
		hook := w.do("POST", "/v1/webhooks", `{"url":"`+r.URL+`","events":["signature.completed"]}`).is(201, "")
		response := w.response(w.campaign(plainCampaign))
		signed := w.do("POST", response+"/signatures", plainSignature).is(201, "")
		w.do("POST", response+"/comments", plainComment).is(201, "")
		w.run(engine, 1)
		verifier, err := webhook.NewVerifier([]string{hook.text("secret")}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := verifier.Verify([]byte(r.bodies[0]), r.headers[0]); err != nil {
			t.Error(err)
		}
		e, err := webhook.ParseEvent([]byte(r.bodies[0]))
		if err != nil || e.Type != webhook.SignatureCompleted || e.Data.Signature == nil || !strings.HasSuffix(response, e.Data.Response.UUID) {
			t.Fatalf("%+v, %v", e, err)
		}
		if s := e.Data.Signature; s.UUID != signed.text("uuid") || s.Signer.Email != "grace@example.com" || !s.SignedAt.Equal(w.now) ||
			!s.CreatedAt.Equal(w.now) || s.DocumentSHA256 != signed.text("documentSha256") {
			t.Errorf("%+v, want %s", s, signed.body)
		}
		var raw struct {
			Data struct{ Signature json.RawMessage }
		}
		if err := json.Unmarshal([]byte(r.bodies[0]), &raw); err != nil || string(raw.Data.Signature) != signed.body {
			t.Errorf("%s, want %s", raw.Data.Signature, signed.body)
		}
	})
}
