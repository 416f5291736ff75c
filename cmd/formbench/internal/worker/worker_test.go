package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formsvc/toolkit/webhook"
)

func TestBody(t *testing.T) {
	t.Parallel()
	b, err := NewBody([]byte(`{"email":"respondent.0000000@example.com"}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 7, 1234567, 9999999} {
		if got, ok := Number(b.With(n)); !ok || got != n {
			t.Errorf("number %d became %d, %v", n, got, ok)
		}
	}
	for _, text := range []string{"", "respondent.", "respondent.123456", "respondent.12345x7", "nothing"} {
		if n, ok := Number([]byte(text)); ok {
			t.Errorf("%q has the number %d", text, n)
		}
	}
}

// TestOffer checks that each number is offered once, by no more callers at once than configured, or each at its time.
func TestOffer(t *testing.T) {
	t.Parallel()
	for _, c := range []Command{
		{N: 100, Callers: 8, Stamps: true}, {N: 3, Callers: 8, Stamps: true}, {N: 20, Every: time.Millisecond, Stamps: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			const work = 10 * time.Millisecond
			var mu sync.Mutex
			var got []int
			now, most := 0, 0
			r, err := Offer(t.Context(), &c, func(_ context.Context, i int) error {
				mu.Lock()
				got = append(got, i)
				now++
				most = max(most, now)
				mu.Unlock()
				time.Sleep(work)
				mu.Lock()
				now--
				mu.Unlock()
				return nil
			})
			if err != nil || r.N != c.N || len(r.Stamps) != c.N || r.Seconds <= 0 {
				t.Fatalf("%+v: got %+v, %v", c, r, err)
			}
			slices.Sort(got)
			for i := range c.N {
				if len(got) != c.N || got[i] != i || r.Stamps[i].Begin == 0 || r.Stamps[i].Done != r.Stamps[i].Begin+int64(work) {
					t.Fatalf("%+v: offered %v at %v", c, got, r.Stamps)
				}
				if after := r.Stamps[i].Begin - r.Stamps[0].Begin; c.Every > 0 && after != int64(c.Every)*int64(i) {
					t.Errorf("%+v: number %d is offered %v after the first", c, i, time.Duration(after))
				}
			}
			if want := min(c.N, c.Callers); c.Every == 0 && most != want {
				t.Errorf("%+v: %d at once, want %d", c, most, want)
			}
		})
	}
}

func TestOfferFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	_, err := Offer(t.Context(), &Command{N: 1_000_000, Callers: 2}, func(context.Context, int) error { return broken })
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestPost(t *testing.T) {
	t.Parallel()
	status := http.StatusNoContent
	var got http.Header
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(status)
	}))
	defer server.Close()
	p := NewPoster(server.URL, 1)
	defer p.Close()
	if err := p.Post(t.Context(), "one", []byte("text")); err != nil {
		t.Fatal(err)
	}
	want := webhook.Sign([]byte(Secret), []byte("text"))
	if got.Get(webhook.SignatureHeader) != want || got.Get(webhook.DeliveryHeader) != "one" || string(body) != "text" {
		t.Errorf("got %q with %v", body, got)
	}
	status = http.StatusInternalServerError
	if err := p.Post(t.Context(), "two", nil); err == nil || !strings.Contains(err.Error(), "500") {
		t.Errorf("got %v", err)
	}
}

// An echo replies with its command.
type echo struct{ closed bool }

func (e *echo) Do(_ context.Context, c Command) (Reply, error) {
	if c.Do == Stop {
		return Reply{}, errors.New("won't")
	}
	return Reply{N: c.N}, nil
}

func (e *echo) Close() error {
	e.closed = true
	return nil
}

func TestRun(t *testing.T) {
	t.Parallel()
	e := &echo{}
	in, commands := io.Pipe()
	replies, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- Run(t.Context(), in, out, func(_ context.Context, cfg *Config) (Worker, Reply, error) {
			return e, Reply{Addr: cfg.Role}, nil
		})
		_ = out.Close()
	}()
	decoder := json.NewDecoder(replies)
	for _, c := range []struct {
		in   any
		want Reply
	}{{Config{Role: "echo"}, Reply{Addr: "echo"}}, {Command{N: 3}, Reply{N: 3}}, {Command{Do: Stop}, Reply{Error: "stop: won't"}}} {
		if err := json.NewEncoder(commands).Encode(c.in); err != nil {
			t.Fatal(err)
		}
		var got Reply
		if err := decoder.Decode(&got); err != nil || got.Addr != c.want.Addr || got.N != c.want.N || got.Error != c.want.Error {
			t.Fatalf("got %+v, %v, want %+v", got, err, c.want)
		}
	}
	_ = commands.Close()
	if err := <-done; err != nil || !e.closed {
		t.Errorf("ended with %v, closed is %v", err, e.closed)
	}
}

func TestRunCannotStart(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := Run(t.Context(), strings.NewReader("{}"), &out, func(context.Context, *Config) (Worker, Reply, error) {
		return nil, Reply{}, errors.New("no")
	})
	if err == nil || !strings.Contains(out.String(), `"Error":"no"`) {
		t.Errorf("got %v and %s", err, &out)
	}
}
