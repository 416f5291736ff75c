package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"

	"golang.org/x/net/netutil"
)

// maxStreams limits the concurrent requests of one HTTP/2 connection.
const maxStreams = 20

// listeners are the open sockets of a server.
type listeners struct {
	api       net.Listener
	redirects net.Listener // nil without --redirect-addr
	scrapes   net.Listener // nil without --metrics-addr
}

// listen opens the addresses of the flags, and limits the connections that the public may have open at each.
func (c *serveCmd) listen(ctx context.Context) (l listeners, err error) {
	for _, x := range []struct {
		flag, addr string
		to         *net.Listener
	}{{"--addr", c.Addr, &l.api}, {"--redirect-addr", c.RedirectAddr, &l.redirects}, {"--metrics-addr", c.MetricsAddr, &l.scrapes}} {
		if x.addr == "" {
			continue
		}
		if *x.to, err = new(net.ListenConfig).Listen(ctx, "tcp", x.addr); err != nil {
			l.close()
			return l, fmt.Errorf("%s: %w", x.flag, err)
		}
		if x.to != &l.scrapes {
			*x.to = netutil.LimitListener(*x.to, c.MaxConnections)
		}
	}
	return l, nil
}

// close closes the open listeners.
func (l listeners) close() {
	for _, x := range []net.Listener{l.api, l.redirects, l.scrapes} {
		if x != nil {
			_ = x.Close()
		}
	}
}

// server returns a server with time limits for clients.
func (n *node) server(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ErrorLog: slog.NewLogLogger(n.logger.Handler(), slog.LevelDebug),
	}
}

// serve handles requests until the server is shut down, and then returns nil.
func (n *node) serve(server *http.Server, l net.Listener) error {
	var err error
	if n.certs != nil {
		server.TLSConfig = n.certs.Config()
		server.TLSConfig.GetConfigForClient = (&handshakes{of: make(map[netip.Prefix]*turns)}).admit
		err = server.ServeTLS(l, "", "")
	} else {
		err = server.Serve(l)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// serveUntil handles requests until ctx ends, and then returns nil.
func serveUntil(ctx context.Context, server *http.Server, l net.Listener) error {
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(l); ctx.Err() == nil {
		return err
	}
	return nil
}
