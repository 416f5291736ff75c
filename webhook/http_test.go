package webhook_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/webhooktest"
)

// unreachable returns a handler that fails the test.
func unreachable(t *testing.T) http.Handler {
	return http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the next handler was called")
	})
}

// untouched is a body that fails the test when it is read.
type untouched struct{ t *testing.T }

func (u untouched) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

func (u untouched) Close() error { return nil }

func TestHandlerPassesOnAuthenticRequests(t *testing.T) {
	v := newVerifier(t, nil, secret)
	handler := v.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, ok := webhook.FromContext(r.Context())
		if !ok {
			t.Error("no delivery in the context")
		}
		if d.Event != webhook.ResponseCreated || d.Attempt != 1 || d.ID == "" || string(d.Body) != body {
			t.Errorf("got delivery %+v", d)
		}
		again, err := io.ReadAll(r.Body)
		if err != nil || string(again) != body {
			t.Errorf("the body reads %q, %v", again, err)
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, webhooktest.NewRequest(secret, []byte(body)))
	equal(t, w.Code, http.StatusAccepted, "got %d")
}

func TestHandlerRefuses(t *testing.T) {
	const limit = 512
	tests := []struct {
		name   string
		change func(*http.Request)
		status int
		want   error
		header string // a header that the response must have
	}{
		{"no signature", func(r *http.Request) { r.Header.Del(webhook.SignatureHeader) },
			http.StatusUnauthorized, webhook.ErrNoSignature, "WWW-Authenticate"},
		{"malformed signature", func(r *http.Request) { r.Header.Set(webhook.SignatureHeader, "abc") },
			http.StatusUnauthorized, webhook.ErrMalformedSignature, "WWW-Authenticate"},
		{"wrong signature", func(r *http.Request) { r.Header.Set(webhook.SignatureHeader, strings.Repeat("0", 64)) },
			http.StatusUnauthorized, webhook.ErrMismatch, "WWW-Authenticate"},
		{"GET", func(r *http.Request) { r.Method = http.MethodGet },
			http.StatusMethodNotAllowed, webhook.ErrMethod, "Allow"},
		{"PUT", func(r *http.Request) { r.Method = http.MethodPut },
			http.StatusMethodNotAllowed, webhook.ErrMethod, "Allow"},
		{"OPTIONS", func(r *http.Request) { r.Method = http.MethodOptions },
			http.StatusMethodNotAllowed, webhook.ErrMethod, "Allow"},
		{"gzip", func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") },
			http.StatusUnsupportedMediaType, webhook.ErrContentEncoding, "Accept-Encoding"},
		{"gzip in a second header", func(r *http.Request) { r.Header["Content-Encoding"] = []string{"", "gzip"} },
			http.StatusUnsupportedMediaType, webhook.ErrContentEncoding, "Accept-Encoding"},
		{"declared too large", func(r *http.Request) { r.ContentLength = limit + 1; r.Body = untouched{t} },
			http.StatusRequestEntityTooLarge, webhook.ErrTooLarge, ""},
		{"too large without a length", func(r *http.Request) {
			long := bytes.Repeat([]byte("a"), limit+1)
			r.ContentLength, r.Body = -1, io.NopCloser(bytes.NewReader(long))
			r.Header.Set(webhook.SignatureHeader, webhook.Sign(secret, long))
		}, http.StatusRequestEntityTooLarge, webhook.ErrTooLarge, ""},
		{"over the limit of an outer handler", func(r *http.Request) { r.Body = http.MaxBytesReader(nil, r.Body, 5) },
			http.StatusRequestEntityTooLarge, webhook.ErrTooLarge, ""},
		{"broken body", func(r *http.Request) { r.Body = io.NopCloser(iotest.ErrReader(errors.New("10.0.0.1 left"))) },
			http.StatusBadRequest, webhook.ErrBody, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var rejected []error
			v := newVerifier(t, &webhook.Options{
				MaxBody:  limit,
				OnReject: func(_ *http.Request, err error) { rejected = append(rejected, err) },
			}, secret)
			r := webhooktest.NewRequest(secret, []byte(body))
			tt.change(r)
			w := httptest.NewRecorder()
			v.Handler(unreachable(t)).ServeHTTP(w, r)

			equal(t, w.Code, tt.status, "got %d")
			if len(rejected) != 1 || !errors.Is(rejected[0], tt.want) {
				t.Errorf("OnReject got %v, want %v", rejected, tt.want)
			}
			equal(t, webhook.Status(tt.want), tt.status, "Status(%v) = %d", tt.want)
			if tt.header != "" && w.Header().Get(tt.header) == "" {
				t.Errorf("the answer has no %s", tt.header)
			}
			if !strings.HasPrefix(w.Body.String(), "webhook: ") || strings.Contains(w.Body.String(), "10.0.0.1") {
				t.Errorf("the answer says %q", w.Body)
			}
		})
	}
}

func TestVerifyRequestRefusesBeforeReading(t *testing.T) {
	v := newVerifier(t, nil, secret)
	for name, change := range map[string]func(*http.Request){
		"length":         func(r *http.Request) { r.ContentLength = webhook.DefaultMaxBody + 1 },
		"no signature":   func(r *http.Request) { r.Header.Del(webhook.SignatureHeader) },
		"two signatures": func(r *http.Request) { r.Header.Add(webhook.SignatureHeader, "x") },
		"method":         func(r *http.Request) { r.Method = http.MethodDelete },
		"encoding":       func(r *http.Request) { r.Header.Set("Content-Encoding", "br") },
	} {
		t.Run(name, func(t *testing.T) {
			r := webhooktest.NewRequest(secret, []byte(body))
			r.Body = untouched{t}
			change(r)
			if _, err := v.VerifyRequest(httptest.NewRecorder(), r); err == nil {
				t.Error("verified")
			}
		})
	}
}

func TestVerifyRequestWithoutBody(t *testing.T) {
	v := newVerifier(t, nil, secret)
	r := webhooktest.NewRequest(secret, nil)
	r.Body = nil
	if d, err := v.VerifyRequest(nil, r); err != nil || len(d.Body) != 0 {
		t.Errorf("got %q, %v", d.Body, err)
	}
}

func TestMaxBodyIsInclusive(t *testing.T) {
	v := newVerifier(t, &webhook.Options{MaxBody: 4}, secret)
	for _, chunked := range []bool{false, true} {
		for content, want := range map[string]error{"": nil, "1234": nil, "12345": webhook.ErrTooLarge} {
			r := webhooktest.NewRequest(secret, []byte(content))
			if chunked {
				r.ContentLength = -1
			}
			if _, err := v.VerifyRequest(httptest.NewRecorder(), r); !errors.Is(err, want) {
				t.Errorf("%d bytes, chunked %v: got %v, want %v", len(content), chunked, err, want)
			}
		}
	}
}
