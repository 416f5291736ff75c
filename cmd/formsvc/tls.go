package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// encryption are the flags of TLS.
type encryption struct {
	TLSCert           string   `name:"tls-cert" placeholder:"FILE" help:"Serve HTTPS with this certificate, a PEM file with the whole chain. Reloaded when it changes and after SIGHUP. Defaults to plain HTTP."`
	TLSKey            string   `name:"tls-key" placeholder:"FILE" help:"Private key of --tls-cert, a PEM file."`
	AutocertDomain    []string `name:"autocert-domain" placeholder:"DOMAIN" help:"Serve HTTPS for this domain with a certificate from Let's Encrypt, and accept its terms of service; repeatable. --addr must be port 443 for the public. On several nodes, let a proxy hold the certificate instead. Defaults to none."`
	AutocertEmail     string   `name:"autocert-email" placeholder:"EMAIL" help:"Contact address for the authority of --autocert-domain. Defaults to none."`
	AutocertDirectory string   `name:"autocert-directory" placeholder:"URL" help:"ACME directory of another authority, such as https://acme-staging-v02.api.letsencrypt.org/directory. Defaults to Let's Encrypt."`
	RedirectAddr      string   `name:"redirect-addr" placeholder:"ADDR" help:"Address to listen on for plain HTTP, only to redirect browsers to HTTPS. Defaults to none."`
}

// A certificates provides the certificates of the server.
type certificates interface {
	// config returns the TLS configuration of the listener.
	config() *tls.Config
	// run keeps the certificates up to date until ctx ends. The server serves meanwhile.
	run(ctx context.Context)
	// expiry returns when the first of them expires; zero if there is none yet.
	expiry() time.Time
	// answering adds the responses to an authority's challenges to a handler for plain HTTP.
	answering(http.Handler) http.Handler
}

// certificates returns the certificates of the flags, or nil for plain HTTP. It reads files and writes nothing.
func (e *encryption) certificates(g *global, logger *slog.Logger) (certificates, error) {
	automatic := len(e.AutocertDomain) > 0
	switch {
	case (e.TLSCert == "") != (e.TLSKey == ""):
		return nil, usageError{errors.New("--tls-cert and --tls-key: set both")}
	case e.TLSCert != "" && automatic:
		return nil, usageError{errors.New("--autocert-domain: can't be combined with --tls-cert")}
	case !automatic && (e.AutocertEmail != "" || e.AutocertDirectory != ""):
		return nil, usageError{errors.New("--autocert-email, --autocert-directory: need --autocert-domain")}
	case e.TLSCert != "":
		c := &certFiles{cert: e.TLSCert, key: e.TLSKey, logger: logger}
		if err := c.load(); err != nil {
			return nil, usageError{fmt.Errorf("--tls-cert, --tls-key: %w", err)}
		}
		return c, nil
	case automatic:
		return newACME(e, filepath.Join(g.Data, "autocert"), logger)
	case e.RedirectAddr != "":
		return nil, usageError{errors.New("--redirect-addr: needs --tls-cert or --autocert-domain")}
	}
	return nil, nil //nolint:nilnil // there are none
}

// encrypted reports whether the flags ask for TLS.
func (e *encryption) encrypted() bool { return e.TLSCert != "" || len(e.AutocertDomain) > 0 }

// publicURL returns the address of the API if no flag sets it.
func (e *encryption) publicURL(listening net.Addr) string {
	switch {
	case len(e.AutocertDomain) > 0:
		host := domainName(e.AutocertDomain[0])
		if _, port, err := net.SplitHostPort(listening.String()); err == nil && port != "443" {
			host = net.JoinHostPort(host, port)
		}
		return "https://" + host
	case e.TLSCert != "":
		return "https://" + reachable(listening.String())
	}
	return "http://" + reachable(listening.String())
}

// reachable returns an address at which this machine reaches a listener at addr.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip, ipErr := netip.ParseAddr(host); err != nil || host != "" && (ipErr != nil || !ip.IsUnspecified()) {
		return addr
	}
	return net.JoinHostPort("localhost", port)
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
	current   atomic.Pointer[tls.Certificate]
	tried     [2]os.FileInfo // the files that were last read, even if that failed
}

// load reads the files. If they are unusable, it keeps the current certificate.
func (f *certFiles) load() error {
	f.tried = f.look() // first, so that later changes are noticed
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return err
	}
	f.current.Store(&pair)
	if !time.Now().Before(pair.Leaf.NotAfter) {
		f.logger.Warn("certificate has expired", slog.String("file", f.cert), slog.Time("until", pair.Leaf.NotAfter))
	}
	return nil
}

// look returns the state of the files; nil for a missing one.
func (f *certFiles) look() (found [2]os.FileInfo) {
	for i, path := range []string{f.cert, f.key} {
		if info, err := os.Stat(path); err == nil {
			found[i] = info
		}
	}
	return found
}

// changed reports whether the files differ from those that were last read.
func (f *certFiles) changed() bool {
	for i, now := range f.look() {
		was := f.tried[i]
		if (now == nil) != (was == nil) {
			return true
		}
		if now != nil && (!os.SameFile(now, was) || !now.ModTime().Equal(was.ModTime()) || now.Size() != was.Size()) {
			return true
		}
	}
	return false
}

func (f *certFiles) config() *tls.Config {
	return serverConfig(func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return f.current.Load(), nil })
}

// run reloads the files when they change and on SIGHUP. While a new pair is being written, its parts may not match: it is
// used once they do.
func (f *certFiles) run(ctx context.Context) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGHUP)
	defer signal.Stop(asked)
	tick := time.NewTicker(certPoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-asked:
		case <-tick.C:
			if !f.changed() {
				continue
			}
		}
		if err := f.load(); err != nil {
			f.logger.ErrorContext(ctx, "new certificate unusable; keeping the old one", slog.Any("error", err))
			continue
		}
		f.logger.InfoContext(ctx, "certificate loaded", slog.String("file", f.cert), slog.Time("until", f.expiry()))
	}
}

func (f *certFiles) expiry() time.Time { return f.current.Load().Leaf.NotAfter }

func (f *certFiles) answering(h http.Handler) http.Handler { return h }

// redirect sends browsers to the same page over HTTPS. It rejects other requests, which would otherwise keep sending
// secrets unencrypted.
func redirect(baseURL string) http.Handler {
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
