package delivery_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/formsvc/toolkit/webhook/delivery"
)

// A hose is a queue without cost of n deliveries to the given endpoints.
type hose struct {
	endpoints []delivery.Endpoint
	payload   []byte

	mu       sync.Mutex
	left     int
	finished int
	finishes int
	looks    int
	claims   int
}

func (h *hose) Ready(context.Context, time.Time) ([]delivery.Endpoint, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.looks++
	if h.left == 0 {
		return nil, nil
	}
	return h.endpoints, nil
}

func (h *hose) Claim(_ context.Context, req delivery.ClaimRequest) ([]delivery.Claim, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.claims++
	var claims []delivery.Claim
	for _, share := range req.Shares {
		for range min(share.N, h.left) {
			id := strconv.Itoa(h.left)
			claims = append(claims, delivery.Claim{
				ID: id, Lease: 1, EventID: "e" + id, Event: "response.created", Endpoint: share.Endpoint, Size: len(h.payload),
			})
			h.left--
		}
	}
	return claims, nil
}

func (h *hose) Payloads(_ context.Context, events []string) (map[string]delivery.Payload, error) {
	payloads := make(map[string]delivery.Payload, len(events))
	for _, id := range events {
		payloads[id] = delivery.Payload{Body: h.payload}
	}
	return payloads, nil
}

func (h *hose) Finish(_ context.Context, outcomes []delivery.Outcome) ([]bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.finishes++
	accepted := make([]bool, len(outcomes))
	for i, o := range outcomes {
		accepted[i] = true
		if o.Result == delivery.Delivered {
			h.finished++
		}
	}
	return accepted, nil
}

func (h *hose) Failures(context.Context, time.Time, time.Time, int) ([]delivery.Failure, error) {
	return nil, nil
}

func (h *hose) Noted(context.Context, []string) error { return nil }

func (h *hose) Wait(ctx context.Context, _ time.Duration) error {
	<-ctx.Done()
	return ctx.Err()
}

// BenchmarkEngine drains b.N deliveries of 800 bytes over keep-alive connections. The receiver
// shares the processor with the engine. "transport" sends the same requests without an engine, for
// comparison in the same run.
func BenchmarkEngine(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	defer server.Close()
	payload := []byte(strings.Repeat("x", 800))
	b.Run("transport", func(b *testing.B) { benchmarkTransport(b, server.URL, payload) })
	for _, endpoints := range []int{1, 10} {
		for _, concurrency := range []int{64, 256} {
			b.Run(fmt.Sprintf("endpoints=%d/concurrency=%d", endpoints, concurrency), func(b *testing.B) {
				h := &hose{payload: payload, left: b.N}
				for i := range endpoints {
					h.endpoints = append(h.endpoints, delivery.Endpoint{ID: strconv.Itoa(i), URL: server.URL, Secret: "secret"})
				}
				engine := newEngine(b, h, delivery.Options{Concurrency: concurrency})
				b.ReportAllocs()
				b.ResetTimer()
				if _, err := engine.RunOnce(b.Context()); err != nil {
					b.Fatal(err)
				}
				if h.finished != b.N {
					b.Fatalf("%d of %d delivered", h.finished, b.N)
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "deliveries/s")
				b.ReportMetric(float64(b.N)/float64(h.looks), "per-look")
				b.ReportMetric(float64(b.N)/float64(h.claims), "per-claim")
				b.ReportMetric(float64(b.N)/float64(h.finishes), "per-finish")
			})
		}
	}
}

func benchmarkTransport(b *testing.B, url string, payload []byte) {
	const workers = 64
	transport := &http.Transport{MaxIdleConnsPerHost: workers, DisableCompression: true}
	defer transport.CloseIdleConnections()
	work := make(chan struct{}, b.N)
	for range b.N {
		work <- struct{}{}
	}
	close(work)
	b.ReportAllocs()
	b.ResetTimer()
	var senders sync.WaitGroup
	for range workers {
		senders.Go(func() {
			for range work {
				req, _ := http.NewRequest(http.MethodPost, url, strings.NewReader(string(payload)))
				req.Header.Set("x-service-signature", sign("secret", string(payload)))
				resp, err := transport.RoundTrip(req)
				if err != nil {
					b.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
	senders.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "deliveries/s")
}
