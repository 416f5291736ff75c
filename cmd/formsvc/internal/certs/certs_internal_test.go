package certs

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// issue writes a certificate with a serial number, and its key.
func issue(t testing.TB, cert, key string, serial int64) {
	t.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &own.PublicKey, own)
	secret, keyErr := x509.MarshalPKCS8PrivateKey(own)
	if err := errors.Join(err, keyErr,
		os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600),
		os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// lines are the lines of a log.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// A new certificate is used for new connections, when its files change and after SIGHUP. An unusable one is ignored and logged.
func TestCertificateIsReloaded(t *testing.T) {
	asked := make(chan os.Signal, 1) // so that an early signal doesn't end the test
	signal.Notify(asked, syscall.SIGHUP)
	defer signal.Stop(asked)
	for name, poll := range map[string]time.Duration{"SIGHUP": time.Hour, "polling": time.Millisecond} {
		dir, log := t.TempDir(), make(lines, 100)
		cert, key, next := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "next.pem")
		issue(t, cert, key, 1)
		source, err := Files(cert, key, slog.New(slog.NewTextHandler(log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		source.(*certFiles).poll = poll
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); source.Run(ctx) }()
		for _, x := range []struct {
			change func() error
			log    string
			serial int64
		}{
			{func() error { issue(t, next, key, 2); return nil }, "new certificate unusable; keeping the old one", 1}, // the parts don't match
			{func() error { return os.Rename(next, cert) }, "certificate loaded", 2},                                  // like tools that renew certificates
			{func() error { return os.Remove(cert) }, "new certificate unusable; keeping the old one", 2},
		} {
			if err := x.change(); err != nil {
				t.Fatal(err)
			}
			for line := ""; !strings.Contains(line, x.log); {
				if poll == time.Hour {
					_ = syscall.Kill(os.Getpid(), syscall.SIGHUP)
					<-asked
				}
				select {
				case line = <-log:
				default:
					runtime.Gosched()
				}
			}
			pair, err := source.Config().GetCertificate(nil)
			if err != nil || pair.Leaf.SerialNumber.Int64() != x.serial || !source.Expiry().Equal(pair.Leaf.NotAfter) {
				t.Errorf("%s, %s: certificate %v (%v), want %d", name, x.log, pair.Leaf.SerialNumber, err, x.serial)
			}
		}
		cancel()
		<-ended
	}
}

// If no certificate is issued, the log says why, but not for each connection. Nothing is ordered for other names.
func TestNoAutomaticCertificate(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	authority := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		http.Error(w, "not today", http.StatusForbidden)
	}))
	defer authority.Close()
	var log bytes.Buffer
	source, err := ACME(ACMEOptions{Domains: []string{"Forms.example.test"}, Directory: authority.URL, Dir: t.TempDir()}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	source.(*acmeCertificates).manager.Client.HTTPClient = authority.Client()
	for name, orders := range map[string]bool{"other.example.test": false, "localhost": false, "": false, "forms.example.test": true} {
		before := asked.Load()
		for range 3 {
			if _, err := source.Config().GetCertificate(&tls.ClientHelloInfo{ServerName: name, SupportedProtos: []string{"h2"}}); err == nil {
				t.Errorf("there is a certificate for %q", name)
			}
		}
		if (asked.Load() > before) != orders {
			t.Errorf("%q: the authority was asked %d times", name, asked.Load()-before)
		}
	}
	if n := strings.Count(log.String(), "no certificate for domain"); n != 1 || !strings.Contains(log.String(), "not today") && !strings.Contains(log.String(), "403") {
		t.Errorf("logged %d times:\n%s", n, &log)
	}
}
