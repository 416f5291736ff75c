package formsvc_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

func iban(value string) error {
	if !strings.HasPrefix(value, "DE") {
		return errors.New("must be a German IBAN")
	}
	return nil
}

func withIBAN(o *formsvc.Options) {
	o.Formats = map[string]formsvc.Format{"iban": {Check: iban}, "size": {Type: formsvc.NumberModule}}
}

// A format is checked after the type, in answers, defaults and conditions.
func TestFormats(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withIBAN)
	_, err := w.svc.Campaigns.Create(w.ctx, w.account, formsvc.CampaignInput{Title: "t", Modules: []formsvc.Module{
		{Name: "a", Format: "iban", Default: []string{"FR1"}},
		{Name: "b", Format: "bic"},
		{Name: "c", Format: "size"},
		{Name: "d", Default: []string{"x", "y"}},
		{Name: "e", Type: formsvc.FileModule, Default: []string{"x"}},
		{Name: "f", Type: formsvc.NumberModule, Default: []string{"x\x00"}},
		{Name: "g", ShowIf: &formsvc.Condition{Module: "a", Equals: []string{"FR2"}}},
	}})
	wantFaults(t, err, "/modules/0/default/0 invalid_iban", "/modules/1/format unknown_value", "/modules/2/format not_applicable",
		"/modules/3/default too_many", "/modules/4/default not_applicable", "/modules/5/default/0 nul_not_allowed", "/modules/5/default/0 invalid_number",
		"/modules/6/showIf/equals/0 impossible")
	c := w.campaign(formsvc.Module{Name: "a", Format: "iban", MaxLength: 4, Multiple: true, Default: []string{"DE1", "DE2"}})
	create := func(svc *formsvc.Service, value ...string) (formsvc.Response, error) {
		return svc.Responses.Create(w.ctx, c.Key(), formsvc.ResponseInput{User: ada(), Answers: []formsvc.Answer{answer("a", value...)}})
	}
	wantFaults(t, failure(create(w.svc, "DE1", "FR1", "FRANCE", "")), "/responses/a/value/1 invalid_iban", "/responses/a/value/2 too_long")
	r := must(create(w.svc, "DE1"))
	_, err = w.update(&r, formsvc.ResponsePatch{Answers: []formsvc.AnswerPatch{{Answer: answer("a", "FR1")}}})
	wantFaults(t, err, "/responses/a/value/0 invalid_iban")
	must(create(w.neighbour(), "FR1")) // whose options have no such format
}

func TestBadHostOptions(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]formsvc.Options{
		"lower-case":        {Formats: map[string]formsvc.Format{"IBAN": {}}},
		"unknown type":      {Formats: map[string]formsvc.Format{"iban": {Type: "bank"}}},
		`type "file"`:       {Formats: map[string]formsvc.Format{"iban": {Type: formsvc.FileModule}}},
		"must have a name":  {Workflows: map[string]*formsvc.Workflow{"": {}}},
		`workflow "grants"`: {Workflows: map[string]*formsvc.Workflow{"grants": {Statuses: []string{" "}}}},
	} {
		if _, err := formsvc.New(newWorld(t).store, &o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A campaign's workflow decides about its responses alone, and the usual one once it is gone.
func TestWorkflowsByName(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *formsvc.Options) {
		o.Workflows = map[string]*formsvc.Workflow{"grants": {Statuses: []string{"granted"}, Final: []string{"granted"}}}
	})
	in := formsvc.CampaignInput{Title: "t", Workflow: "loans"}
	wantFaults(t, failure(w.svc.Campaigns.Create(w.ctx, w.account, in)), "/workflow unknown_value")
	in.Workflow = "grants"
	c := must(w.svc.Campaigns.Create(w.ctx, w.account, in))
	create := func(c *formsvc.Campaign) formsvc.Response {
		return must(w.svc.Responses.Create(w.ctx, c.Key(), formsvc.ResponseInput{User: ada()}))
	}
	r, plain := create(&c), w.campaign()
	other := create(&plain)
	wantFaults(t, failure(w.update(&r, formsvc.ResponsePatch{Status: new("completed")})), "/status unknown_status")
	if got := w.updated(&r, formsvc.ResponsePatch{Status: new("granted")}); got.CompletedAt.IsZero() {
		t.Errorf("%+v isn't final", got)
	}
	if got := w.updated(&other, formsvc.ResponsePatch{Status: new("granted")}); !got.CompletedAt.IsZero() {
		t.Errorf("%+v is final", got)
	}
	if next, others := w.svc.Responses.Statuses(&c, "pending"); len(next) != 1 || others {
		t.Errorf("%q, %v", next, others)
	}
	row := formsvc.ImportRow{ResponseInput: formsvc.ResponseInput{User: ada()}, Reference: "old", CreatedAt: start(), Status: "completed"}
	report := must(w.svc.Responses.Import(w.ctx, c.Key(), each([]formsvc.ImportRow{row}), nil))
	wantFaults(t, report.Faults[0].Err, "/status unknown_status")
	must(w.neighbour().Responses.Update(w.ctx, r.Key(), formsvc.ResponsePatch{Status: new("elsewhere")}))
}

// Limits are those of the account, and 0 leaves those of the options.
func TestLimitsOfAccount(t *testing.T) {
	t.Parallel()
	var broken error
	w := newFileWorld(t, func(o *formsvc.Options) {
		o.MaxCampaigns, o.Quota = 100, 100
		o.Limits = func(context.Context, formsvc.ID) (formsvc.Limits, error) {
			return formsvc.Limits{Campaigns: 2, Keys: 1, Stored: 10, Responses: 2, Quota: 1}, broken
		}
	})
	limited := func(err error, kind string, most int) {
		t.Helper()
		if l, ok := errors.AsType[*formsvc.LimitError](err); !ok || l.Kind != kind || l.Limit != most {
			t.Errorf("%v, want a limit of %d %s", err, most, kind)
		}
	}
	c := w.campaign() // the second
	w.submitted(&c)   // likewise
	_, err := w.submit(&c)
	limited(err, "responses", 2)
	row := func(yield func(formsvc.ImportRow, error) bool) {
		yield(formsvc.ImportRow{Reference: "r", CreatedAt: w.svc.Now(), ResponseInput: formsvc.ResponseInput{User: formsvc.User{Email: "a@b.c"}}}, nil)
	}
	_, err = w.svc.Responses.Import(w.ctx, c.Key(), row, nil)
	limited(err, "responses", 2)
	_, err = w.svc.Campaigns.Create(w.ctx, w.account, formsvc.CampaignInput{Title: "t"})
	limited(err, "campaigns", 2)
	key := formsvc.KeyInput{Name: "k", Permissions: formsvc.AllPermissions()}
	made := must(w.svc.Keys.Create(w.ctx, w.account, key))
	_, err = w.svc.Keys.Create(w.ctx, w.account, key)
	limited(err, "keys", 1)
	_, err = w.svc.Files.Upload(w.ctx, w.response.Key(), formsvc.FileInput{Name: "a", Content: strings.NewReader("twelve bytes")})
	limited(err, "bytes of files", 10)
	who := &formsvc.Principal{AccountID: w.account, KeyID: made.ID}
	if state, err := w.svc.Quotas.Take(w.ctx, who); err != nil || state.Limit != 1 || state.Left != 0 || w.svc.Quotas.Give(state).Left != 1 {
		t.Errorf("%+v, %v", state, err)
	}
	must(w.svc.Quotas.Take(w.ctx, who))
	wantError(t, failure(w.svc.Quotas.Take(w.ctx, who)), formsvc.ErrQuota)
	if p := must(w.svc.Quotas.Policy(w.ctx, w.account)); p.Limit != 1 {
		t.Errorf("%+v", p)
	}
	broken = errFrail
	for _, call := range []func() error{
		func() error { _, err := w.submit(&c); return err },
		func() error { _, err := w.svc.Responses.Import(w.ctx, c.Key(), row, nil); return err },
		func() error { _, err := w.svc.Quotas.Take(w.ctx, who); return err },
		func() error { _, err := w.svc.Keys.Create(w.ctx, w.account, key); return err },
		func() error {
			_, err := w.svc.Campaigns.Create(w.ctx, w.account, formsvc.CampaignInput{Title: "t"})
			return err
		},
		func() error {
			_, err := w.svc.Files.Upload(w.ctx, w.response.Key(), formsvc.FileInput{Name: "a", Content: strings.NewReader("")})
			return err
		},
	} {
		wantError(t, call(), errFrail)
	}
}
