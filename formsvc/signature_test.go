package formsvc_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

func grace() formsvc.User {
	return formsvc.User{Email: "grace@example.com", FirstName: "Grace", LastName: "Hopper"}
}

func (w *world) signatures(r *formsvc.Response) []formsvc.Signature {
	w.tb.Helper()
	page, err := w.svc.Signatures.List(w.ctx, r.Key(), formsvc.PageQuery{Ascending: true})
	if err != nil || page.Total != int64(len(page.Items)) {
		w.tb.Fatalf("%+v, %v", page, err)
	}
	return page.Items
}

// wantSigned fails the test unless the newest event contains the signature, in the same bytes as
// the API, and the response.
func (w *world) wantSigned(sig *formsvc.Signature, r *formsvc.Response) {
	w.tb.Helper()
	events := w.events()
	last := events[len(events)-1]
	var payload struct {
		Data struct {
			Campaign            struct{ Title string }
			Response, Signature json.RawMessage
		}
	}
	wantError(w.tb, json.Unmarshal(last.Payload, &payload), nil)
	if last.Type != webhook.SignatureCompleted || payload.Data.Campaign.Title != "Summer grant" ||
		!bytes.Equal(payload.Data.Signature, sig.AppendJSON(nil)) ||
		!bytes.Equal(payload.Data.Response, r.AppendJSON(nil)) {
		w.tb.Errorf("%s: %s", last.Type, last.Payload)
	}
}

func TestSignature(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	r := w.submitted(&c, answer("b", "2"), answer("a"))
	sig, err := w.svc.Signatures.Create(w.ctx, r.Key(), formsvc.SignatureInput{Signer: grace()})
	want := formsvc.Signature{
		ID: sig.ID, AccountID: w.account, CampaignID: c.ID, ResponseID: r.ID, Signer: grace(),
		DocumentSHA256: sha256.Sum256([]byte(`{"a":{"value":[]},"b":{"value":["2"]}}`)), SignedAt: start(), CreatedAt: start(),
	}
	if err != nil || sig != want {
		t.Errorf("got  %+v, %v\nwant %+v", sig, err, want)
	}
	w.wantSigned(&sig, &r)
	text := `{"uuid":"` + string(sig.ID) + `","signer":{"email":"grace@example.com","firstName":"Grace","lastName":"Hopper"},` +
		`"fileUuid":null,"provider":null,"documentSha256":"d938bd6e71688ba973b41eee13efcc63af1fb4f0ddd19b0411f0f25d08462389",` +
		`"signedAt":"2026-11-21T08:30:00.123Z","createdAt":"2026-11-21T08:30:00.123Z"}`
	equal(t, string(sig.AppendJSON(nil)), text, "got  %s")

	w.clock.add(time.Hour)
	r = w.updated(&r, formsvc.ResponsePatch{Status: new("completed"), Answers: []formsvc.AnswerPatch{{Answer: answer("b", "3")}}})
	must(w.svc.Campaigns.Replace(w.ctx, c.Key(), formsvc.CampaignInput{Title: "Summer grant", Status: formsvc.CampaignClosed}))
	early := time.Date(2026, 11, 20, 1, 2, 3, 456_789_000, time.FixedZone("east", 3600))
	again, err := w.svc.Signatures.Create(w.ctx, r.Key(), formsvc.SignatureInput{
		Signer: formsvc.User{Email: "b@example.com"}, Provider: strings.Repeat("ä", 200), SignedAt: early,
	})
	if err != nil || again.SignedAt != time.Date(2026, 11, 20, 0, 2, 3, 456e6, time.UTC) || again.CreatedAt != start().Add(time.Hour) ||
		again.DocumentSHA256 != sha256.Sum256([]byte(`{"a":{"value":[]},"b":{"value":["3"]}}`)) {
		t.Errorf("%+v, %v", again, err)
	}
	w.wantSigned(&again, &r)
	if list := w.signatures(&r); len(list) != 2 || list[0] != sig || list[1] != again {
		t.Errorf("list %+v", list)
	}
	equal(t, must(w.svc.Responses.Get(w.ctx, r.Key())), r, "the response is %+v")
}

// The signed answers are those at the time of the atomic write, whatever was read before, and
// however often decide runs.
func TestSignatureOfChangingAnswers(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	r := w.submitted(&c, answer("a", "old"))
	w.store.twice = true
	w.store.disturb(func(method string, _ int) error {
		if method != "CreateSignature" {
			return nil
		}
		_, err := w.store.Store.UpdateResponse(w.ctx, r.Key(), func(stored *formsvc.Response) (formsvc.Change, error) {
			stored.Answers = formsvc.NewAnswers(answer("a", "new"))
			stored.Version++
			r = *stored
			return formsvc.Change{}, nil
		})
		return err
	})
	sig, err := w.svc.Signatures.Create(w.ctx, r.Key(), formsvc.SignatureInput{Signer: grace()})
	if err != nil || sig.DocumentSHA256 != sha256.Sum256([]byte(`{"a":{"value":["new"]}}`)) {
		t.Errorf("%+v, %v", sig, err)
	}
	w.wantSigned(&sig, &r)
}

func TestSignatureOfFile(t *testing.T) {
	w := newFileWorld(t)
	r := w.response
	f := w.uploaded(pattern(1000))
	sig, err := w.svc.Signatures.Create(w.ctx, r.Key(), formsvc.SignatureInput{Signer: grace(), FileID: f.ID, Provider: "pen"})
	if err != nil || sig.FileID != f.ID || sig.DocumentSHA256 != sha256.Sum256(pattern(1000)) {
		t.Errorf("%+v, %v", sig, err)
	}
	w.wantSigned(&sig, &r)
	if text := `"fileUuid":"` + string(f.ID) + `","provider":"pen"`; !bytes.Contains(sig.AppendJSON(nil), []byte(text)) {
		t.Errorf("%s has no %s", sig.AppendJSON(nil), text)
	}
	c := must(w.svc.Campaigns.Get(w.ctx, formsvc.CampaignKey{AccountID: w.account, ID: r.CampaignID}))
	neighbour := w.submitted(&c)
	for _, x := range []struct {
		of   *formsvc.Response
		file formsvc.ID
	}{{&neighbour, f.ID}, {&r, r.ID}, {&r, "nope"}, {&r, "\x00"}} {
		_, err := w.svc.Signatures.Create(w.ctx, x.of.Key(), formsvc.SignatureInput{Signer: grace(), FileID: x.file})
		wantFaults(t, err, "/fileUuid unknown_file")
	}
	unknown := r.Key()
	unknown.ID = c.ID
	wantError(t, failure(w.svc.Signatures.Create(w.ctx, unknown, formsvc.SignatureInput{Signer: grace(), FileID: f.ID})), formsvc.ErrNotFound)
	equal(t, len(w.signatures(&r)), 1, "%d signatures")
}

func TestCreateSignatureRefusesInvalidInput(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	r := w.submitted(&c)
	long := strings.Repeat("ä", 201)
	for _, x := range []struct {
		in   formsvc.SignatureInput
		want []string
	}{
		{formsvc.SignatureInput{}, []string{"/signer/email required"}},
		{formsvc.SignatureInput{Signer: formsvc.User{Email: "nobody"}}, []string{"/signer/email invalid_email"}},
		{
			formsvc.SignatureInput{
				Signer: formsvc.User{Email: "a b@example.com", FirstName: long, LastName: "\x00"}, FileID: c.ID, Provider: long,
				SignedAt: start().Add(5*time.Minute + time.Millisecond),
			},
			[]string{
				"/signer/email invalid_email", "/signer/firstName too_long", "/signer/lastName nul_not_allowed",
				"/fileUuid unknown_file", "/provider too_long", "/signedAt in_the_future",
			},
		},
		{formsvc.SignatureInput{Signer: grace(), SignedAt: time.Unix(-1, 0)}, []string{"/signedAt out_of_range"}},
		{formsvc.SignatureInput{Signer: grace(), SignedAt: start().AddDate(10_000, 0, 0)}, []string{"/signedAt in_the_future"}},
	} {
		wantFaults(t, failure(w.svc.Signatures.Create(w.ctx, r.Key(), x.in)), x.want...)
	}
	if list := w.signatures(&r); len(list) != 0 || len(w.events()) != 1 {
		t.Errorf("%d signatures, %d events", len(list), len(w.events()))
	}
	ahead := start().Add(5 * time.Minute)
	sig, err := w.svc.Signatures.Create(w.ctx, r.Key(), formsvc.SignatureInput{Signer: grace(), SignedAt: ahead})
	if err != nil || sig.SignedAt != ahead {
		t.Errorf("a clock that is ahead: %+v, %v", sig, err)
	}
}
