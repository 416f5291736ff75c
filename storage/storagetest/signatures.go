package storagetest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

func signatureTests() []test {
	return []test{
		{"every field is kept", testSignatureMembers},
		{"times are kept to the microsecond", testSignatureTimes},
		{"texts are kept byte for byte", testSignatureTexts},
		{"invalid texts are refused", testRefusedSignatures},
		{"taken ID is refused", testSignatureTaken},
		{"the change commits with the signature", testSignatureChange},
		{"taken key is refused", testSignatureRepeated},
		{"decide gets the response and sets the hash", testSignatureDecideSees},
		{"error of decide leaves nothing", testSignatureDecideFails},
		{"deleted with their response", testDeletedSignatures},
		{"none is left without a response", testNoStraySignatures},
		{"signatures by address", testSignaturesBy},
		{"pages of signatures by address", testPagesOfSignaturesBy},
	}
}

func (w *world) newSignature(r *formsvc.Response) formsvc.Signature {
	id, at := w.next()
	return formsvc.Signature{
		ID: id, AccountID: r.AccountID, CampaignID: r.CampaignID, ResponseID: r.ID,
		Signer:   formsvc.User{Email: "grace@example.com", FirstName: "Grace", LastName: "Hopper"},
		Provider: "pen", DocumentSHA256: sha256.Sum256([]byte(id)), SignedAt: at.Add(-time.Hour), CreatedAt: at,
	}
}

// createSignature stores a signature, with events.
func (w *world) createSignature(sig formsvc.Signature, events ...formsvc.Event) error {
	_, err := w.store.CreateSignature(w.ctx, sig, func(*formsvc.Response, *formsvc.Signature) (formsvc.Change, error) {
		return formsvc.Change{Events: events}, nil
	})
	return err
}

// addSignature adds a signature that raises no event.
func (w *world) addSignature(r *formsvc.Response) formsvc.Signature {
	w.Helper()
	sig := w.newSignature(r)
	w.must("CreateSignature", w.createSignature(sig))
	return sig
}

func (w *world) signatures(r *formsvc.Response) []formsvc.Signature {
	w.Helper()
	return all(w, "Signatures", func(sig *formsvc.Signature) formsvc.ID { return sig.ID },
		func(q formsvc.PageQuery) (formsvc.Page[formsvc.Signature], error) {
			return w.store.Signatures(w.ctx, formsvc.SignatureQuery{
				AccountID: r.AccountID, CampaignID: r.CampaignID, ResponseID: r.ID, Page: q,
			})
		})
}

// signatureLister lists the signatures of a new response. Another response has signatures too.
func (w *world) signatureLister(c *formsvc.Campaign) lister {
	w.Helper()
	r, _ := w.addResponse(c)
	other, _ := w.addResponse(c)
	return lister{
		name: "Signatures",
		add: func(id formsvc.ID) formsvc.ID {
			sig := w.newSignature(&r)
			sig.ID = id
			w.check("CreateSignature", w.createSignature(sig))
			w.check("CreateSignature", w.createSignature(w.newSignature(&other)))
			return id
		},
		fetch: func(q formsvc.PageQuery) ([]formsvc.ID, int64, bool, error) {
			page, err := w.store.Signatures(w.ctx, formsvc.SignatureQuery{
				AccountID: r.AccountID, CampaignID: r.CampaignID, ResponseID: r.ID, Page: q,
			})
			return ids(&page, func(sig *formsvc.Signature) formsvc.ID { return sig.ID }), page.Total, page.More, err
		},
	}
}

func testSignatureMembers(w *world) {
	c := w.addCampaign(w.addAccount().ID)
	r, _ := w.addResponse(&c)
	if list := w.signatures(&r); len(list) != 0 {
		w.Errorf("%d signatures of a new response", len(list))
	}
	plain, ofFile, bare := w.newSignature(&r), w.newSignature(&r), w.newSignature(&r)
	ofFile.FileID = w.addFile(&r).ID
	bare.Provider, bare.Signer, bare.DocumentSHA256 = "", formsvc.User{Email: "b@example.com"}, [32]byte{}
	want := []formsvc.Signature{plain, ofFile, bare}
	for _, sig := range want {
		got, err := w.store.CreateSignature(w.ctx, sig, func(*formsvc.Response, *formsvc.Signature) (formsvc.Change, error) {
			return formsvc.Change{}, nil
		})
		w.must("CreateSignature", err)
		w.same("signature as created", got, sig)
	}
	w.same("signatures", w.signatures(&r), want)
	got, err := w.store.Response(w.ctx, keyOf(&r))
	w.must("Response", err)
	w.same("the response with signatures", got, r)
}

func testSignatureTimes(w *world) {
	c := w.addCampaign(w.addAccount().ID)
	r, _ := w.addResponse(&c)
	sig := w.newSignature(&r)
	sig.CreatedAt = time.Date(2026, 7, 1, 1, 2, 3, 999_999_999, time.FixedZone("east", 5*3600+1800))
	sig.SignedAt = time.Date(1970, 1, 1, 0, 0, 0, 1_999, time.FixedZone("west", -8*3600))
	got, err := w.store.CreateSignature(w.ctx, sig, func(*formsvc.Response, *formsvc.Signature) (formsvc.Change, error) {
		return formsvc.Change{}, nil
	})
	w.must("CreateSignature", err)
	sig.CreatedAt = time.Date(2026, 6, 30, 19, 32, 3, 999_999_000, time.UTC)
	sig.SignedAt = time.Date(1970, 1, 1, 8, 0, 0, 1_000, time.UTC)
	w.same("signature as created", got, sig)
	w.same("signatures", w.signatures(&r), []formsvc.Signature{sig})
}

func testSignatureTexts(w *world) {
	sc := w.addScene()
	r, _ := w.addResponse(&sc.campaign)
	var want []formsvc.Signature
	for _, text := range append(texts(), strings.Repeat("𝕏", 10_000)) {
		sig := w.newSignature(&r)
		sig.Signer = formsvc.User{Email: text, FirstName: text + "x", LastName: "x" + text}
		sig.Provider = text + text
		w.must("CreateSignature", w.createSignature(sig))
		want = append(want, sig)
	}
	w.same("signatures", w.signatures(&r), want)
	for i := range want {
		email := want[i].Signer.Email
		var same []formsvc.Signature
		for j := range want {
			if formsvc.SameEmail(want[j].Signer.Email, email) {
				same = append(same, want[j])
			}
		}
		got, err := signaturesBy(w.ctx, w.store, sc.account.ID, email, "", 1_000)
		w.must("SignaturesBy", err)
		w.same("signatures by "+show(email), got, same)
	}
}

func testRefusedSignatures(w *world) {
	sc := w.addScene()
	r, _ := w.addResponse(&sc.campaign)
	create := func(set func(*formsvc.Signature)) error {
		sig := w.newSignature(&r)
		set(&sig)
		return w.createSignature(sig, w.newEvent(&r))
	}
	w.refuses(map[string]func(string) error{
		"CreateSignature: email":      func(s string) error { return create(func(g *formsvc.Signature) { g.Signer.Email = s }) },
		"CreateSignature: first name": func(s string) error { return create(func(g *formsvc.Signature) { g.Signer.FirstName = s }) },
		"CreateSignature: last name":  func(s string) error { return create(func(g *formsvc.Signature) { g.Signer.LastName = s }) },
		"CreateSignature: provider":   func(s string) error { return create(func(g *formsvc.Signature) { g.Provider = s }) },
		"CreateSignature: file":       func(s string) error { return create(func(g *formsvc.Signature) { g.FileID = formsvc.ID(s) }) },
		"CreateSignature: event type": func(s string) error {
			e := w.newEvent(&r)
			e.Type = formsvc.EventType(s)
			return w.createSignature(w.newSignature(&r), w.newEvent(&r), e)
		},
		"SignaturesBy": func(s string) error {
			_, err := signaturesBy(w.ctx, w.store, sc.account.ID, s, "", 10)
			return err
		},
	})
	for _, id := range notIDs() {
		if id == "" { // no file
			continue
		}
		err := create(func(g *formsvc.Signature) { g.FileID = id })
		w.wantError(fmt.Sprintf("CreateSignature with the file %q", id), err, formsvc.ErrInvalid)
	}
}

func testSignatureTaken(w *world) {
	mine, others := w.addScene(), w.addScene()
	r, _ := w.addResponse(&mine.campaign)
	second, _ := w.addResponse(&mine.campaign)
	third, _ := w.addResponse(&others.campaign)
	taken := w.addSignature(&r)
	before := w.snapshot()
	for _, r := range []*formsvc.Response{&r, &second, &third} {
		sig, e := w.newSignature(r), w.newEvent(r)
		sig.ID = taken.ID
		w.wantError("CreateSignature with a taken ID", w.createSignature(sig, e), formsvc.ErrConflict)
		w.noEvents("CreateSignature with a taken ID", e)
	}
	w.unchanged("CreateSignature with a taken ID", &before)
}

func testSignatureChange(w *world) {
	sc := w.addScene()
	r, first := w.addResponse(&sc.campaign)
	sig, events := w.newSignature(&r), w.eventsOfAllTypes(&r)
	record := w.newRecord(sc.account.ID, "k")
	_, err := w.store.CreateSignature(w.ctx, sig, func(*formsvc.Response, *formsvc.Signature) (formsvc.Change, error) {
		return formsvc.Change{Events: events, Idempotency: record}, nil
	})
	w.must("CreateSignature", err)
	w.same("signatures", w.signatures(&r), []formsvc.Signature{sig})
	w.wantHeard([]formsvc.Webhook{sc.hook}, append(events, first))
	w.wantRecalled("CreateSignature", record, nil)
	if claims := w.claim(nextDay()); len(claims) != len(events)+1 {
		w.Errorf("%d claims, want %d", len(claims), len(events)+1)
	}

	// As with a file: a transaction that breaks leaves nothing.
	before := w.snapshot()
	again, fresh := w.newSignature(&r), w.newEvent(&r)
	if err := w.createSignature(again, fresh, first); err != nil {
		w.unchanged("CreateSignature with an event that exists", &before)
		w.noEvents("CreateSignature with an event that exists", fresh)
	}
}

func testSignatureRepeated(w *world) {
	sc := w.addScene()
	r, _ := w.addResponse(&sc.campaign)
	taken := w.addSignature(&r)
	record := w.newRecord(sc.account.ID, "k")
	w.must("Remember", remember(w.ctx, w.store, *record))
	before := w.snapshot()
	for _, id := range []formsvc.ID{w.nextID(), taken.ID} {
		sig, e := w.newSignature(&r), w.newEvent(&r)
		sig.ID = id
		_, err := w.store.CreateSignature(w.ctx, sig, func(*formsvc.Response, *formsvc.Signature) (formsvc.Change, error) {
			return formsvc.Change{Events: []formsvc.Event{e}, Idempotency: w.newRecord(sc.account.ID, "k")}, nil
		})
		w.wantError("CreateSignature, again", err, formsvc.ErrRepeated)
		w.noEvents("CreateSignature, again", e)
	}
	w.unchanged("CreateSignature, again", &before)
	w.wantRecalled("CreateSignature, again", record, nil)
}

// testSignatureDecideSees has decide change everything that it gets; the store keeps only the hash.
func testSignatureDecideSees(w *world) {
	sc := w.addScene()
	r, _ := w.addResponse(&sc.campaign)
	w.must("update", incrementResponse(w, w.store, &r))
	want, err := w.store.Response(w.ctx, keyOf(&r))
	w.must("Response", err)
	before := w.snapshot()
	sig := w.newSignature(&r)
	sum := sha256.Sum256([]byte("what was signed"))
	got, err := w.store.CreateSignature(w.ctx, sig, func(r *formsvc.Response, given *formsvc.Signature) (formsvc.Change, error) {
		w.same("response", *r, want)
		w.same("signature", *given, sig)
		r.Status, r.User.LastName = "spoiled", "spoiled"
		r.Version++
		*given = formsvc.Signature{ID: w.nextID(), Provider: "spoiled", DocumentSHA256: sum}
		return formsvc.Change{}, nil
	})
	w.must("CreateSignature", err)
	sig.DocumentSHA256 = sum
	w.same("signature as created", got, sig)
	before.Signatures[r.ID] = []formsvc.Signature{sig}
	w.unchanged("CreateSignature whose function changed everything", &before)
}

func testSignatureDecideFails(w *world) {
	sc := w.addScene()
	r, _ := w.addResponse(&sc.campaign)
	before := w.snapshot()
	sig := w.newSignature(&r)
	var event formsvc.Event
	for _, want := range []error{errors.New("refused"), formsvc.ErrStale, formsvc.ErrNotFound} {
		_, err := w.store.CreateSignature(w.ctx, sig, func(r *formsvc.Response, given *formsvc.Signature) (formsvc.Change, error) {
			given.DocumentSHA256 = [32]byte{1}
			r.Version++
			event = w.newEvent(r)
			return formsvc.Change{Events: []formsvc.Event{event}}, want
		})
		w.wantError("CreateSignature", err, want)
		w.noEvents("CreateSignature whose function failed", event)
	}
	w.unchanged("CreateSignature whose function failed", &before)
	w.must("CreateSignature with the ID of one that failed", w.createSignature(sig))
}

func testDeletedSignatures(w *world) {
	sc := w.addScene()
	second := w.addCampaign(sc.account.ID)
	r, _ := w.addResponse(&sc.campaign)
	neighbour, _ := w.addResponse(&sc.campaign)
	elsewhere, _ := w.addResponse(&second)
	gone := []formsvc.Signature{w.addSignature(&r), w.addSignature(&r)}
	kept := []formsvc.Signature{w.addSignature(&neighbour), w.addSignature(&elsewhere)}
	_, err := w.store.DeleteResponse(w.ctx, keyOf(&r), nil)
	w.must("DeleteResponse", err)
	_, err = w.store.Signatures(w.ctx, formsvc.SignatureQuery{AccountID: r.AccountID, CampaignID: r.CampaignID, ResponseID: r.ID})
	w.wantError("Signatures of what was deleted", err, formsvc.ErrNotFound)
	w.wantError("CreateSignature of what was deleted", w.createSignature(w.newSignature(&r)), formsvc.ErrNotFound)
	got, err := signaturesBy(w.ctx, w.store, sc.account.ID, kept[0].Signer.Email, "", 100)
	w.must("SignaturesBy", err)
	w.same("signatures that are left", got, kept)
	w.must("CreateSignature with the ID of one that went", w.createSignature(
		formsvc.Signature{ID: gone[0].ID, AccountID: kept[0].AccountID, CampaignID: kept[0].CampaignID, ResponseID: kept[0].ResponseID}))
}

// testNoStraySignatures adds signatures to a response that is being deleted.
func testNoStraySignatures(w *world) {
	w.besideDeletion(func(r *formsvc.Response) error {
		return w.createSignature(w.newSignature(r), w.newEvent(r))
	}, func(r *formsvc.Response) int {
		list, err := signaturesBy(w.ctx, w.store, r.AccountID, "grace@example.com", "", 100)
		w.must("SignaturesBy", err)
		return len(list)
	})
}

func testSignaturesBy(w *world) {
	mine, others := w.addScene(), w.addScene()
	second := w.addCampaign(mine.account.ID)
	all := map[string][]formsvc.Signature{}
	addresses := []string{
		"ada@example.com", "ADA@Example.COM", "aDa@eXample.com", "ada@example.co", "ada@example.comm", "Äda@example.com",
		"äda@example.com", "ada%@example.com", "ad_@example.com", "\u212Aurt@example.com", "kurt@example.com", " ada@example.com",
	}
	for _, address := range addresses {
		for _, c := range []*formsvc.Campaign{&mine.campaign, &second, &others.campaign} {
			r, _ := w.addResponse(c)
			sig := w.newSignature(&r)
			sig.Signer.Email = address
			w.must("CreateSignature", w.createSignature(sig))
			if c.AccountID == mine.account.ID {
				for _, asked := range addresses {
					if formsvc.SameEmail(asked, address) {
						all[asked] = append(all[asked], sig)
					}
				}
			}
		}
	}
	if len(all["ada@example.com"]) != 6 || len(all["äda@example.com"]) != 2 || len(all["kurt@example.com"]) != 2 {
		w.Fatalf("SameEmail says something else: %d, %d, %d", len(all["ada@example.com"]), len(all["äda@example.com"]), len(all["kurt@example.com"]))
	}
	for _, asked := range append(addresses, "nobody@example.com", "%") {
		got, err := signaturesBy(w.ctx, w.store, mine.account.ID, asked, "", 100)
		w.must("SignaturesBy", err)
		w.same("signatures by "+asked, got, all[asked])
	}
}

// testPagesOfSignaturesBy adds signatures in random order.
func testPagesOfSignaturesBy(w *world) {
	sc := w.addScene()
	r, _ := w.addResponse(&sc.campaign)
	var want []formsvc.Signature
	for range 12 {
		want = append(want, w.newSignature(&r))
	}
	for i := range want { // 0, 5, 10, 3, 8, …
		w.must("CreateSignature", w.createSignature(want[i*5%len(want)]))
		other := w.newSignature(&r)
		other.Signer.Email = "other@example.com"
		w.must("CreateSignature", w.createSignature(other))
	}
	for _, limit := range []int{1, 5, 11, 12, 13, 5_000} {
		for skip := range len(want) + 1 {
			after := formsvc.ID("")
			if skip > 0 {
				after = want[skip-1].ID
			}
			got, err := signaturesBy(w.ctx, w.store, sc.account.ID, "Grace@example.com", after, limit)
			w.must("SignaturesBy", err)
			end := min(skip+limit, len(want))
			w.same(fmt.Sprintf("%d signatures after %d", limit, skip), got, want[skip:end])
		}
	}
}
