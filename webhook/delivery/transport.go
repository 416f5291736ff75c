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

// ErrAddressRefused is wrapped by the error of a connection that
// [Options.Control] refused. An [Options.Transport] that makes its own checks
// should wrap it too.
var ErrAddressRefused = errors.New("delivery: address refused")

// newTransport returns the transport of an engine with options o, which are
// filled in.
func newTransport(o *Options) *http.Transport {
	step := min(10*time.Second, o.Timeout)
	dialer := &net.Dialer{Timeout: step, KeepAlive: 30 * time.Second, Control: guard(o.Control)}
	inFlight := o.Concurrency + o.SlowConcurrency
	return &http.Transport{
		// A proxy from the environment would get around Control.
		Proxy:       nil,
		DialContext: dialer.DialContext,
		TLSClientConfig: &tls.Config{
			MinVersion:         tls.VersionTLS12,
			ClientSessionCache: tls.NewLRUClientSessionCache(4 * inFlight),
		},
		TLSHandshakeTimeout: step,
		ForceAttemptHTTP2:   true,
		HTTP2: &http.HTTP2Config{
			// A dead connection is otherwise used again after each timeout.
			SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second,
			// What a receiver may send before it is read is held in memory:
			// otherwise 4 MiB for each request.
			MaxReceiveBufferPerStream: 64 << 10, MaxReceiveBufferPerConnection: 1 << 20,
		},
		// Endpoints may share a host, so that one host may need every slot.
		MaxIdleConns:        4 * inFlight,
		MaxIdleConnsPerHost: max(o.Concurrency, o.PerEndpoint),
		// Also bounds how long a connection outlives what Control would say now.
		IdleConnTimeout: 90 * time.Second,
		// The length limit must hold for what is kept in memory.
		DisableCompression: true,
		// Parsed, they take up to sixteen times that for as long as they come.
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
