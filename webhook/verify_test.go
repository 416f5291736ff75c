package webhook_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/webhooktest"
)

const secret = "whsec_5f1c0b9e4d7a42d3"

const body = `{"id":"0193bb79-f340-7000-8000-000000000001","event":"response.created","timestamp":"2026-11-21T08:30:00.123Z",` +
	`"data":{"campaign":{"uuid":"c-1","title":"Summer grant"},"response":{"uuid":"r-1","status":"pending"}}}`

// newVerifier returns a verifier or ends the test.
func newVerifier(tb testing.TB, opts *webhook.Options, secrets ...string) *webhook.Verifier {
	tb.Helper()
	return must(webhook.NewVerifier(secrets, opts))
}

// signed returns headers with the signature of body by key.
func signed(key, body string) http.Header {
	h := http.Header{}
	h.Set(webhook.SignatureHeader, webhook.Sign(key, []byte(body)))
	return h
}

func TestVectors(t *testing.T) {
	for _, vec := range must(webhooktest.Vectors()) {
		t.Run(vec.Name, func(t *testing.T) {
			v, err := webhook.NewVerifier(vec.Secrets, nil)
			if errors.Is(vec.Want, webhook.ErrNoSecret) {
				if !errors.Is(err, webhook.ErrNoSecret) {
					t.Fatalf("NewVerifier: got %v, want ErrNoSecret", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			d, err := v.Verify(vec.Body, vec.Header)
			if !errors.Is(err, vec.Want) {
				t.Fatalf("Verify: got %v, want %v", err, vec.Want)
			}
			if err == nil && !bytes.Equal(d.Body, vec.Body) {
				t.Error("Verify: the delivery has another body")
			}

			r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(vec.Body))
			r.Header = vec.Header
			if _, err = v.VerifyRequest(nil, r); !errors.Is(err, vec.Want) {
				t.Errorf("VerifyRequest: got %v, want %v", err, vec.Want)
			}
		})
	}
}

func TestNewVerifierRefuses(t *testing.T) {
	tests := []struct {
		name    string
		secrets []string
		opts    *webhook.Options
		is      error
	}{
		{"nil", nil, nil, webhook.ErrNoSecret},
		{"none", []string{}, nil, webhook.ErrNoSecret},
		{"empty", []string{""}, nil, webhook.ErrNoSecret},
		{"one of two empty", []string{secret, ""}, nil, webhook.ErrNoSecret},
		{"zero byte, the same HMAC key as none", []string{"\x00"}, nil, webhook.ErrNoSecret},
		{"zero bytes", []string{strings.Repeat("\x00", 64)}, nil, webhook.ErrNoSecret},
		{"negative tolerance", []string{secret}, &webhook.Options{Tolerance: -1}, nil},
		{"negative limit", []string{secret}, &webhook.Options{MaxBody: -1}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v, err := webhook.NewVerifier(tt.secrets, tt.opts)
			if err == nil || v != nil {
				t.Fatalf("got %v, %v, want an error", v, err)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("got %v, want %v", err, tt.is)
			}
			if !strings.HasPrefix(err.Error(), "webhook: ") {
				t.Errorf("text %q does not name the package", err)
			}
		})
	}
}

func TestVerifierWithoutSecretsRefuses(t *testing.T) {
	for name, v := range map[string]*webhook.Verifier{"zero": {}, "nil": nil} {
		t.Run(name, func(t *testing.T) {
			if _, err := v.Verify([]byte(body), signed("", body)); !errors.Is(err, webhook.ErrNoSecret) {
				t.Errorf("Verify: got %v, want ErrNoSecret", err)
			}
			w := httptest.NewRecorder()
			v.Handler(unreachable(t)).ServeHTTP(w, webhooktest.NewRequest(secret, []byte(body)))
			equal(t, w.Code, http.StatusInternalServerError, "Handler: got %d")
		})
	}
}

func TestVerifySeveralSecrets(t *testing.T) {
	v := newVerifier(t, nil, "new", "old", "new")
	tests := []struct {
		key   string
		index int
		want  error
	}{
		{"new", 0, nil},
		{"old", 1, nil},
		{"older", 0, webhook.ErrMismatch},
		{"newold", 0, webhook.ErrMismatch},
	}
	for _, tt := range tests {
		t.Run(tt.key, func(t *testing.T) {
			d, err := v.Verify([]byte(body), signed(tt.key, body))
			if !errors.Is(err, tt.want) || d.SecretIndex != tt.index {
				t.Errorf("got index %d and %v, want %d and %v", d.SecretIndex, err, tt.index, tt.want)
			}
		})
	}
}

func TestDeliveryTakesTheEventFromTheSignedBody(t *testing.T) {
	v := newVerifier(t, nil, secret)
	tests := []struct {
		name, body string
		event      webhook.EventType
		id         string
	}{
		{"event", body, webhook.ResponseCreated, "0193bb79-f340-7000-8000-000000000001"},
		{"no id", `{"event":"response.created"}`, webhook.ResponseCreated, ""},
		{"unknown type", `{"event":"response.archived","id":"e-1"}`, "response.archived", "e-1"},
		{"no type", `{"id":"e-1"}`, "", ""},
		{"other JSON", `[1,2]`, "", ""},
		{"members of other types", `{"id":7,"event":"response.created"}`, "", ""},
		{"not JSON", `hello`, "", ""},
		{"cut off", body[:len(body)-1], "", ""},
		{"empty", ``, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := signed(secret, tt.body)
			h.Set(webhook.EventHeader, "forged.event")
			h.Set(webhook.DeliveryHeader, "forged-id")
			d := must(v.Verify([]byte(tt.body), h))
			if d.Event != tt.event || d.EventID != tt.id {
				t.Errorf("got %q %q, want %q %q", d.Event, d.EventID, tt.event, tt.id)
			}
			equal(t, d.ID, "forged-id", "the header's hint is %q")
		})
	}
}

func TestDeliveryAttempt(t *testing.T) {
	v := newVerifier(t, nil, secret)
	for value, want := range map[string]int{
		"1": 1, "4": 4, "": 0, "0": 0, "-1": 0, "1.5": 0, "x": 0, " 1": 0, "99999999999999999999": 0,
	} {
		h := signed(secret, body)
		h.Set(webhook.AttemptHeader, value)
		d := must(v.Verify([]byte(body), h))
		equal(t, d.Attempt, want, "attempt %q: got %d", value)
	}
}

func TestErrorsContainNothingSecret(t *testing.T) {
	v := newVerifier(t, nil, secret)
	for _, h := range []http.Header{
		signed("another", body),
		{"X-Service-Signature": {"leaked" + strings.Repeat("0", 58)}},
		{"X-Service-Signature": {"leaked"}},
		{"X-Service-Signature": {"leaked", "leaked"}},
		{},
	} {
		_, err := v.Verify([]byte(body), h)
		if err == nil {
			t.Fatal("verified")
		}
		for _, part := range []string{secret, "leaked", "Summer", webhook.Sign(secret, []byte(body))} {
			if strings.Contains(err.Error(), part) {
				t.Errorf("%q repeats %q", err, part)
			}
		}
	}
}

// must returns the result of a call that can't fail here.
func must[T any](result T, err error) T {
	if err != nil {
		panic(err)
	}
	return result
}

// equal fails the test unless got is want. The format has a verb for each argument, and the last one for got.
func equal[T comparable](t testing.TB, got, want T, format string, args ...any) {
	t.Helper()
	if got != want {
		t.Errorf(format+", want %v", append(slices.Clone(args), got, want)...)
	}
}
