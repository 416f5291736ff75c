package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/formsvc/toolkit/cmd/formsvc/internal/certs"
)

type healthCmd struct {
	Addr           string        `default:"127.0.0.1:8080" help:"Address that the server listens on."`
	TLSCert        string        `name:"tls-cert" placeholder:"FILE" help:"The server's --tls-cert; if set, the check uses HTTPS."`
	AutocertDomain []string      `name:"autocert-domain" placeholder:"DOMAIN" help:"The server's --autocert-domain; if set, the check uses HTTPS."`
	Timeout        time.Duration `default:"5s" help:"How long to wait for the response."`
}

// Run prints whether the server on this machine is ready or degraded, and fails if it is neither. It doesn't check the certificate: on this machine, the listener is
// the server that was started.
func (c *healthCmd) Run(ctx context.Context, std streams) error {
	if _, _, err := net.SplitHostPort(c.Addr); err != nil {
		return usageError{fmt.Errorf("--addr: %w", err)}
	}
	scheme, config := "http", &tls.Config{InsecureSkipVerify: true} //nolint:gosec // as said above
	if c.TLSCert != "" || len(c.AutocertDomain) > 0 {
		scheme = "https"
	}
	if len(c.AutocertDomain) > 0 {
		config.ServerName = certs.DomainName(c.AutocertDomain[0])
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+reachable(c.Addr)+"/readyz", nil)
	if err != nil {
		return usageError{fmt.Errorf("--addr: %w", err)}
	}
	// This ignores any proxy in the environment.
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
	var state struct {
		Status     string   `json:"status"`
		Components []string `json:"components"`
	}
	if err := json.Unmarshal(answer, &state); err != nil {
		return fmt.Errorf("what listens at %s is not formsvc: %w", c.Addr, err)
	}
	if len(state.Components) > 0 {
		state.Status += ": " + strings.Join(state.Components, ", ")
	}
	_, err = fmt.Fprintln(std.out, state.Status)
	return err
}
