// Package certs has the certificates of a server: in files, or from an ACME authority.
package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// A Source provides the certificates of the server.
type Source interface {
	// Config returns the TLS configuration of the listener.
	Config() *tls.Config
	// Run keeps the certificates up to date until ctx ends. The server serves meanwhile.
	Run(ctx context.Context)
	// Expiry returns when the first of them expires; zero if there is none yet.
	Expiry() time.Time
	// Answering adds the responses to an authority's challenges to a handler for plain HTTP.
	Answering(http.Handler) http.Handler
}

// serverConfig returns the TLS configuration that all HTTPS servers share.
func serverConfig(get func(*tls.ClientHelloInfo) (*tls.Certificate, error), protocols ...string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: append([]string{"h2", "http/1.1"}, protocols...), GetCertificate: get,
	}
}

// certPoll is the interval at which the files are checked.
const certPoll = 5 * time.Second

// certFiles is a certificate in files that are renewed from outside.
type certFiles struct {
	cert, key string
	logger    *slog.Logger
	poll      time.Duration
	current   atomic.Pointer[tls.Certificate]
	tried     [2][]byte // what was last read, even if it was unusable
}

// Files returns the certificate in two PEM files. It reads them again when they change and on SIGHUP.
func Files(cert, key string, logger *slog.Logger) (Source, error) {
	f := &certFiles{cert: cert, key: key, logger: logger, poll: certPoll}
	if _, err := f.load(); err != nil {
		return nil, err
	}
	return f, nil
}

// load reads the files, and reports whether they have changed. If they are unusable, it keeps the current certificate.
func (f *certFiles) load() (changed bool, err error) {
	cert, certErr := os.ReadFile(f.cert)
	key, keyErr := os.ReadFile(f.key)
	if f.current.Load() != nil && bytes.Equal(cert, f.tried[0]) && bytes.Equal(key, f.tried[1]) {
		return false, nil
	}
	f.tried = [2][]byte{cert, key}
	if err := errors.Join(certErr, keyErr); err != nil {
		return true, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return true, err
	}
	f.current.Store(&pair)
	if !time.Now().Before(pair.Leaf.NotAfter) {
		f.logger.Warn("certificate has expired", slog.String("file", f.cert), slog.Time("until", pair.Leaf.NotAfter))
	}
	return true, nil
}

// Config implements Source.
func (f *certFiles) Config() *tls.Config {
	return serverConfig(func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return f.current.Load(), nil })
}

// Run reloads the files when they change and on SIGHUP. While a new pair is being written, its parts may not match: it is
// used once they do.
func (f *certFiles) Run(ctx context.Context) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGHUP)
	defer signal.Stop(asked)
	tick := time.NewTicker(f.poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-asked:
		case <-tick.C:
		}
		switch changed, err := f.load(); {
		case err != nil:
			f.logger.ErrorContext(ctx, "new certificate unusable; keeping the old one", slog.Any("error", err))
		case changed:
			f.logger.InfoContext(ctx, "certificate loaded", slog.String("file", f.cert), slog.Time("until", f.Expiry()))
		}
	}
}

// Expiry implements Source.
func (f *certFiles) Expiry() time.Time { return f.current.Load().Leaf.NotAfter }

// Answering implements Source.
func (f *certFiles) Answering(h http.Handler) http.Handler { return h }

// Redirect sends browsers to the same page over HTTPS. It rejects other requests, which would otherwise keep sending
// secrets unencrypted.
func Redirect(baseURL string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		base, err := url.Parse(baseURL)
		if err != nil || !slices.Contains([]string{http.MethodGet, http.MethodHead}, r.Method) || !strings.HasPrefix(r.URL.Path, "/") {
			http.Error(w, "Use HTTPS.", http.StatusBadRequest)
			return
		}
		// Not to the request's Host: clients can set that to anything.
		http.Redirect(w, r, "https://"+base.Host+r.URL.RequestURI(), http.StatusPermanentRedirect) //nolint:gosec // to our own host
	})
}
