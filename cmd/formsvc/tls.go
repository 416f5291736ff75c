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
	TLSCert           string   `name:"tls-cert" placeholder:"FILE" help:"Serve HTTPS with this certificate: PEM, with those that lead to its root behind it. Read again when it changes, and after SIGHUP. Defaults to plain HTTP."`
	TLSKey            string   `name:"tls-key" placeholder:"FILE" help:"The key of --tls-cert, in PEM."`
	AutocertDomain    []string `name:"autocert-domain" placeholder:"DOMAIN" help:"Serve HTTPS for this domain, with a certificate from Let's Encrypt, whose terms of service you accept by this; repeatable. --addr must then be port 443 for the public. On several nodes let a proxy have the certificate instead. Defaults to none."`
	AutocertEmail     string   `name:"autocert-email" placeholder:"EMAIL" help:"Whom the authority of --autocert-domain may write to. Defaults to nobody."`
	AutocertDirectory string   `name:"autocert-directory" placeholder:"URL" help:"The ACME directory of another authority, such as https://acme-staging-v02.api.letsencrypt.org/directory. Defaults to that of Let's Encrypt."`
	RedirectAddr      string   `name:"redirect-addr" placeholder:"ADDR" help:"Where to listen for plain HTTP, only to send browsers to HTTPS. Defaults to nowhere."`
}

// A certificates has the certificates of the server.
type certificates interface {
	// config says what connections get.
	config() *tls.Config
	// run keeps the certificates good until ctx ends. The server serves meanwhile.
	run(ctx context.Context)
	// expiry is when the first one of them ends; zero: there is none yet.
	expiry() time.Time
	// answering adds answers to an authority's questions to a handler for plain HTTP.
	answering(http.Handler) http.Handler
}

// certificates returns those of the flags, or nil if the server speaks plain HTTP. It
// reads files and writes nothing.
func (e *encryption) certificates(g *global, logger *slog.Logger) (certificates, error) {
	automatic := len(e.AutocertDomain) > 0
	switch {
	case (e.TLSCert == "") != (e.TLSKey == ""):
		return nil, usageError{errors.New("--tls-cert and --tls-key: need each other")}
	case e.TLSCert != "" && automatic:
		return nil, usageError{errors.New("--autocert-domain: is instead of --tls-cert")}
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

// publicURL is the address of the API when no flag says it.
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

// reachable returns an address at which this machine reaches what listens at addr.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip, ipErr := netip.ParseAddr(host); err != nil || host != "" && (ipErr != nil || !ip.IsUnspecified()) {
		return addr
	}
	return net.JoinHostPort("localhost", port)
}

// serverConfig is what all servers of HTTPS have in common.
func serverConfig(get func(*tls.ClientHelloInfo) (*tls.Certificate, error), protocols ...string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: append([]string{"h2", "http/1.1"}, protocols...), GetCertificate: get,
	}
}

// certPoll is how often files are looked at.
const certPoll = 5 * time.Second

// certFiles is a certificate in files, which somebody renews now and then.
type certFiles struct {
	cert, key string
	logger    *slog.Logger
	current   atomic.Pointer[tls.Certificate]
	tried     [2]os.FileInfo // the files that were last read, whatever came of it
}

// load reads the files. When they can't be used the certificate stays what it was.
func (f *certFiles) load() error {
	f.tried = f.look() // first: what is written meanwhile is read next time
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return err
	}
	f.current.Store(&pair)
	if !time.Now().Before(pair.Leaf.NotAfter) {
		f.logger.Warn("the certificate has expired", slog.String("file", f.cert), slog.Time("until", pair.Leaf.NotAfter))
	}
	return nil
}

// look returns what the files are now; nil: not there.
func (f *certFiles) look() (found [2]os.FileInfo) {
	for i, path := range []string{f.cert, f.key} {
		if info, err := os.Stat(path); err == nil {
			found[i] = info
		}
	}
	return found
}

// changed reports whether there are other files than those that were last read.
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

// run reads the files again when they change, or when somebody asks for it. While a
// new pair is being written its parts may not fit: what is read is used when they do.
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
			f.logger.ErrorContext(ctx, "the new certificate can't be used; the old one stays", slog.Any("error", err))
			continue
		}
		f.logger.InfoContext(ctx, "certificate loaded", slog.String("file", f.cert), slog.Time("until", f.expiry()))
	}
}

func (f *certFiles) expiry() time.Time { return f.current.Load().Leaf.NotAfter }

func (f *certFiles) answering(h http.Handler) http.Handler { return h }

// redirect sends browsers to the same page over HTTPS. Whatever else comes has told its
// secrets to everybody already, and is not to get used to that.
func redirect(baseURL string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		base, err := url.Parse(baseURL)
		if err != nil || !slices.Contains([]string{http.MethodGet, http.MethodHead}, r.Method) || !strings.HasPrefix(r.URL.Path, "/") {
			http.Error(w, "Use HTTPS.", http.StatusBadRequest)
			return
		}
		// Not where the request says it was sent: anybody can write that.
		http.Redirect(w, r, "https://"+base.Host+r.URL.RequestURI(), http.StatusPermanentRedirect) //nolint:gosec // to our own host
	})
}
