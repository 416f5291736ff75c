package httpx_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
)

// Refusals that all operations share, tried on each operation. Refusals of single operations are in their own tests.

// everyRequest runs a test with a valid request for each route that choose returns true for, as subtests with the same
// world.
func everyRequest(t *testing.T, choose func(httpx.Route) bool, test func(t *testing.T, w *world, s sample)) {
	t.Helper()
	everywhere(t, func(t *testing.T, w *world) {
		campaign := w.campaign(plainCampaign)
		for _, s := range w.requests(campaign, w.response(campaign)) {
			if choose(s.Route) {
				w.tb = t
				test(t, w, s)
			}
		}
	})
}

func withKey(r httpx.Route) bool { return !r.Public }

func writes(r httpx.Route) bool { return r.Method != http.MethodGet }

func takesBody(r httpx.Route) bool { return writes(r) && r.Method != http.MethodDelete }

func posts(r httpx.Route) bool { return r.Method == http.MethodPost }

func TestEveryOperationRefusesUnknownParameters(t *testing.T) {
	everyRequest(t, func(httpx.Route) bool { return true }, func(_ *testing.T, w *world, s sample) {
		w.do(s.Method, s.path+"?zzz=1", s.body).is(400, "invalid_parameter").faults("zzz unknown_parameter")
	})
}

func TestEveryOperationLimitsTheRate(t *testing.T) {
	everyRequest(t, withKey, func(_ *testing.T, w *world, s sample) {
		w.serve(&httpx.Options{Rate: 0.001, Burst: 1})
		w.do("GET", "/v1/me", "").is(200, "")
		w.do(s.Method, s.path, s.body).is(429, "rate_limited")
	})
}

func TestEveryOperationCountsForTheQuota(t *testing.T) {
	everyRequest(t, withKey, func(_ *testing.T, w *world, s sample) {
		w.limit(1, nil)
		w.do("GET", "/v1/me", "") // the only request that Burst allows
		w.do(s.Method, s.path, s.body).is(429, "quota_exceeded")
	})
}

func TestEveryOperationLimitsFailedAuthentication(t *testing.T) {
	everyRequest(t, withKey, func(_ *testing.T, w *world, s sample) {
		w.serve(nil)
		for range httpx.FailureBurst {
			w.do(s.Method, s.path, s.body, as("nonsense")).is(401, "unauthenticated")
		}
		w.do(s.Method, s.path, s.body, as("nonsense")).is(429, "too_many_failures")
	})
}

// If the key can't be looked up, every operation reports that.
func TestEveryOperationReportsFailedKeyLookup(t *testing.T) {
	everyRequest(t, withKey, func(_ *testing.T, w *world, s sample) {
		for _, row := range []struct {
			err    error
			status int
			code   string
		}{
			{formsvc.ErrUnavailable, 503, "unavailable"},
			{fmt.Errorf("slow: %w", context.DeadlineExceeded), 503, "timeout"},
			{errors.New("secret cause"), 500, "internal"},
		} {
			w.serve(&httpx.Options{Authenticate: func(*http.Request) (*formsvc.Principal, error) { return nil, row.err }})
			if a := w.do(s.Method, s.path, s.body).is(row.status, row.code); strings.Contains(a.body, "secret") {
				a.errorf("tells the cause: %s", a.body)
			}
		}
	})
}

func TestEveryBodyHasASizeLimit(t *testing.T) {
	everyRequest(t, takesBody, func(_ *testing.T, w *world, s sample) {
		w.serve(&httpx.Options{MaxBody: 10})
		body, code := `{"something":"more than ten bytes"}`, "body_too_large"
		if s.Name == "uploadFile" {
			body, code = strings.Repeat("x", maxFile+1), "file_too_large"
		}
		w.do(s.Method, s.path, body).is(413, code)
	})
}

func TestEveryBodyNeedsItsMediaType(t *testing.T) {
	everyRequest(t, takesBody, func(_ *testing.T, w *world, s sample) {
		plain := func(r *http.Request) {
			r.Header.Set("Content-Type", "text/plain")
			r.Header.Del("Content-Disposition")
		}
		w.do(s.Method, s.path, "text", plain).is(415, "unsupported_media_type")
		w.do(s.Method, s.path, "{}", header("Content-Encoding", "gzip")).is(415, "unsupported_content_encoding")
	})
}

// A broken body ends too early.
type broken struct{ io.Reader }

func (b broken) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func TestEveryBodyMustBeWellFormed(t *testing.T) {
	decodes := func(r httpx.Route) bool { return takesBody(r) && documentOf(t, r).body["application/json"] != nil }
	everyRequest(t, decodes, func(_ *testing.T, w *world, s sample) {
		for body, code := range map[string]string{
			"\uFEFF{}": "byte_order_mark", `{"a":"` + "\xff" + `"}`: "invalid_utf8", `{"a":1,"a":1}`: "duplicate_member",
			strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65): "too_deep", `{`: "malformed_json",
		} {
			w.do(s.Method, s.path, body).is(400, code)
		}
		w.do(s.Method, s.path, "", func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(broken{strings.NewReader("{")}), -1
		}).is(400, "body_incomplete")
	})
}

// A stalled body stops until the deadline of its connection.
type stalled struct{ io.Reader }

func (s stalled) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = os.ErrDeadlineExceeded
	}
	return n, err
}

func TestEveryBodyHasATimeout(t *testing.T) {
	everyRequest(t, takesBody, func(_ *testing.T, w *world, s sample) {
		w.do(s.Method, s.path, "", func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(stalled{strings.NewReader(`{"`)}), 100
		}).is(408, "body_timeout")
	})
}

func TestEveryPostRefusesConcurrentRetries(t *testing.T) {
	everyRequest(t, posts, func(t *testing.T, w *world, s sample) {
		end, err := w.svc.Begin(w.mine.account.ID, "under-way")
		if err != nil {
			t.Fatal(err)
		}
		defer end()
		w.do(s.Method, s.path, s.body, header("Idempotency-Key", "under-way")).is(409, "idempotency_in_flight")
	})
}

func TestEveryPostRefusesTheKeyOfAnotherRequest(t *testing.T) {
	everyRequest(t, posts, func(_ *testing.T, w *world, s sample) {
		key := header("Idempotency-Key", "used")
		w.do("POST", "/v1/campaigns", `{"title":"The first"}`, key)
		w.do(s.Method, s.path, s.body, key).is(422, "idempotency_mismatch")
	})
}

func TestEveryPostRefusesMalformedKeys(t *testing.T) {
	everyRequest(t, posts, func(_ *testing.T, w *world, s sample) {
		w.do(s.Method, s.path, s.body, header("Idempotency-Key", "a b")).is(400, "invalid_idempotency_key")
	})
}

// A full store has no space for anything new, or breaks during a write.
type full struct {
	formsvc.Store
	err error
}

func TestEveryWriteReportsAFullStore(t *testing.T) {
	everyRequest(t, writes, func(t *testing.T, w *world, s sample) {
		for _, row := range []struct {
			err    error
			status int
			code   string
		}{
			{formsvc.ErrNoSpace, 507, "insufficient_storage"},
			{formsvc.ErrUnknownOutcome, 503, "outcome_unknown"},
		} {
			svc, err := formsvc.New(&full{w.store, row.err}, &formsvc.Options{
				Blobs: w.blobs, MaxFile: maxFile, Quota: new(int), Now: w.clock,
			})
			if err != nil {
				t.Fatal(err)
			}
			sound := w.svc
			w.svc = svc
			w.serve(nil)
			w.do(s.Method, s.path, s.body).is(row.status, row.code)
			w.svc = sound
		}
	})
}

func (f *full) CreateCampaign(context.Context, formsvc.Campaign, formsvc.Change) error { return f.err }

func (f *full) UpdateCampaign(
	context.Context, formsvc.CampaignKey, func(*formsvc.Campaign) error,
) (formsvc.Campaign, error) {
	return formsvc.Campaign{}, f.err
}

func (f *full) CreateResponse(context.Context, formsvc.Response, int64, formsvc.Change) error {
	return f.err
}

func (f *full) UpdateResponse(
	context.Context, formsvc.ResponseKey, func(*formsvc.Response) (formsvc.Change, error),
) (formsvc.Response, error) {
	return formsvc.Response{}, f.err
}

func (f *full) DeleteResponse(
	context.Context, formsvc.ResponseKey, func(*formsvc.Response) (formsvc.Change, error),
) ([]formsvc.ID, error) {
	return nil, f.err
}

func (f *full) CreateFile(
	context.Context, formsvc.File, func(*formsvc.Response) (formsvc.Change, error),
) error {
	return f.err
}

func (f *full) CreateComment(context.Context, formsvc.Comment, formsvc.Change) error { return f.err }

func (f *full) CreateSignature(
	context.Context, formsvc.Signature, func(*formsvc.Response, *formsvc.Signature) (formsvc.Change, error),
) (formsvc.Signature, error) {
	return formsvc.Signature{}, f.err
}

func (f *full) CreateWebhook(
	context.Context, formsvc.Webhook, int, func(*formsvc.Webhook, bool) (formsvc.Change, error),
) (formsvc.Webhook, bool, error) {
	return formsvc.Webhook{}, false, f.err
}

func (f *full) UpdateWebhook(
	context.Context, formsvc.WebhookKey, func(*formsvc.Webhook) (formsvc.Change, error),
) (formsvc.Webhook, error) {
	return formsvc.Webhook{}, f.err
}

func (f *full) DeleteWebhook(context.Context, formsvc.WebhookKey, formsvc.Change) error { return f.err }

func (f *full) Redeliver(
	context.Context, formsvc.DeliveryKey, time.Time, func(*formsvc.Delivery) (formsvc.Change, error),
) (formsvc.Delivery, error) {
	return formsvc.Delivery{}, f.err
}

func (f *full) RedeliverFailed(
	context.Context, formsvc.RedeliverQuery, func(int) (formsvc.Change, error),
) (int, error) {
	return 0, f.err
}

func (f *full) CreateTest(
	context.Context, formsvc.WebhookKey, formsvc.Event, func(*formsvc.Delivery) (formsvc.Change, error),
) (formsvc.Delivery, error) {
	return formsvc.Delivery{}, f.err
}
