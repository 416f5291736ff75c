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

// A call that failed isn't stored, unless it is refused for good.
func TestOnceFails(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	svc, o := w.once("k")
	_, err := svc.Responses.Create(w.ctx, c.Key(), formsvc.ResponseInput{})
	wantError(t, err, formsvc.ErrInvalid)
	_, err = svc.Responses.Create(w.ctx, formsvc.CampaignKey{AccountID: w.account, ID: w.account}, formsvc.ResponseInput{User: formsvc.User{Email: "a@example.com"}})
	wantError(t, err, formsvc.ErrNotFound)
	wantError(t, failure(w.store.Recall(w.ctx, w.account, "k", time.Time{})), formsvc.ErrNotFound)
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
	wantError(t, failure(svc.Campaigns.Create(w.ctx, w.account, formsvc.CampaignInput{Title: "x"})), formsvc.ErrInvalid)
}

// While a call runs, others with its key fail, in every view of the service.
func TestOnceInFlight(t *testing.T) {
	w := newFileWorld(t)
	c := w.campaign()
	r := w.submitted(&c)
	svc, _ := w.once("k")
	beside := func() error {
		for _, other := range []*formsvc.Service{svc, svc.As(formsvc.Actor{Name: "somebody"}), svc.With(w.store)} {
			wantError(t, failure(other.Campaigns.Create(w.ctx, w.account, formsvc.CampaignInput{Title: "x"})), formsvc.ErrInFlight)
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
