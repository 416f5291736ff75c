package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

type healthCmd struct {
	Addr           string        `default:"127.0.0.1:8080" help:"Where the server listens."`
	TLSCert        string        `name:"tls-cert" placeholder:"FILE" help:"As the server has it: then it is asked over HTTPS."`
	AutocertDomain []string      `name:"autocert-domain" placeholder:"DOMAIN" help:"As the server has it: then it is asked over HTTPS."`
	Timeout        time.Duration `default:"5s" help:"How long to wait for the answer."`
}

// Run asks the server on this machine whether it is ready, and fails if it is not. Its
// certificate is not checked: whoever listens there is who was started there.
func (c *healthCmd) Run(ctx context.Context, std streams) error {
	host, port, err := net.SplitHostPort(c.Addr)
	if err != nil {
		return usageError{fmt.Errorf("--addr: %w", err)}
	}
	switch host { // who listens on all addresses is on these, too
	case "", "0.0.0.0":
		host = "127.0.0.1"
	case "::":
		host = "::1"
	}
	scheme, config := "http", &tls.Config{InsecureSkipVerify: true} //nolint:gosec // as said above
	if c.TLSCert != "" || len(c.AutocertDomain) > 0 {
		scheme = "https"
	}
	if len(c.AutocertDomain) > 0 {
		config.ServerName = domainName(c.AutocertDomain[0])
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+net.JoinHostPort(host, port)+"/readyz", nil)
	if err != nil {
		return usageError{fmt.Errorf("--addr: %w", err)}
	}
	// A proxy is not asked, whatever the environment says.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the server is not ready: %s %s", resp.Status, answer)
	}
	_, err = fmt.Fprintln(std.out, "ready")
	return err
}
