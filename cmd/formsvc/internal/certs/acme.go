package certs

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
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

// acmePause is the minimum time between two log lines about a domain without a certificate: every connection is a failure
// meanwhile.
const acmePause = time.Minute

// An acmeCertificates gets certificates from an ACME authority, which first checks that this server controls the domain:
// at the TLS listener, or at the redirect listener. It is safe for concurrent use.
type acmeCertificates struct {
	manager *autocert.Manager
	domains []string
	logger  *slog.Logger

	mu     sync.Mutex
	expiry map[string]time.Time // by domain
	told   map[string]time.Time // by domain: when its missing certificate was last logged
}

// ACMEOptions are the options of [ACME].
type ACMEOptions struct {
	Domains   []string
	Email     string // of the operator, for the authority; "" for none
	Directory string // of another authority than Let's Encrypt
	Dir       string // where certificates are stored; created with the first one
}

// ACME returns certificates of an ACME authority. Its errors name the flags --autocert-….
func ACME(o ACMEOptions, logger *slog.Logger) (Source, error) {
	c := &acmeCertificates{logger: logger, expiry: make(map[string]time.Time), told: make(map[string]time.Time)}
	for _, d := range o.Domains {
		d = DomainName(d)
		if !strings.Contains(d, ".") || strings.Trim(d, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" || net.ParseIP(d) != nil {
			return nil, fmt.Errorf("--autocert-domain: %q is not a domain such as forms.example.com, in ASCII (xn--…)", d)
		}
		c.domains = append(c.domains, d)
	}
	directory := o.Directory
	if directory == "" {
		directory = autocert.DefaultACMEDirectory
	}
	if u, err := url.Parse(directory); err != nil || u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("--autocert-directory: must begin with https://")
	}
	c.manager = &autocert.Manager{
		Prompt: autocert.AcceptTOS, Cache: autocert.DirCache(o.Dir), HostPolicy: c.allows,
		Email: o.Email, Client: &acme.Client{DirectoryURL: directory, UserAgent: "formsvc"},
	}
	return c, nil
}

// allows rejects other domains. A private authority may use a port other than 80, which is then part of host.
func (c *acmeCertificates) allows(_ context.Context, host string) error {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if !slices.Contains(c.domains, DomainName(host)) {
		return fmt.Errorf("%q is not one of the domains of --autocert-domain", host)
	}
	return nil
}

// DomainName normalizes a domain for comparisons.
func DomainName(s string) string {
	return strings.ToLower(strings.TrimSuffix(strings.TrimSpace(s), "."))
}

// Config implements Source.
func (c *acmeCertificates) Config() *tls.Config { return serverConfig(c.certificate, acme.ALPNProto) }

// certificate returns the certificate for a connection, and orders it if there is none.
func (c *acmeCertificates) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	cert, err := c.manager.GetCertificate(hello)
	domain := strings.ToLower(hello.ServerName)
	if slices.Equal(hello.SupportedProtos, []string{acme.ALPNProto}) || !slices.Contains(c.domains, domain) {
		return cert, err // the authority's challenge, or a scan for other names
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.expiry[domain] = cert.Leaf.NotAfter
		return cert, nil
	}
	if time.Since(c.told[domain]) >= acmePause {
		c.told[domain] = time.Now()
		c.logger.Error("no certificate for domain", slog.String("domain", domain), slog.Any("error", err))
	}
	return nil, err
}

// Run orders missing certificates, so that the first visitor doesn't wait and the operator sees the result in the log.
// The manager renews certificates a month before they expire.
func (c *acmeCertificates) Run(ctx context.Context) {
	go c.order(ctx) // can't be canceled: on shutdown it is left running
	<-ctx.Done()
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

// Expiry implements Source.
func (c *acmeCertificates) Expiry() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.expiry) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(slices.Collect(maps.Values(c.expiry)), time.Time.Compare)
}

// Answering implements Source.
func (c *acmeCertificates) Answering(h http.Handler) http.Handler { return c.manager.HTTPHandler(h) }
