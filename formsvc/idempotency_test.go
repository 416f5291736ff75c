package formsvc_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

func TestCheckIdempotencyKey(t *testing.T) {
	for key, ok := range map[string]bool{
		"k": true, "!~": true, `"quoted"`: true, strings.Repeat("k", formsvc.MaxIdempotencyKey): true,
		"": false, " ": false, "a b": false, "a\x7f": false, "ä": false, "\x00": false, "a\n": false,
		strings.Repeat("k", formsvc.MaxIdempotencyKey+1): false,
	} {
		if err := formsvc.CheckIdempotencyKey(key); (err == nil) != ok || !ok && !errors.Is(err, formsvc.ErrInvalid) {
			t.Errorf("%q: %v", key, err)
		}
	}
}

// once returns the service for one idempotent call, and the list that gets its results.
func (w *world) once(key string) (svc *formsvc.Service, results *[]any) {
	results = new([]any)
	return w.svc.Once(&formsvc.Once{AccountID: w.account, Key: key, Reply: func(result any) formsvc.Reply {
		*results = append(*results, reflect.ValueOf(result).Elem().Interface())
		return formsvc.Reply{Status: 200, Body: fmt.Append(nil, "the answer to ", key)}
	}}), results
}

// Every method that an endpoint calls with a key does its work once, and stores a reply for its
// result.
func TestOnce(t *testing.T) {
	w := newFileWorld(t)
	c := w.campaign()
	r := w.submitted(&c)
	hook := w.hook(func(in *formsvc.WebhookInput) { in.Events = created() })
	test := must(w.svc.Webhooks.Test(w.ctx, hookKey(&hook)))
	subscribe := func(svc *formsvc.Service, url string) (formsvc.Subscription, error) {
		hook, created, err := svc.Webhooks.Create(w.ctx, w.account, formsvc.WebhookInput{URL: url, Events: created()})
		return formsvc.Subscription{Webhook: hook, Created: created}, err
	}
	for name, call := range map[string]func(svc *formsvc.Service) (any, error){
		"campaign": func(svc *formsvc.Service) (any, error) {
			return svc.Campaigns.Create(w.ctx, w.account, formsvc.CampaignInput{Title: "x"})
		},
		"response": func(svc *formsvc.Service) (any, error) {
			return svc.Responses.Create(w.ctx, c.Key(), formsvc.ResponseInput{User: r.User})
		},
		"file": func(svc *formsvc.Service) (any, error) {
			return svc.Files.Upload(w.ctx, r.Key(), formsvc.FileInput{Content: strings.NewReader("x")})
		},
		"comment": func(svc *formsvc.Service) (any, error) {
			return svc.Comments.Create(w.ctx, r.Key(), formsvc.CommentInput{Body: "x"})
		},
		"signature": func(svc *formsvc.Service) (any, error) {
			return svc.Signatures.Create(w.ctx, r.Key(), formsvc.SignatureInput{Signer: r.User})
		},
		"webhook":      func(svc *formsvc.Service) (any, error) { return subscribe(svc, "https://example.com/new") },
		"same webhook": func(svc *formsvc.Service) (any, error) { return subscribe(svc, hook.URL) },
		"rotation": func(svc *formsvc.Service) (any, error) {
			return svc.Webhooks.Rotate(w.ctx, hookKey(&hook), formsvc.Rotation{})
		},
		"test":       func(svc *formsvc.Service) (any, error) { return svc.Webhooks.Test(w.ctx, hookKey(&hook)) },
		"redelivery": func(svc *formsvc.Service) (any, error) { return svc.Deliveries.Redeliver(w.ctx, deliveryKey(&test)) },
		"redeliveries": func(svc *formsvc.Service) (any, error) {
			return svc.Deliveries.RedeliverFailed(w.ctx, hookKey(&hook), w.clock.Now())
		},
	} {
		svc, results := w.once(name)
		got, err := call(svc)
		if err != nil || len(*results) != 1 || !reflect.DeepEqual((*results)[0], got) {
			t.Errorf("%s: %v, %+v, want what it remembered, %+v", name, err, got, *results)
		}
		_, err = call(svc)
		wantError(t, err, formsvc.ErrRepeated)
		known, err := w.svc.Recall(w.ctx, w.account, name)
		if err != nil || string(known.Body) != "the answer to "+name {
			t.Errorf("%s: %s, %v", name, known.Body, err)
		}
		if _, err := call(w.svc); err != nil {
			t.Errorf("%s without a key: %v", name, err)
		}
	}
	page, err := w.svc.Files.List(w.ctx, formsvc.FileQuery{AccountID: w.account, CampaignID: c.ID, ResponseID: r.ID})
	if err != nil || page.Total != 2 {
		t.Errorf("%d files, %v", page.Total, err)
	}
}

func deliveryKey(d *formsvc.Delivery) formsvc.DeliveryKey {
	return formsvc.DeliveryKey{AccountID: d.AccountID, ID: d.ID}
}

// A failed call isn't stored, and neither is a call whose transaction was rolled back.
func TestOnceFails(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	svc, _ := w.once("k")
	_, err := svc.Responses.Create(w.ctx, c.Key(), formsvc.ResponseInput{})
	wantError(t, err, formsvc.ErrInvalid)
	_, err = svc.Responses.Create(w.ctx, formsvc.CampaignKey{AccountID: w.account, ID: w.account}, formsvc.ResponseInput{User: formsvc.User{Email: "a@example.com"}})
	wantError(t, err, formsvc.ErrNotFound)
	_, err = w.svc.Recall(w.ctx, w.account, "k")
	wantError(t, err, formsvc.ErrNotFound)
	wantError(t, w.svc.Remember(w.ctx, w.account, "k", formsvc.Reply{Status: 404}), nil)
	wantError(t, w.svc.Remember(w.ctx, w.account, "k", formsvc.Reply{Status: 409}), formsvc.ErrRepeated)
	_, err = svc.Campaigns.Create(w.ctx, w.account, formsvc.CampaignInput{Title: "x"})
	wantError(t, err, formsvc.ErrRepeated)
	known, err := w.svc.Recall(w.ctx, w.account, "k")
	if err != nil || known.Status != 404 {
		t.Errorf("%+v, %v", known, err)
	}
}

func TestBegin(t *testing.T) {
	w := newWorld(t)
	end := must(w.svc.Begin(w.account, "k"))
	for _, svc := range []*formsvc.Service{w.svc, w.svc.As("somebody"), w.svc.With(w.store)} {
		_, err := svc.Begin(w.account, "k")
		wantError(t, err, formsvc.ErrInFlight)
	}
	wantError(t, failure(w.svc.Begin(w.account, "l")), nil)
	wantError(t, failure(w.svc.Begin("another", "k")), nil)
	end()
	must(w.svc.Begin(w.account, "k"))
}

// Examine checks a file as Upload does and stores nothing.
func TestExamineStoresNothing(t *testing.T) {
	w := newFileWorld(t)
	in := func() formsvc.FileInput {
		return formsvc.FileInput{Name: "../a.txt", ContentType: "Text/Plain", Module: "m", Content: strings.NewReader("content")}
	}
	want := must(w.upload(in()))
	got, err := w.svc.Files.Examine(w.ctx, in())
	want.ID, want.AccountID, want.CampaignID, want.ResponseID, want.CreatedAt = "", "", "", "", time.Time{}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n got %+v\nwant %+v", err, got, want)
	}
}
