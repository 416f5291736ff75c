package formsvc_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

func TestResponseUser(t *testing.T) {
	long := strings.Repeat("ж", 200)
	w := newWorld(t)
	campaign := w.campaign()
	r := w.submitted(&campaign)
	for _, c := range []struct {
		user formsvc.User
		want []string
	}{
		{formsvc.User{Email: "a@b", FirstName: long, LastName: long}, nil},
		{formsvc.User{}, []string{"/user/email required"}},
		{formsvc.User{Email: "ada"}, []string{"/user/email invalid_email"}},
		{formsvc.User{Email: "a@b", FirstName: long + "x", LastName: "x" + long}, []string{
			"/user/firstName too_long", "/user/lastName too_long",
		}},
		{formsvc.User{Email: " ", FirstName: "\x00", LastName: "\xff"}, []string{
			"/user/email invalid_email", "/user/firstName nul_not_allowed", "/user/lastName invalid_utf8",
		}},
	} {
		w.store.disturb(nil)
		_, err := w.svc.Responses.Create(w.ctx, campaign.Key(), formsvc.ResponseInput{User: c.user})
		wantFaults(t, err, c.want...)
		if n := w.store.count("CreateResponse"); (n > 0) != (c.want == nil) {
			t.Errorf("the store was told %d times", n)
		}
		_, err = w.update(&r, formsvc.ResponsePatch{Email: &c.user.Email, FirstName: &c.user.FirstName, LastName: &c.user.LastName})
		wantFaults(t, err, c.want...)
	}
}

func numberedAnswers(n int) []formsvc.Answer {
	list := make([]formsvc.Answer, n)
	for i := range list {
		list[i] = answer(fmt.Sprintf("%04d", i), "x")
	}
	return list
}

func TestResponseAnswers(t *testing.T) {
	long := strings.Repeat("ж", 200)
	w := newWorld(t)
	campaign := w.campaign()
	for _, c := range []struct {
		answers []formsvc.Answer
		want    []string
	}{
		{numberedAnswers(1_000), nil},
		{numberedAnswers(1_001), []string{"/responses too_many"}},
		{[]formsvc.Answer{answer("a", strings.Repeat("x", formsvc.MaxAnswersSize))}, []string{"/responses too_large"}},
		{[]formsvc.Answer{answer(long)}, nil},
		// An invalid name is reported once, and not in the pointer, which would be as long as the input.
		{[]formsvc.Answer{
			answer(long + "x"), answer(strings.Repeat("x", 1_000_000)), answer("a\x00b"), answer("\xff"), answer(""), answer("a", "\x00"),
		}, []string{
			"/responses too_long", "/responses too_long", "/responses nul_not_allowed", "/responses invalid_utf8", "/responses/ required",
			"/responses/a/value/0 nul_not_allowed",
		}},
		{[]formsvc.Answer{answer("a/b", "x", "\x00", "~\xff")}, []string{
			"/responses/a~1b/value/1 nul_not_allowed", "/responses/a~1b/value/2 invalid_utf8",
		}},
		{[]formsvc.Answer{answer("a~"), answer("A~"), answer("a~"), answer("a~")}, []string{
			"/responses/a~0 duplicate", "/responses/a~0 duplicate",
		}},
		{append(numberedAnswers(20), answer("0007"), answer("0019", "\xff")), []string{
			"/responses/0007 duplicate", "/responses/0019 duplicate", "/responses/0019/value/0 invalid_utf8",
		}},
	} {
		wantFaults(t, failure(w.submit(&campaign, c.answers...)), c.want...)
	}
}

// All faults of user, names and answers are reported: first those that don't depend on the campaign.
func TestAllResponseFaultsAreReported(t *testing.T) {
	w := newWorld(t)
	c := w.campaign(formsvc.Module{Name: "n", Type: formsvc.NumberModule})
	in := formsvc.ResponseInput{User: formsvc.User{FirstName: "\x00"}, Answers: []formsvc.Answer{
		answer("n", "x"), answer("n", "\x00"), answer("other"),
	}}
	for range 2 { // the second time with a cached campaign
		_, err := w.svc.Responses.Create(w.ctx, c.Key(), in)
		wantFaults(t, err,
			"/user/firstName nul_not_allowed", "/responses/n duplicate", "/responses/n/value/0 nul_not_allowed",
			"/user/email required", "/responses/n/value/0 invalid_number",
			"/responses/n/value/0 invalid_number", "/responses/other unknown_module")
	}
	equal(t, len(w.store.take()), 0, "%d events of a refused response")
}

func TestFaultsNeverRepeatValues(t *testing.T) {
	w := newWorld(t)
	const secret = "canary@"
	c := w.campaign(
		formsvc.Module{Name: "a", Type: formsvc.NumberModule}, formsvc.Module{Name: "b", Type: formsvc.DateModule},
		formsvc.Module{Name: "c", Type: formsvc.ChoiceModule, Options: []string{"x"}},
		formsvc.Module{Name: "d", MaxLength: 1}, formsvc.Module{Name: "e", Type: formsvc.EmailModule},
	)
	_, err := w.svc.Responses.Create(w.ctx, c.Key(), formsvc.ResponseInput{
		User: formsvc.User{Email: secret, FirstName: secret + "\x00"}, Answers: []formsvc.Answer{
			answer("a", secret), answer("b", secret), answer("c", secret), answer("d", secret), answer("e", secret),
		},
	})
	equal(t, len(faults(err)), 7, "%d faults")
	if err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("got %v", err)
	}
}

// A campaign opens and closes by the clock, even if it is cached.
func TestCachedCampaignOpensAndCloses(t *testing.T) {
	w := newWorld(t)
	c := must(w.svc.Campaigns.Create(w.ctx, w.account, formsvc.CampaignInput{
		Title: "x", OpensAt: start().Add(time.Second), ClosesAt: start().Add(2 * time.Second),
	}))
	for _, x := range []struct {
		after time.Duration
		want  error
	}{
		{0, formsvc.ErrCampaignClosed}, {time.Second - 1, formsvc.ErrCampaignClosed}, {time.Second, nil}, {2*time.Second - 1, nil},
		{2 * time.Second, formsvc.ErrCampaignClosed},
	} {
		w.clock.set(start().Add(x.after))
		wantError(t, failure(w.submit(&c)), x.want)
	}
	// Faults of the answers are reported first.
	wantFaults(t, failure(w.submit(&c, answer(""))), "/responses/ required")
	w.clock.set(start().Add(time.Second))
	for _, in := range []formsvc.CampaignInput{
		{Title: "x", Status: formsvc.CampaignClosed, OpensAt: start()}, {Title: "x", OpensAt: start()}, {Title: "x", ClosesAt: start().Add(time.Hour)},
	} {
		c = must(w.svc.Campaigns.Replace(w.ctx, c.Key(), in))
		if _, err := w.submit(&c); errors.Is(err, formsvc.ErrCampaignClosed) != (in.Status == formsvc.CampaignClosed) {
			t.Errorf("%+v: %v", in, err)
		}
	}
}

func TestClamped(t *testing.T) {
	type query = formsvc.PageQuery
	for _, c := range []struct{ in, want query }{
		{query{}, query{Limit: 50}},
		{query{Limit: -1, Offset: -1}, query{Limit: 50}},
		{query{Limit: 1, Offset: 7, Ascending: true}, query{Limit: 1, Offset: 7, Ascending: true}},
		{query{Limit: 1_000}, query{Limit: 1_000}},
		{query{Limit: 1_001}, query{Limit: 1_000}},
		{query{Limit: 5, Offset: 7, After: "x"}, query{Limit: 5, After: "x"}},
	} {
		equal(t, c.in.Clamped(), c.want, "%+v becomes %+v", c.in)
	}
}
