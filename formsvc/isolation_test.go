package formsvc_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/memory"
)

// failure returns the error of a call.
func failure[T any](_ T, err error) error { return err }

// Another account's records are not found, and lists are empty.
func TestOtherAccountsAreApart(t *testing.T) {
	w := newFileWorld(t)
	f, hook, second := w.uploaded(pattern(10)), w.hook(), w.second()
	key, _ := w.key(formsvc.FilesRead)
	test := must(w.svc.Webhooks.Test(w.ctx, hookKey(&hook)))
	c := formsvc.CampaignKey{AccountID: second, ID: w.response.CampaignID}
	theirs := formsvc.WebhookKey{AccountID: second, ID: hook.ID}
	d := formsvc.DeliveryKey{AccountID: second, ID: test.ID}
	in := formsvc.WebhookInput{URL: "https://example.com", Events: created()}
	_, _, unknown := w.svc.Webhooks.Create(w.ctx, someID, in)
	for name, err := range map[string]error{
		"Campaigns.Get":        failure(w.svc.Campaigns.Get(w.ctx, c)),
		"Campaigns.Replace":    failure(w.svc.Campaigns.Replace(w.ctx, c, formsvc.CampaignInput{Title: "mine"})),
		"Campaigns.Create":     failure(w.svc.Campaigns.Create(w.ctx, someID, formsvc.CampaignInput{Title: "x"})),
		"Campaigns.RotateForm": failure(w.svc.Campaigns.RotateForm(w.ctx, c)),
		"Responses.Create":     failure(w.svc.Responses.Create(w.ctx, c, formsvc.ResponseInput{User: ada()})),
		"Responses.List":       failure(w.svc.Responses.List(w.ctx, formsvc.ResponseQuery{AccountID: second, CampaignID: c.ID})),
		"Responses.Export":     failure(w.svc.Responses.Export(w.ctx, formsvc.ResponseQuery{AccountID: second, CampaignID: c.ID})),
		"Campaigns.EraseOlder": failure(w.svc.Campaigns.EraseOlder(w.ctx, c, time.Nanosecond)),
		"Files.Get":            failure(w.svc.Files.Get(w.ctx, formsvc.FileKey{AccountID: second, ID: f.ID})),
		"Keys.Revoke":          w.svc.Keys.Revoke(w.ctx, second, key.ID),
		"Webhooks.Create":      unknown,
		"Webhooks.Get":         failure(w.svc.Webhooks.Get(w.ctx, theirs)),
		"Webhooks.Replace":     failure(w.svc.Webhooks.Replace(w.ctx, theirs, in)),
		"Webhooks.Rotate":      failure(w.svc.Webhooks.Rotate(w.ctx, theirs, formsvc.Rotation{})),
		"Webhooks.Test":        failure(w.svc.Webhooks.Test(w.ctx, theirs)),
		"Webhooks.Delete":      w.svc.Webhooks.Delete(w.ctx, theirs),
		"RedeliverFailed":      failure(w.svc.Deliveries.RedeliverFailed(w.ctx, theirs, start())),
		"Deliveries.Get":       failure(w.svc.Deliveries.Get(w.ctx, d)),
		"Deliveries.Redeliver": failure(w.svc.Deliveries.Redeliver(w.ctx, d)),
		"Deliveries.List":      failure(w.svc.Deliveries.List(w.ctx, formsvc.DeliveryQuery{AccountID: second, WebhookID: hook.ID})),
		"Deliveries.Sample":    failure(w.svc.Deliveries.Sample(w.ctx, formsvc.SampleQuery{Webhook: theirs, From: start(), To: start().Add(time.Hour)})),
		"Events.Get":           failure(w.svc.Events.Get(w.ctx, second, test.EventID)),
	} {
		if !errors.Is(err, formsvc.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	in.CampaignID = c.ID
	_, _, err := w.svc.Webhooks.Create(w.ctx, second, in)
	wantFaults(t, err, "/campaignUuid unknown_campaign")
	campaigns, err := w.svc.Campaigns.List(w.ctx, formsvc.CampaignQuery{AccountID: second})
	hooks, err2 := w.svc.Webhooks.List(w.ctx, second)
	keys, err3 := w.svc.Keys.List(w.ctx, second)
	events, err4 := w.svc.Events.List(w.ctx, formsvc.EventQuery{AccountID: second})
	recent, err5 := w.svc.Events.Recent(w.ctx, formsvc.RecentQuery{AccountID: second, Limit: 10})
	if n := len(campaigns.Items) + len(hooks) + len(keys) + len(events.Items) + len(recent); n != 0 || errors.Join(err, err2, err3, err4, err5) != nil {
		t.Errorf("an empty account has %d records, %v", n, errors.Join(err, err2, err3, err4, err5))
	}
}

// Each method returns the error of its store, or refuses empty input before.
func TestMethodsReturnErrors(t *testing.T) {
	store := memory.New()
	svc := must(formsvc.New(store, nil))
	_ = store.Close()
	silent := []string{"Members.OfPerson", "Sessions.SignOut", "Keys.WriteUses", "Quotas.Flush", "Quotas.Take", "Quotas.Policy", "Responses.Check", "Responses.Places"} // have nothing to do, or need more than zero values
	services, called := reflect.ValueOf(*svc), 0
	for i := range services.NumField() {
		service := services.Field(i)
		for j := range service.NumMethod() {
			method := service.Method(j).Type()
			name := services.Type().Field(i).Name + "." + service.Type().Method(j).Name
			if !services.Type().Field(i).IsExported() || method.NumIn() == 0 || method.In(0) != reflect.TypeFor[context.Context]() ||
				method.Out(method.NumOut()-1) != reflect.TypeFor[error]() || slices.Contains(silent, name) {
				continue
			}
			args := []reflect.Value{reflect.ValueOf(t.Context())}
			for k := 1; k < method.NumIn(); k++ {
				if of := method.In(k); of.Kind() == reflect.Pointer {
					args = append(args, reflect.New(of.Elem()))
				} else {
					args = append(args, reflect.Zero(of))
				}
			}
			out := service.Method(j).Call(args)
			err, _ := out[len(out)-1].Interface().(error)
			known := slices.ContainsFunc([]error{
				formsvc.ErrStoreClosed, formsvc.ErrInvalid, formsvc.ErrNotFound, formsvc.ErrUnauthenticated, errors.ErrUnsupported,
			}, func(target error) bool { return errors.Is(err, target) })
			if called++; !known || !strings.HasPrefix(err.Error(), "formsvc: ") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if called < 45 {
		t.Errorf("%d methods only", called)
	}
}
