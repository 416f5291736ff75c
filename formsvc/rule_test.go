package formsvc_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

// evenOnly is a host's rule: n must be even, and notes that say so are refused.
func evenOnly(_ context.Context, _ *formsvc.Campaign, _, after *formsvc.Response) error {
	answers, err := after.Answers.List()
	for _, a := range answers {
		value := strings.Join(a.Value, "")
		switch {
		case a.Name == "n" && strings.ContainsAny(value, "13579"):
			return &formsvc.ValidationError{Fields: []formsvc.FieldError{{Pointer: "/responses/n/value/0", Code: "odd", Detail: "must be even"}}}
		case value == "refuse":
			return &formsvc.Refusal{Code: "plan_exhausted", Detail: "The plan is used up.", Status: 402}
		case value == "fail":
			return errFrail
		}
	}
	return err
}

func wantRefusal(t *testing.T, err error) {
	t.Helper()
	if refusal, ok := errors.AsType[*formsvc.Refusal](err); !ok || refusal.Code != "plan_exhausted" {
		t.Errorf("%v is no refusal", err)
	}
}

// A host's rule is asked wherever responses are written, and its faults follow the campaign's own.
func TestCheckResponse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *formsvc.Options) { o.CheckResponse = evenOnly })
	c := w.campaign(formsvc.Module{Name: "n"}, formsvc.Module{Name: "url", Type: formsvc.URLModule})
	input := func(n string, more ...formsvc.Answer) formsvc.ResponseInput {
		return formsvc.ResponseInput{User: ada(), Answers: append([]formsvc.Answer{answer("n", n)}, more...)}
	}
	own, odd := "/responses/url/value/0 invalid_url", "/responses/n/value/0 odd"
	for range 2 { // with the campaign cached, too
		wantFaults(t, failure(w.svc.Responses.Create(w.ctx, c.Key(), input("3", answer("url", "no")))), own, odd)
		wantRefusal(t, failure(w.svc.Responses.Create(w.ctx, c.Key(), input("refuse"))))
		wantFaults(t, failure(w.svc.Responses.Create(w.ctx, c.Key(), input("refuse", answer("url", "no")))), own)
		wantError(t, failure(w.svc.Responses.Create(w.ctx, c.Key(), input("fail"))), errFrail)
		must(w.svc.Responses.Create(w.ctx, c.Key(), input("4")))
	}
	wantFaults(t, w.svc.Responses.Check(w.ctx, &c, input("3", answer("url", "no"))), own, odd)
	wantRefusal(t, w.svc.Responses.Check(w.ctx, &c, input("refuse")))
	wantError(t, w.svc.Responses.Check(w.ctx, &c, input("4")), nil)

	r := must(w.svc.Responses.Create(w.ctx, c.Key(), input("6")))
	events := len(w.events())
	set := func(value ...formsvc.Answer) error {
		var patch formsvc.ResponsePatch
		for _, a := range value {
			patch.Answers = append(patch.Answers, formsvc.AnswerPatch{Answer: a})
		}
		_, err := w.svc.Responses.Update(w.ctx, r.Key(), patch)
		return err
	}
	wantFaults(t, set(answer("url", "no"), answer("n", "7")), own, odd)
	wantRefusal(t, set(answer("n", "refuse")))
	wantError(t, set(answer("n", "fail")), errFrail)
	if got := must(w.svc.Responses.Get(w.ctx, r.Key())); got.Version != 1 || len(w.events()) != events {
		t.Errorf("a refused change is stored: %+v", got)
	}
	wantError(t, set(answer("n", "8")), nil)

	row := func(reference, n string) formsvc.ImportRow {
		return formsvc.ImportRow{ResponseInput: input(n), Reference: reference, CreatedAt: start()}
	}
	rows := []formsvc.ImportRow{row("a", "9"), row("b", "20"), row("c", "refuse")}
	report := must(w.svc.Responses.Import(w.ctx, c.Key(), each(rows), nil))
	if report.Imported != 1 || len(report.Faults) != 2 {
		t.Fatalf("%+v", report)
	}
	wantFaults(t, report.Faults[0].Err, odd)
	wantRefusal(t, report.Faults[1].Err)
	wantError(t, failure(w.svc.Responses.Import(w.ctx, c.Key(), each([]formsvc.ImportRow{row("d", "fail")}), nil)), errFrail)
}

func each(rows []formsvc.ImportRow) iter.Seq2[formsvc.ImportRow, error] {
	return func(yield func(formsvc.ImportRow, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	}
}

// A rule sees what is written: if the response changed meanwhile, it is asked again. What it changes in after isn't written.
func TestCheckResponseAgain(t *testing.T) {
	t.Parallel()
	var w *world
	var seen []string
	w = newWorld(t, func(o *formsvc.Options) {
		o.CheckResponse = func(ctx context.Context, _ *formsvc.Campaign, before, after *formsvc.Response) error {
			if before == nil {
				after.Status = "mine"
				return nil
			}
			seen = append(seen, before.Status+" "+before.User.FirstName+" to "+after.Status+" "+after.User.FirstName)
			if len(seen) == 1 {
				name := "Grace"
				must(w.neighbour().Responses.Update(ctx, before.Key(), formsvc.ResponsePatch{FirstName: &name}))
			}
			if after.User.FirstName == "Grace" && after.Status == "refused" {
				return &formsvc.Refusal{Code: "plan_exhausted"}
			}
			return nil
		}
	})
	c := w.campaign()
	r := must(w.svc.Responses.Create(w.ctx, c.Key(), formsvc.ResponseInput{User: ada()}))
	update := func(status string) error {
		_, err := w.svc.Responses.Update(w.ctx, r.Key(), formsvc.ResponsePatch{Status: &status})
		return err
	}
	wantError(t, update("validated"), nil)
	wantRefusal(t, update("refused"))
	wantError(t, update("validated"), nil) // no change, so there is nothing to ask
	want := "pending Ada to validated Ada, pending Grace to validated Grace, validated Grace to refused Grace"
	equal(t, strings.Join(seen, ", "), want, "the rule saw\n%s")
	if got := must(w.svc.Responses.Get(w.ctx, r.Key())); got.Status != "validated" || got.User.FirstName != "Grace" || got.Version != 3 {
		t.Errorf("%+v", got)
	}
}
