package webhook_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
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
	v, err := webhook.NewVerifier(secrets, opts)
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

// signed returns headers with the signature of body by key.
func signed(key, body string) http.Header {
	h := http.Header{}
	h.Set(webhook.SignatureHeader, webhook.Sign([]byte(key), []byte(body)))
	return h
}

// vectors returns the golden vectors or ends the test.
func vectors(tb testing.TB) []webhooktest.Vector {
	tb.Helper()
	all, err := webhooktest.Vectors()
	if err != nil {
		tb.Fatal(err)
	}
	return all
}

func TestVectors(t *testing.T) {
	for _, vec := range vectors(t) {
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
			if w.Code != http.StatusInternalServerError {
				t.Errorf("Handler: got %d, want 500", w.Code)
			}
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

func TestVerifierKeepsItsOwnSecrets(t *testing.T) {
	secrets := []string{secret}
	v := newVerifier(t, nil, secrets...)
	secrets[0] = "changed"
	if _, err := v.Verify([]byte(body), signed(secret, body)); err != nil {
		t.Error(err)
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
			d, err := v.Verify([]byte(tt.body), h)
			if err != nil {
				t.Fatal(err)
			}
			if d.Event != tt.event || d.EventID != tt.id {
				t.Errorf("got %q %q, want %q %q", d.Event, d.EventID, tt.event, tt.id)
			}
			if d.ID != "forged-id" {
				t.Errorf("the header's hint is %q", d.ID)
			}
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
		d, err := v.Verify([]byte(body), h)
		if err != nil {
			t.Fatal(err)
		}
		if d.Attempt != want {
			t.Errorf("attempt %q: got %d, want %d", value, d.Attempt, want)
		}
	}
}

func TestVerifyReturnsNothingWithAnError(t *testing.T) {
	v := newVerifier(t, nil, secret)
	h := webhooktest.Header("another", []byte(body))
	d, err := v.Verify([]byte(body), h)
	if !errors.Is(err, webhook.ErrMismatch) {
		t.Fatalf("got %v, want ErrMismatch", err)
	}
	if d.ID != "" || d.Event != "" || d.EventID != "" || d.Attempt != 0 || d.Body != nil {
		t.Errorf("got %+v, want the zero delivery", d)
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
		for _, part := range []string{secret, "leaked", "Summer", webhook.Sign([]byte(secret), []byte(body))} {
			if strings.Contains(err.Error(), part) {
				t.Errorf("%q repeats %q", err, part)
			}
		}
	}
}

func TestVerifierIsSafeForConcurrentUse(t *testing.T) {
	v := newVerifier(t, &webhook.Options{OnReject: func(*http.Request, error) {}}, "new", "old")
	handler := v.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, _ := webhook.FromContext(r.Context())
		_, _ = fmt.Fprint(w, d.EventID)
	}))
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 50 {
				id := fmt.Sprintf("e-%d-%d", i, j)
				content := fmt.Appendf(nil, `{"id":%q,"event":"response.created"}`, id)
				key, status := "old", http.StatusOK
				if j%3 == 0 {
					key, status, id = "wrong", http.StatusUnauthorized, webhook.ErrMismatch.Error()+"\n"
				}
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, webhooktest.NewRequest(key, content))
				if w.Code != status || w.Body.String() != id {
					t.Errorf("got %d %q, want %d %q", w.Code, w.Body, status, id)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkVerify(b *testing.B) {
	v := newVerifier(b, nil, secret)
	h := signed(secret, body)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.Verify([]byte(body), h); err != nil {
			b.Fatal(err)
		}
	}
}
