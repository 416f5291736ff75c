package delivery

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"
)

// ErrAddressRefused is wrapped by the error of a connection that [Options.Control] refused. An
// [Options.Transport] with its own checks should wrap it, too.
var ErrAddressRefused = errors.New("delivery: address refused")

// newTransport returns the transport of an engine with options o, which must have defaults filled
// in.
func newTransport(o *Options) *http.Transport {
	step := min(10*time.Second, o.Timeout)
	dialer := &net.Dialer{Timeout: step, KeepAlive: 30 * time.Second, Control: guard(o.Control)}
	inFlight := 5 * o.Concurrency // in both bulkheads
	return &http.Transport{
		// A proxy from the environment would bypass Control.
		Proxy:       nil,
		DialContext: dialer.DialContext,
		TLSClientConfig: &tls.Config{
			MinVersion:         tls.VersionTLS12,
			ClientSessionCache: tls.NewLRUClientSessionCache(4 * inFlight),
		},
		TLSHandshakeTimeout: step,
		ForceAttemptHTTP2:   true,
		HTTP2: &http.HTTP2Config{
			// Otherwise a dead connection would be reused after each timeout.
			SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second,
			// This limits how much unread data of a receiver is held in memory; the default is 4
			// MiB for each request.
			MaxReceiveBufferPerStream: 64 << 10, MaxReceiveBufferPerConnection: 1 << 20,
		},
		// Endpoints may share a host, so one host may need every slot.
		MaxIdleConns:        4 * inFlight,
		MaxIdleConnsPerHost: max(o.Concurrency, o.PerEndpoint),
		// Also limits how long a connection outlives a change of Control's decision.
		IdleConnTimeout: 90 * time.Second,
		// The size limit must hold for the bytes in memory.
		DisableCompression: true,
		// Parsed headers take up to sixteen times as much memory while they arrive.
		MaxResponseHeaderBytes: 16 << 10,
	}
}

// guard makes errors of a Control function recognizable.
func guard(control func(string, string, syscall.RawConn) error) func(string, string, syscall.RawConn) error {
	return func(network, address string, c syscall.RawConn) error {
		if err := control(network, address, c); err != nil {
			return fmt.Errorf("%w: %w", ErrAddressRefused, err)
		}
		return nil
	}
}
