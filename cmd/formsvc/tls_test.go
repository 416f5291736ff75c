//go:build long

package main_test

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A secured is an HTTPS server.
type secured struct {
	*server

	ca        *authority
	cert, key string // files
	addr      string
}

// startTLS starts a server with a certificate in files, whose serial number is 1.
func startTLS(t testing.TB, flags ...string) *secured {
	t.Helper()
	s := &secured{ca: newAuthority(t), cert: filepath.Join(t.TempDir(), "cert.pem"), key: filepath.Join(t.TempDir(), "key.pem")}
	s.ca.issue(t, s.cert, s.key, 1, time.Now().Add(time.Hour))
	s.server = start(t, databases()[0].dsn(t), append([]string{"--tls-cert", s.cert, "--tls-key", s.key}, flags...)...)
	s.addr = strings.TrimPrefix(s.url, "http://")
	s.url = "https://" + s.addr
	return s
}

func (s *secured) config() *tls.Config { return &tls.Config{RootCAs: s.ca.pool} }

func (s *secured) client(t testing.TB) *client {
	t.Helper()
	return trusting(newClient(t, s.url, s.firstKey(t)), s.config())
}

// serial returns the serial number of the certificate of new connections.
func (s *secured) serial(t testing.TB) int64 {
	t.Helper()
	state, err := shake(s.addr, s.config())
	if err != nil {
		t.Fatal(err)
	}
	return state.PeerCertificates[0].SerialNumber.Int64()
}

// HTTPS has HTTP/2 for clients that support it, no old versions of TLS, and a cookie for TLS alone.
func TestServesHTTPS(t *testing.T) {
	t.Parallel()
	s := startTLS(t, "--metrics-addr", "127.0.0.1:0")
	c := s.client(t)
	resp, err := c.http.Get(s.url + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.Proto != "HTTP/2.0" || resp.TLS.Version != tls.VersionTLS13 {
		t.Errorf("%s over %s", resp.Proto, tls.VersionName(resp.TLS.Version))
	}
	for version, want := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true} {
		config := s.config()
		config.MinVersion, config.MaxVersion = version, version
		if _, err := shake(s.addr, config); (err == nil) != want {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
	}

	v := newVisitor(t, s.url)
	v.client.Transport = c.http.Transport
	v.signIn(manage(t, s.dsn, "settings-link", "--base-url", s.url))
	site, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	if cookies := v.client.Jar.Cookies(site); len(cookies) != 1 || !strings.HasPrefix(cookies[0].Name, "__Host-") {
		t.Errorf("the cookie is not for TLS alone: %v", cookies)
	}
	if families, _ := scrape(t, s.server); value(families["formsvc_tls_certificate_expiry_timestamp_seconds"]) < float64(time.Now().Unix()) {
		t.Error("the metrics don't say when the certificate ends")
	}
}

// A new certificate is used for new connections without a restart. An unusable one is ignored and logged.
func TestCertificateIsReloaded(t *testing.T) {
	t.Parallel()
	s := startTLS(t)
	c := s.client(t)
	campaign := c.campaign(t, "Reload")
	body, end := io.Pipe() // a request in progress during the whole test
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+responsesPath(campaign), body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Authorization": {"Bearer " + c.key}, "Content-Type": {"application/json"}}
	answered := make(chan answer, 1)
	go func() {
		a, err := c.answered(req)
		if err != nil {
			t.Error(err)
		}
		answered <- a
	}()
	text, err := json.Marshal(submission("slow"))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = end.Write(text[:1])

	hangUp := func() {
		if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	s.ca.issue(t, s.cert, s.key, 2, time.Now().Add(time.Hour))
	hangUp()
	eventually(t, "the new certificate is used after SIGHUP", func() bool { return s.serial(t) == 2 })
	if err := os.WriteFile(s.cert, []byte("-----BEGIN CERTIFICATE-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	hangUp()
	eventually(t, "the log says that the file can't be used", func() bool {
		return strings.Contains(s.log.String(), "new certificate unusable; keeping the old one")
	})
	if n := s.serial(t); n != 2 {
		t.Errorf("certificate %d is used, want the one from before", n)
	}
	// Like tools that renew certificates: rename a new file over the old one.
	next := filepath.Join(filepath.Dir(s.cert), "next.pem")
	s.ca.issue(t, next, s.key, 3, time.Now().Add(time.Hour))
	if err := os.Rename(next, s.cert); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the certificate is used that took the place of the old one", func() bool { return s.serial(t) == 3 })

	_, _ = end.Write(text[1:])
	_ = end.Close()
	if a := <-answered; a.status != http.StatusCreated {
		t.Errorf("the request that was under way: %d %s", a.status, a.body)
	}
}
