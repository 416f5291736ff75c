package webhooktest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/webhooktest"
)

// deliver sends body, signed with key, and returns the response and its body.
func deliver(ctx context.Context, url, key, body string) (*http.Response, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	r.Header = webhooktest.Header(key, []byte(body))
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer, string(text), err
}

// status is deliver for tests that check only the status.
func status(t *testing.T, url, key, body string) int {
	t.Helper()
	answer, _, err := deliver(t.Context(), url, key, body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode
}

func TestReceiverRecordsRequests(t *testing.T) {
	r := webhooktest.NewReceiver(t, []string{secret}, nil)
	body := "{ \"id\":\"e-1\",\r\n\"event\":\"response.created\" }\n"
	if got := status(t, r.URL()+"/a/b", secret, body); got != http.StatusOK {
		t.Fatalf("answered %d", got)
	}
	all := r.Deliveries()
	if len(all) != 1 || len(r.Rejected()) != 0 {
		t.Fatalf("recorded %d and %d", len(all), len(r.Rejected()))
	}
	got := all[0]
	if string(got.Delivery.Body) != body || got.Delivery.EventID != "e-1" || got.Delivery.Event != webhook.ResponseCreated {
		t.Errorf("got %+v", got.Delivery)
	}
	if got.Path != "/a/b" || got.Header.Get("Content-Type") != "application/json" || got.At.IsZero() || got.Err != nil {
		t.Errorf("got %+v", got)
	}
}

func TestReceiverRefuses(t *testing.T) {
	r := webhooktest.NewReceiver(t, []string{secret}, &webhook.Options{MaxBody: 10})
	r.Answer(webhooktest.Reply{Status: http.StatusAccepted})
	if got := status(t, r.URL(), "another", "{}"); got != http.StatusUnauthorized {
		t.Errorf("wrong secret: answered %d", got)
	}
	if got := status(t, r.URL(), secret, strings.Repeat("a", 11)); got != http.StatusRequestEntityTooLarge {
		t.Errorf("too large: answered %d", got)
	}
	rejected := r.Rejected()
	if len(rejected) != 2 || !errors.Is(rejected[0].Err, webhook.ErrMismatch) || !errors.Is(rejected[1].Err, webhook.ErrTooLarge) {
		t.Errorf("rejected %+v", rejected)
	}
	if len(r.Deliveries()) != 0 {
		t.Errorf("accepted %+v", r.Deliveries())
	}
	if got := status(t, r.URL(), secret, "{}"); got != http.StatusAccepted {
		t.Errorf("a refused request used up the reply: answered %d", got)
	}
}

func TestReceiverAnswers(t *testing.T) {
	r := webhooktest.NewReceiver(t, []string{"new", "old"}, nil)
	r.Answer(
		webhooktest.Reply{Status: http.StatusFound, Header: http.Header{"Location": {"/elsewhere"}}},
		webhooktest.Reply{Status: http.StatusInternalServerError, Body: "sorry"},
	)
	r.Answer(webhooktest.Reply{})
	r.AnswerAlways(webhooktest.Reply{Status: http.StatusGone})

	answer, _, err := deliver(t.Context(), r.URL(), "new", "{}")
	if err != nil || answer.StatusCode != http.StatusFound || answer.Header.Get("Location") != "/elsewhere" {
		t.Errorf("first: %v, %v", answer, err)
	}
	answer, text, err := deliver(t.Context(), r.URL(), "old", "{}")
	if err != nil || answer.StatusCode != http.StatusInternalServerError || text != "sorry" {
		t.Errorf("second: %v, %q, %v", answer, text, err)
	}
	for _, want := range []int{http.StatusOK, http.StatusGone, http.StatusGone} {
		if got := status(t, r.URL(), "new", "{}"); got != want {
			t.Errorf("answered %d, want %d", got, want)
		}
	}
}

func TestReceiverHangs(t *testing.T) {
	for _, ending := range []string{"the sender gives up", "the receiver closes"} {
		t.Run(ending, func(t *testing.T) {
			r := webhooktest.NewReceiver(t, []string{secret}, nil)
			r.Answer(webhooktest.Reply{Hang: true})
			ctx, giveUp := context.WithCancel(t.Context())
			defer giveUp()
			failed := make(chan error, 1)
			go func() {
				_, _, err := deliver(ctx, r.URL(), secret, "{}")
				failed <- err
			}()
			if _, err := r.Wait(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-failed:
				t.Fatalf("answered: %v", err)
			default:
			}
			if ending == "the receiver closes" {
				r.Close()
			} else {
				giveUp()
			}
			if err := <-failed; err == nil {
				t.Error("the delivery that hung was answered")
			}
			if ending == "the sender gives up" && status(t, r.URL(), secret, "{}") != http.StatusOK {
				t.Error("the next delivery was not answered with 200")
			}
		})
	}
}

func TestReceiverWait(t *testing.T) {
	r := webhooktest.NewReceiver(t, []string{secret}, nil)
	if _, err := r.Wait(t.Context(), 0); err != nil {
		t.Errorf("waiting for none: %v", err)
	}
	status(t, r.URL(), secret, "{}")
	status(t, r.URL(), "another", "{}")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := r.Wait(ctx, 1); err != nil || len(got) != 1 {
		t.Errorf("what has come: %d, %v", len(got), err)
	}
	got, err := r.Wait(ctx, 2)
	if !errors.Is(err, context.Canceled) || len(got) != 1 {
		t.Errorf("got %d, %v, want 1 and Canceled", len(got), err)
	}
	if want := "1 of 2 deliveries came, 1 requests were refused"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q in it", err, want)
	}
}

func TestReceiverCloses(t *testing.T) {
	r := webhooktest.NewReceiver(t, []string{secret}, nil)
	status(t, r.URL(), secret, "{}")
	r.Close()
	r.Close()
	if _, _, err := deliver(t.Context(), r.URL(), secret, "{}"); err == nil {
		t.Error("a closed receiver answered")
	}
	if len(r.Deliveries()) != 1 {
		t.Error("the record is gone")
	}
}
