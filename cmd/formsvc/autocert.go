package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
)

// acmePause is between two lines of the log about a domain without a certificate: every
// client that comes meanwhile is another one.
const acmePause = time.Minute

// An acmeCertificates has certificates that an authority gives out by itself, after it
// has seen that we answer for a domain: at the TLS listener, or at the one of redirects.
// It is safe for concurrent use.
type acmeCertificates struct {
	manager *autocert.Manager
	domains []string
	logger  *slog.Logger

	mu    sync.Mutex
	until map[string]time.Time // by domain: when its certificate ends
	told  map[string]time.Time // by domain: when the log was told that there is none
}

// newACME checks the flags. The directory is made when there is something to keep.
func newACME(e *encryption, dir string, logger *slog.Logger) (*acmeCertificates, error) {
	c := &acmeCertificates{logger: logger, until: make(map[string]time.Time), told: make(map[string]time.Time)}
	for _, d := range e.AutocertDomain {
		d = domainName(d)
		if !strings.Contains(d, ".") || strings.Trim(d, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" || net.ParseIP(d) != nil {
			return nil, usageError{fmt.Errorf("--autocert-domain: %q is not a domain such as forms.example.com, in ASCII (xn--…)", d)}
		}
		c.domains = append(c.domains, d)
	}
	directory := e.AutocertDirectory
	if directory == "" {
		directory = autocert.DefaultACMEDirectory
	}
	if u, err := url.Parse(directory); err != nil || u.Scheme != "https" || u.Host == "" {
		return nil, usageError{errors.New("--autocert-directory: must begin with https://")}
	}
	c.manager = &autocert.Manager{
		Prompt: autocert.AcceptTOS, Cache: autocert.DirCache(dir), HostPolicy: c.allows,
		Email: e.AutocertEmail, Client: &acme.Client{DirectoryURL: directory, UserAgent: "formsvc"},
	}
	return c, nil
}

// allows refuses other domains. An authority of one's own may ask at another port than
// 80, which is then in the Host of its question.
func (c *acmeCertificates) allows(_ context.Context, host string) error {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if !slices.Contains(c.domains, domainName(host)) {
		return fmt.Errorf("%q is no --autocert-domain", host)
	}
	return nil
}

// domainName is a domain as it is compared.
func domainName(s string) string {
	return strings.ToLower(strings.TrimSuffix(strings.TrimSpace(s), "."))
}

func (c *acmeCertificates) config() *tls.Config { return serverConfig(c.certificate, acme.ALPNProto) }

// certificate returns the one for a connection, and orders it if there is none.
func (c *acmeCertificates) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	cert, err := c.manager.GetCertificate(hello)
	domain := strings.ToLower(hello.ServerName)
	if slices.Equal(hello.SupportedProtos, []string{acme.ALPNProto}) || !slices.Contains(c.domains, domain) {
		return cert, err // the authority's question, or somebody who looks for names
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.until[domain] = cert.Leaf.NotAfter
		return cert, nil
	}
	if now := time.Now(); now.Sub(c.told[domain]) >= acmePause {
		c.told[domain] = now
		c.logger.Error("there is no certificate for a domain", slog.String("domain", domain), slog.Any("error", err))
	}
	return nil, err
}

// run orders what is missing, so that the first visitor need not wait for it, and
// whoever starts the server sees in the log whether it works. Renewing is the
// manager's, a month before the end.
func (c *acmeCertificates) run(ctx context.Context) {
	ordered := make(chan struct{})
	go func() { // which the manager can't be told to give up, so at the end it is left alone
		defer close(ordered)
		c.order(ctx)
	}()
	select {
	case <-ctx.Done():
	case <-ordered:
		<-ctx.Done()
	}
}

func (c *acmeCertificates) order(ctx context.Context) {
	for _, domain := range c.domains {
		hello := &tls.ClientHelloInfo{
			ServerName: domain, SupportedProtos: []string{"h2"}, SignatureSchemes: []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256},
			SupportedCurves: []tls.CurveID{tls.CurveP256}, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
		}
		if cert, err := c.certificate(hello); err == nil && ctx.Err() == nil {
			c.logger.InfoContext(ctx, "certificate ready", slog.String("domain", domain), slog.Time("until", cert.Leaf.NotAfter))
		}
	}
}

func (c *acmeCertificates) expiry() (first time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.until {
		if first.IsZero() || t.Before(first) {
			first = t
		}
	}
	return first
}

func (c *acmeCertificates) answering(h http.Handler) http.Handler { return c.manager.HTTPHandler(h) }
