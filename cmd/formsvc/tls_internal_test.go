package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// certificate writes a certificate for 127.0.0.1 and example.com and its key to files, and returns a client that trusts it.
func certificate(t testing.TB) (certFile, keyFile string, client *http.Client) {
	t.Helper()
	other := httptest.NewTLSServer(nil)
	defer other.Close()
	pair := other.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	certFile, keyFile = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	noError(t, errors.Join(err, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}), 0o600),
		os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600)))
	client = other.Client()
	client.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	return certFile, keyFile, client
}

// With a certificate, the API is served over TLS only, with HTTP/2, and links and health checks use HTTPS.
func TestServeTLS(t *testing.T) {
	t.Parallel()
	certFile, keyFile, client := certificate(t)
	s := newShell(t).serve(t, "--tls-cert", certFile, "--tls-key", keyFile, "--redirect-addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0")
	addr := strings.TrimPrefix(s.url, "http://")
	contains(t, "the first start", s.out.String(), "https://"+addr+"/v1/campaigns")
	resp, err := client.Get("https://" + addr + "/healthz")
	if err != nil || resp.StatusCode != http.StatusOK || resp.Proto != "HTTP/2.0" || resp.TLS.Version != tls.VersionTLS13 {
		t.Fatalf("%+v, %v", resp, err)
	}
	_ = resp.Body.Close()
	if conn, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS11, MaxVersion: tls.VersionTLS11}); err == nil {
		_ = conn.Close()
		t.Error("TLS 1.1 is served")
	}
	if resp, err := http.Get(s.url + "/healthz"); err == nil {
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			t.Error("plain HTTP is served")
		}
	}
	contains(t, "the metrics", s.metrics(t), "formsvc_tls_certificate_expiry_timestamp_seconds 3")
	if r := s.pipe(t, "", "health", "--addr", addr, "--tls-cert", certFile); r.status != 0 {
		t.Errorf("health: %+v", r)
	}
	link := strings.TrimSpace(s.do(t, "console-link"))
	contains(t, "console-link", link, "https://"+addr+"/console/")
	client.Jar, _ = cookiejar.New(nil)
	signedIn(t, client, link)
	if cookies := client.Jar.Cookies(resp.Request.URL); len(cookies) != 1 || !strings.HasPrefix(cookies[0].Name, "__Host-") {
		t.Errorf("the cookie is not for TLS alone: %v", cookies)
	}
	redirects := s.log.wait(s.ctx, `"redirectAddr":"([^"]+)"`)[1]
	resp = must(http.DefaultTransport.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+redirects+"/docs?x=1", nil)))
	_ = resp.Body.Close()
	equal(t, resp.Header.Get("Location"), "https://"+addr+"/docs?x=1", "redirected to %q")
}
