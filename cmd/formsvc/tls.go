package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"

	"github.com/formsvc/toolkit/cmd/formsvc/internal/certs"
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

// certificates returns the certificates of the flags, or nil for plain HTTP. It reads files and writes nothing.
func (e *encryption) certificates(g *global, logger *slog.Logger) (certs.Source, error) {
	automatic := len(e.AutocertDomain) > 0
	switch {
	case (e.TLSCert == "") != (e.TLSKey == ""):
		return nil, usageError{errors.New("--tls-cert and --tls-key: set both")}
	case e.TLSCert != "" && automatic:
		return nil, usageError{errors.New("--autocert-domain: can't be combined with --tls-cert")}
	case !automatic && (e.AutocertEmail != "" || e.AutocertDirectory != ""):
		return nil, usageError{errors.New("--autocert-email, --autocert-directory: need --autocert-domain")}
	case e.TLSCert != "":
		c, err := certs.Files(e.TLSCert, e.TLSKey, logger)
		if err != nil {
			return nil, usageError{fmt.Errorf("--tls-cert, --tls-key: %w", err)}
		}
		return c, nil
	case automatic:
		c, err := certs.ACME(certs.ACMEOptions{
			Domains: e.AutocertDomain, Email: e.AutocertEmail, Directory: e.AutocertDirectory, Dir: filepath.Join(g.Data, "autocert"),
		}, logger)
		if err != nil {
			return nil, usageError{err}
		}
		return c, nil
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
		host := certs.DomainName(e.AutocertDomain[0])
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
