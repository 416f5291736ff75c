package formsvc_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

func sizes(places map[string]int) formsvc.Module {
	return formsvc.Module{Name: "size", Type: formsvc.ChoiceModule, Multiple: true, Options: []string{"s", "m", "l"}, Places: places}
}

func TestLimitsAreChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text := sizes(map[string]int{"s": 1})
	text.Type, text.Options = formsvc.TextModule, nil
	for _, x := range []struct {
		in   formsvc.CampaignInput
		want []string
	}{
		{formsvc.CampaignInput{Form: formsvc.Form{MaxResponses: 1_000_000, OncePerEmail: true}, TimeZone: "Europe/Berlin"}, nil},
		{formsvc.CampaignInput{Form: formsvc.Form{MaxResponses: -1}}, []string{"/form/maxResponses out_of_range"}},
		{formsvc.CampaignInput{Form: formsvc.Form{MaxResponses: 1_000_001}}, []string{"/form/maxResponses out_of_range"}},
		{formsvc.CampaignInput{Form: formsvc.Form{OncePerEmail: true}, EmailOptional: true}, []string{"/form/oncePerEmail invalid_value"}},
		{formsvc.CampaignInput{TimeZone: "Berlin"}, []string{"/timeZone unknown_time_zone"}},
		{formsvc.CampaignInput{TimeZone: "Local"}, []string{"/timeZone unknown_time_zone"}},
		{formsvc.CampaignInput{Modules: []formsvc.Module{text}}, []string{"/modules/0/places not_applicable"}},
		{formsvc.CampaignInput{Modules: []formsvc.Module{sizes(map[string]int{"m": 0, "s": 1_000_001, "xl/": 3})}}, []string{
			"/modules/0/places/m out_of_range", "/modules/0/places/s out_of_range", "/modules/0/places/xl~1 unknown_option",
		}},
		{formsvc.CampaignInput{Modules: []formsvc.Module{sizes(map[string]int{})}}, nil},
	} {
		x.in.Title = "Limits"
		wantFaults(t, w.svc.Campaigns.Check(x.in), x.want...)
	}
}

// Every way to get a place asks for it, and every way to lose one frees it at once.
func TestPlaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := must(w.svc.Campaigns.Create(w.ctx, w.account, formsvc.CampaignInput{
		Title: "Party", Form: formsvc.Form{MaxResponses: 3, OncePerEmail: true}, Modules: []formsvc.Module{sizes(map[string]int{"s": 1, "m": 2})},
	}))
	send := func(email string, held formsvc.HoldReason, values ...string) (formsvc.Response, error) {
		return w.svc.Responses.Create(w.ctx, c.Key(), formsvc.ResponseInput{
			User: formsvc.User{Email: email}, Held: held, Answers: []formsvc.Answer{{Name: "size", Value: values}},
		})
	}
	left := func(all, s, m int64) {
		t.Helper()
		got := must(w.svc.Responses.Places(w.ctx, &c))
		if got[formsvc.Limited{}] != all || got[formsvc.Limited{Module: "size", Value: "s"}] != s || got[formsvc.Limited{Module: "size", Value: "m"}] != m || len(got) != 3 {
			t.Errorf("left: %v, want %d, %d and %d", got, all, s, m)
		}
	}
	a := must(send("a@example.com", "", "s", "s", "l"))
	left(2, 0, 2)
	_, err := send("A@EXAMPLE.com", "", "m")
	wantError(t, err, formsvc.ErrAlreadyAnswered)
	wantFaults(t, err, "/user/email already_answered")
	_, err = send("b@example.com", "", "l", "m", "s")
	wantError(t, err, formsvc.ErrChoiceFull)
	wantFaults(t, err, "/responses/size/value/2 choice_full")
	spam := must(send("a@example.com", formsvc.HeldTrap, "s"))
	b := must(send("b@example.com", "", "m"))
	left(1, 0, 1)
	release := func() error { return failure(w.update(&spam, formsvc.ResponsePatch{Status: new("pending")})) }
	wantError(t, release(), formsvc.ErrAlreadyAnswered)
	wantError(t, failure(w.update(&b, formsvc.ResponsePatch{Email: new("A@example.com")})), formsvc.ErrAlreadyAnswered)
	wantError(t, failure(w.update(&b, formsvc.ResponsePatch{Answers: []formsvc.AnswerPatch{set("size", "s")}})), formsvc.ErrChoiceFull)
	w.updated(&a, formsvc.ResponsePatch{Email: new("A@example.com"), Answers: []formsvc.AnswerPatch{set("size", "s", "m")}}) // what it has isn't asked for
	left(1, 0, 0)
	w.updated(&a, formsvc.ResponsePatch{Email: new("x@example.com"), Answers: []formsvc.AnswerPatch{set("size", "l")}})
	wantError(t, release(), nil)
	left(0, 0, 1)
	_, err = send("d@example.com", "")
	wantError(t, err, formsvc.ErrCampaignFull)
	w.updated(&spam, formsvc.ResponsePatch{Status: new("spam")})
	left(1, 1, 1)
	wantError(t, w.svc.Responses.Delete(w.ctx, b.Key(), nil), nil)
	left(2, 1, 2)
	rows := func(yield func(formsvc.ImportRow, error) bool) {
		for _, reference := range []string{"1", "2", "3"} {
			row := formsvc.ImportRow{Reference: reference, CreatedAt: start().Add(-time.Hour)}
			row.User.Email, row.Answers = "old@example.com", []formsvc.Answer{answer("size", "m")}
			if !yield(row, nil) {
				return
			}
		}
	}
	if report, err := w.svc.Responses.Import(w.ctx, c.Key(), rows, nil); err != nil || report.Imported != 3 {
		t.Errorf("imported %+v, %v", report, err)
	}
	left(0, 1, 0)
	old := must(w.svc.Responses.List(w.ctx, formsvc.ResponseQuery{AccountID: w.account, CampaignID: c.ID, Page: formsvc.PageQuery{Ascending: true}})).Items[0]
	w.updated(&old, formsvc.ResponsePatch{FirstName: new("Ada")}) // one of three at a choice for two
	must(w.svc.Accounts.ErasePerson(w.ctx, w.account, "old@example.com"))
	left(2, 1, 2)
}

// A change that began before a limit was set counts: it is checked against the campaign as it is then.
func TestLimitIsSetDuringAChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.campaign(sizes(nil))
	r, other := w.submitted(&c, answer("size", "m")), w.submitted(&c, answer("size", "m"))
	w.store.disturb(func(method string, call int) error {
		if method == "UpdateResponse" && call == 1 {
			c.Modules[0].Places = map[string]int{"s": 1}
			c = must(w.svc.Campaigns.Replace(w.ctx, c.Key(), c.CampaignInput))
		}
		return nil
	})
	toS := formsvc.ResponsePatch{Answers: []formsvc.AnswerPatch{set("size", "s")}}
	w.updated(&r, toS)
	wantError(t, failure(w.update(&other, toS)), formsvc.ErrChoiceFull)
}

// A limit that is set later counts what is there, and one that changes its number keeps it.
func TestLimitsAreSetLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.campaign(sizes(nil))
	w.submitted(&c, answer("size", "s"))
	w.submitted(&c, answer("size", "s"))
	for _, x := range []struct {
		form   formsvc.Form
		places map[string]int
		want   error
	}{
		{formsvc.Form{}, map[string]int{"m": 1}, nil},
		{formsvc.Form{}, map[string]int{"s": 3}, formsvc.ErrChoiceFull}, // three are there
		{formsvc.Form{}, map[string]int{"s": 4}, nil},
		{formsvc.Form{MaxResponses: 4}, nil, formsvc.ErrCampaignFull},
		{formsvc.Form{MaxResponses: 5}, nil, nil},
		{formsvc.Form{OncePerEmail: true}, nil, formsvc.ErrAlreadyAnswered},
		{formsvc.Form{}, nil, nil},
	} {
		in := c.CampaignInput
		in.Form, in.Modules = x.form, slices.Clone(in.Modules)
		in.Modules[0].Places = x.places
		c = must(w.svc.Campaigns.Replace(w.ctx, c.Key(), in))
		if _, err := w.submit(&c, answer("size", "s")); !errors.Is(err, x.want) {
			t.Errorf("with %+v and places %v: %v, want %v", x.form, x.places, err, x.want)
		}
	}
}
