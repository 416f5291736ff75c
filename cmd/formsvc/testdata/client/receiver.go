package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"

	"example.com/client/api"
)

// arrivalsAhead is the number of deliveries that may arrive before the driver reads them.
const arrivalsAhead = 1000

// params are the headers of a delivery. They are the same for every event.
type params = api.OnResponseCreatedParams

// An arrival is one delivery with a valid signature.
type arrival struct {
	params
	event any // an api.ResponseCreatedEvent or another of the seven
}

// The paths of the webhooks.
const (
	allPath  = "/all"
	downPath = "/down" // fails until it is repaired
)

// A receiver receives webhooks.
type receiver struct {
	url      string
	arrivals chan arrival

	mu      sync.Mutex
	secrets map[string]string // by the path of the webhook
	broken  bool
	types   []api.EventType // those that arrived
}

// newReceiver starts a receiver. It receives every webhook of the document with its generated handler.
func newReceiver() *receiver {
	r := &receiver{arrivals: make(chan arrival, arrivalsAhead), broken: true, secrets: map[string]string{}}
	refuse := func(_ http.ResponseWriter, _ *http.Request, err error) { fail("webhook: %v", err) }
	handlers := map[string]http.Handler{
		"response.created":        api.OnResponseCreatedWebhookHandler(r, refuse),
		"response.updated":        api.OnResponseUpdatedWebhookHandler(r, refuse),
		"response.status_changed": api.OnResponseStatusChangedWebhookHandler(r, refuse),
		"response.completed":      api.OnResponseCompletedWebhookHandler(r, refuse),
		"signature.completed":     api.OnSignatureCompletedWebhookHandler(r, refuse),
		"file.uploaded":           api.OnFileUploadedWebhookHandler(r, refuse),
		"response.deleted":        api.OnResponseDeletedWebhookHandler(r, refuse),
	}
	r.url = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		name := req.Header.Get("X-Service-Event")
		if handlers[name] == nil {
			fail("webhook: X-Service-Event is %q", name)
		}
		handlers[name].ServeHTTP(w, req)
	})).URL
	return r
}

// HandleOnResponseCreatedWebhook receives response.created.
func (r *receiver) HandleOnResponseCreatedWebhook(w http.ResponseWriter, req *http.Request, p params) {
	r.receive(w, req, p)
}

// HandleOnResponseUpdatedWebhook receives response.updated.
func (r *receiver) HandleOnResponseUpdatedWebhook(w http.ResponseWriter, req *http.Request, p api.OnResponseUpdatedParams) {
	r.receive(w, req, params(p))
}

// HandleOnResponseStatusChangedWebhook receives response.status_changed.
func (r *receiver) HandleOnResponseStatusChangedWebhook(w http.ResponseWriter, req *http.Request, p api.OnResponseStatusChangedParams) {
	r.receive(w, req, params(p))
}

// HandleOnResponseCompletedWebhook receives response.completed.
func (r *receiver) HandleOnResponseCompletedWebhook(w http.ResponseWriter, req *http.Request, p api.OnResponseCompletedParams) {
	r.receive(w, req, params(p))
}

// HandleOnSignatureCompletedWebhook receives signature.completed.
func (r *receiver) HandleOnSignatureCompletedWebhook(w http.ResponseWriter, req *http.Request, p api.OnSignatureCompletedParams) {
	r.receive(w, req, params(p))
}

// HandleOnFileUploadedWebhook receives file.uploaded.
func (r *receiver) HandleOnFileUploadedWebhook(w http.ResponseWriter, req *http.Request, p api.OnFileUploadedParams) {
	r.receive(w, req, params(p))
}

// HandleOnResponseDeletedWebhook receives response.deleted.
func (r *receiver) HandleOnResponseDeletedWebhook(w http.ResponseWriter, req *http.Request, p api.OnResponseDeletedParams) {
	r.receive(w, req, params(p))
}

// receive checks the signature before anything else, as every receiver should.
func (r *receiver) receive(w http.ResponseWriter, req *http.Request, p params) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		fail("webhook: %v", err)
	}
	r.mu.Lock()
	broken, secret := r.broken && req.URL.Path == downPath, r.secrets[req.URL.Path]
	r.mu.Unlock()
	if broken {
		http.Error(w, "not now", http.StatusServiceUnavailable)
		return
	}
	if !signed(secret, body, p.XServiceSignature) {
		fail("webhook: %s for %s is not signed with its secret", p.XServiceEvent, req.URL.Path)
	}
	var event api.Event
	if err := json.Unmarshal(body, &event); err != nil {
		fail("webhook: %v", err)
	}
	value, err := opened(event)
	if err != nil {
		fail("webhook: %v\n%s", err, body)
	}
	r.mu.Lock()
	r.types = append(r.types, p.XServiceEvent)
	r.mu.Unlock()
	r.arrivals <- arrival{params: p, event: value}
	w.WriteHeader(http.StatusOK)
}

// signed reports whether the signature follows the specification.
func signed(secret string, body []byte, signature string) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return hmac.Equal([]byte(signature), []byte(hex.EncodeToString(mac.Sum(nil))))
}

// opened returns the event of the union by its discriminator, and checks that they match.
func opened(event api.Event) (any, error) {
	value, err := event.ValueByDiscriminator()
	if err != nil {
		return nil, err
	}
	text, err := event.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return value, exact(value, text)
}

// expect sets the secret of the path.
func (r *receiver) expect(path, secret string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secrets[path] = secret
}

// repair lets downPath succeed.
func (r *receiver) repair() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = false
}

// got reports whether an event of the type arrived.
func (r *receiver) got(event api.EventType) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.types, event)
}

// next waits for the next delivery.
func (r *receiver) next(ctx context.Context, what string) arrival {
	select {
	case a := <-r.arrivals:
		return a
	case <-ctx.Done():
		fail("webhook: %s did not come", what)
		panic("unreachable")
	}
}
