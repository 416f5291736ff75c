package delivery

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/formsvc/toolkit/webhook"
)

// keepAnswer is how much of an answer's body is kept, in bytes.
const keepAnswer = 4 << 10

// deliver makes one attempt and hands its outcome over.
func (r *run) deliver(j *job) {
	if r.opts.Now().Add(r.opts.Timeout + r.storeTimeout).After(j.until) {
		// The lease could end before the outcome is recorded, and the receiver
		// would get it from the next claimer, too.
		j.outcome = r.released(j)
	} else {
		j.outcome = r.attempt(j)
	}
	r.done(j)
}

// attempt makes one attempt and decides what follows from it.
func (r *run) attempt(j *job) Outcome {
	ctx, cancel := context.WithTimeout(r.sending, r.opts.Timeout)
	defer cancel()
	a := Attempt{Number: j.claim.Attempts + 1, StartedAt: r.opts.Now()}
	status, answer, err := r.exchange(ctx, j, a.Number)
	end := r.opts.Now()
	a.Duration = end.Sub(a.StartedAt)
	a.Status, a.Answer, a.Error = status, answer, classify(ctx, status, err)

	o := Outcome{ID: j.claim.ID, Lease: j.claim.Lease, Attempt: a}
	switch {
	case a.Error == "":
		o.Result = Delivered
	case a.Error == ClassCanceled:
		o.Result, o.Due = Released, end
	case a.Number > len(r.opts.Retries):
		o.Result = Failed
	default:
		o.Result, o.Due = Retry, end.Add(r.opts.Retries[a.Number-1])
	}
	return o
}

// exchange sends the request and reads the answer. The status is that of the
// answer's head, also when reading its body fails.
//
// It calls the transport without an http.Client, which would follow redirects
// and put the URL into its errors.
func (e *Engine) exchange(ctx context.Context, j *job, number int) (status int, answer []byte, err error) {
	req, err := e.request(ctx, j, number)
	if err != nil {
		return 0, nil, err
	}
	resp, err := e.transport.RoundTrip(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusSwitchingProtocols {
		// The body is the bare connection, which nobody ends.
		return resp.StatusCode, nil, nil
	}
	answer, err = readAnswer(resp.Body, e.opts.MaxAnswer)
	return resp.StatusCode, answer, err
}

func (e *Engine) request(ctx context.Context, j *job, number int) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, j.claim.Endpoint.URL, bytes.NewReader(j.body))
	if err != nil || !usable(req.URL) {
		return nil, errURL
	}
	if j.missing {
		return nil, errPayload
	}
	if j.claim.Endpoint.Secret == "" {
		// Anybody could make that signature.
		return nil, errSecret
	}
	h := req.Header
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", e.opts.UserAgent)
	h.Set(webhook.SignatureHeader, webhook.Sign([]byte(j.claim.Endpoint.Secret), j.body))
	h.Set(webhook.EventHeader, j.claim.Event)
	h.Set(webhook.DeliveryHeader, j.claim.ID)
	h.Set(webhook.AttemptHeader, strconv.Itoa(number))
	// Receivers close idle connections when they like. net/http sends a request
	// again that met such a connection, but a POST only with this header.
	h.Set("Idempotency-Key", j.claim.ID)
	return req, nil
}

func usable(u *url.URL) bool {
	return (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil
}

// readAnswer reads at most limit bytes and returns the first of them. Read to
// its end, the answer leaves a connection that can be used again.
func readAnswer(body io.Reader, limit int64) ([]byte, error) {
	if body == http.NoBody {
		return nil, nil
	}
	kept, err := io.ReadAll(io.LimitReader(body, min(keepAnswer, limit)))
	if err == nil {
		_, err = io.Copy(io.Discard, io.LimitReader(body, limit-int64(len(kept))))
	}
	if len(kept) == 0 {
		kept = nil
	}
	return kept, err
}

// host returns host and port of an URL, the only part that is told to anyone.
func host(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return ""
	}
	return u.Host
}
