package formsvc_test

import (
	"crypto/sha256"
	"errors"
	"io"
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

// once returns the service for idempotent calls with a key.
func (w *world) once(key string) (*formsvc.Service, *formsvc.Idempotency) {
	o := &formsvc.Idempotency{Key: key, Request: sha256.Sum256([]byte(key))}
	return keyed(w.svc, o), o
}

func keyed(svc *formsvc.Service, o *formsvc.Idempotency) *formsvc.Service {
	svc, _, _ = formsvc.Do(svc, formsvc.Call{Idempotency: o}, func(svc *formsvc.Service) (*formsvc.Service, error) { return svc, nil })
	return svc
}

// refusal returns what was stored as the refusal of calls with the key, or "".
func (w *world) refusal(key string, request [sha256.Size]byte) string {
	err := w.svc.Refuse(w.ctx, w.account, &formsvc.Idempotency{Key: key, Request: request}, []byte("another"))
	if earlier, ok := errors.AsType[*formsvc.RefusedError](err); ok {
		return string(earlier.Refusal)
	}
	return ""
}

// Every method that an endpoint calls with a key does its work once, and returns the same result
// again, without secrets.
func TestOnce(t *testing.T) {
	w := newFileWorld(t)
	c := w.campaign()
	r := w.submitted(&c)
	hook := w.hook(func(in *formsvc.WebhookInput) { in.Events = created() })
	test := must(w.svc.Webhooks.Test(w.ctx, hookKey(&hook)))
	type subscription struct {
		formsvc.Webhook
		created bool
	}
	subscribe := func(svc *formsvc.Service, url string) (any, error) {
		hook, created, err := svc.Webhooks.Create(w.ctx, w.account, formsvc.WebhookInput{
			URL: url, Events: created(), Headers: []formsvc.HeaderInput{{Name: "Token", Value: "secret"}},
		})
		if err == nil && hook.Secret != "" {
			hook.Secret, hook.Headers = "", []formsvc.Header{{Name: "Token"}}
		}
		return subscription{hook, created}, err
	}
	for name, call := range map[string]func(svc *formsvc.Service) (any, error){
		"campaign": func(svc *formsvc.Service) (any, error) {
			return svc.Campaigns.Create(w.ctx, w.account, formsvc.CampaignInput{Title: "x"})
		},
		"form": func(svc *formsvc.Service) (any, error) { return svc.Campaigns.RotateForm(w.ctx, c.Key()) },
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
		"webhook": func(svc *formsvc.Service) (any, error) { return subscribe(svc, "https://example.com/new") },
		"same-webhook": func(svc *formsvc.Service) (any, error) {
			same, created, err := svc.Webhooks.Create(w.ctx, w.account, formsvc.WebhookInput{URL: hook.URL, Events: created()})
			same.Secret, same.Previous = "", ""
			return subscription{same, created}, err
		},
		"rotation": func(svc *formsvc.Service) (any, error) {
			hook, err := svc.Webhooks.Rotate(w.ctx, hookKey(&hook), formsvc.Rotation{Grace: time.Hour})
			hook.Secret, hook.Previous = "", ""
			return hook, err
		},
		"key": func(svc *formsvc.Service) (any, error) {
			key, err := svc.Keys.Create(w.ctx, w.account, formsvc.KeyInput{Name: "x", Permissions: formsvc.AllPermissions()})
			return key.Key, err
		},
		"test":       func(svc *formsvc.Service) (any, error) { return svc.Webhooks.Test(w.ctx, hookKey(&hook)) },
		"redelivery": func(svc *formsvc.Service) (any, error) { return svc.Deliveries.Redeliver(w.ctx, deliveryKey(&test)) },
		"redeliveries": func(svc *formsvc.Service) (any, error) {
			return svc.Deliveries.RedeliverFailed(w.ctx, hookKey(&hook), w.clock.Now())
		},
	} {
		_, o := w.once(name)
		do := func() (any, bool, error) { return formsvc.Do(w.svc, formsvc.Call{Idempotency: o}, call) }
		first, repeated, err := do()
		if err != nil || repeated {
			t.Errorf("%s: %+v, %v, repeated %t", name, first, err, repeated)
		}
		again, repeated, err := do()
		if err != nil || !repeated || !reflect.DeepEqual(again, first) {
			t.Errorf("%s: %v, repeated %t\n got %+v\nwant %+v", name, err, repeated, again, first)
		}
		record, err := w.store.Recall(w.ctx, w.account, name, time.Time{})
		if err != nil || strings.Contains(string(record.Result), "whsec_") {
			t.Errorf("%s: stored %s, %v", name, record.Result, err)
		}
		o.Request[0]++
		_, _, err = do()
		wantError(t, err, formsvc.ErrMismatch)
		if _, err := call(w.svc); err != nil && name != "webhook" { // its header could be guessed
			t.Errorf("%s without a key: %v", name, err)
		}
	}
	page, err := w.svc.Files.List(w.ctx, r.Key(), formsvc.PageQuery{})
	if err != nil || page.Total != 2 {
		t.Errorf("%d files, %v", page.Total, err)
	}
}

func deliveryKey(d *formsvc.Delivery) formsvc.DeliveryKey {
	return formsvc.DeliveryKey{AccountID: d.AccountID, ID: d.ID}
}

// A call that failed isn't stored, unless it is refused for good.
func TestOnceFails(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	svc, o := w.once("k")
	_, err := svc.Responses.Create(w.ctx, c.Key(), formsvc.ResponseInput{})
	wantError(t, err, formsvc.ErrInvalid)
	_, err = svc.Responses.Create(w.ctx, formsvc.CampaignKey{AccountID: w.account, ID: w.account}, formsvc.ResponseInput{User: formsvc.User{Email: "a@example.com"}})
	wantError(t, err, formsvc.ErrNotFound)
	_, err = w.store.Recall(w.ctx, w.account, "k", time.Time{})
	wantError(t, err, formsvc.ErrNotFound)
	wantError(t, w.svc.Refuse(w.ctx, w.account, o, []byte("no")), nil)
	equal(t, w.refusal("k", o.Request), "no", "got %q")
	_, err = svc.Campaigns.Create(w.ctx, w.account, formsvc.CampaignInput{Title: "x"})
	if earlier, ok := errors.AsType[*formsvc.RefusedError](err); !ok || string(earlier.Refusal) != "no" {
		t.Errorf("got %v", err)
	}
	o.Request[0]++
	wantError(t, w.svc.Refuse(w.ctx, w.account, o, []byte("no")), formsvc.ErrMismatch)

	svc, o = w.once("l")
	must(svc.Campaigns.Create(w.ctx, w.account, formsvc.CampaignInput{Title: "x"}))
	wantError(t, w.svc.Refuse(w.ctx, w.account, o, []byte("no")), formsvc.ErrInFlight)

	svc, _ = w.once("not valid")
	_, err = svc.Campaigns.Create(w.ctx, w.account, formsvc.CampaignInput{Title: "x"})
	wantError(t, err, formsvc.ErrInvalid)
}

// While a call runs, others with its key fail, in every view of the service.
func TestOnceInFlight(t *testing.T) {
	w := newFileWorld(t)
	c := w.campaign()
	r := w.submitted(&c)
	svc, _ := w.once("k")
	beside := func() error {
		for _, other := range []*formsvc.Service{svc, svc.As(formsvc.Actor{Name: "somebody"}), svc.With(w.store)} {
			_, err := other.Campaigns.Create(w.ctx, w.account, formsvc.CampaignInput{Title: "x"})
			wantError(t, err, formsvc.ErrInFlight)
		}
		other, _ := w.once("l")
		must(other.Campaigns.Create(w.ctx, w.account, formsvc.CampaignInput{Title: "x"}))
		return io.EOF
	}
	must(svc.Files.Upload(w.ctx, r.Key(), formsvc.FileInput{Content: readerFunc(func([]byte) (int, error) { return 0, beside() })}))
	_, err := keyed(w.svc, &formsvc.Idempotency{Key: "k"}).Campaigns.Create(w.ctx, w.account, formsvc.CampaignInput{Title: "x"})
	wantError(t, err, formsvc.ErrMismatch)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// A repeated upload is compared by its file, and stored nowhere.
func TestUploadOnce(t *testing.T) {
	w := newFileWorld(t)
	c := w.campaign()
	r := w.submitted(&c)
	svc, o := w.once("k")
	upload := func(name, content string) (formsvc.File, bool, error) {
		return formsvc.Do(w.svc, formsvc.Call{Idempotency: o}, func(svc *formsvc.Service) (formsvc.File, error) {
			return svc.Files.Upload(w.ctx, r.Key(), formsvc.FileInput{
				Name: name, ContentType: "Text/Plain", Module: "m", Content: strings.NewReader(content),
			})
		})
	}
	first, _, err := upload("../a.txt", "content")
	wantError(t, err, nil)
	again, repeated, err := upload("../a.txt", "content")
	if err != nil || !repeated || !reflect.DeepEqual(again, first) {
		t.Errorf("%v, repeated %t\n got %+v\nwant %+v", err, repeated, again, first)
	}
	for _, other := range [][2]string{{"b.txt", "content"}, {"../a.txt", "other"}} {
		_, repeated, err := upload(other[0], other[1])
		wantError(t, err, formsvc.ErrMismatch)
		if repeated {
			t.Error("a mismatch counts as repeated")
		}
	}
	_, err = svc.Files.Upload(w.ctx, r.Key(), formsvc.FileInput{Content: strings.NewReader("content"), Module: "a\x00"})
	wantError(t, err, formsvc.ErrInvalid)
	equal(t, w.store.count("CreateFile"), 1, "%d files were stored")
	_, o = w.once("l")
	w.store.disturb(failFirst("CreateFile", 1, formsvc.ErrRepeated)) // by a record that is gone right after
	_, _, err = upload("../a.txt", "content")
	wantError(t, err, formsvc.ErrUnavailable)
	if n := len(w.shelf.keys(t)); n != 1 || w.store.count("CreateFile") != 1 {
		t.Errorf("%d blobs", n)
	}
}
