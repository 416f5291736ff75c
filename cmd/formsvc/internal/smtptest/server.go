// Package smtptest runs a real SMTP server on the loopback interface for the
// tests of cmd/formsvc.
package smtptest

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// Options configures the server. The zero value accepts every mail and has neither TLS nor logins.
type Options struct {
	TLS      bool // from the first byte on
	StartTLS bool
	// User and Password are required to send if they are not empty. A server without TLS offers the login too.
	User, Password string
	// Refuse lists addresses for which it rejects mail.
	Refuse []string
	// Mute makes it accept connections and never reply.
	Mute bool
	// MuteAfter makes it stop replying after a reply that contains this text unencrypted.
	MuteAfter string
}

// A Mail is an accepted mail.
type Mail struct {
	From string
	To   []string
	Text string // header and body
	User string // the login
	TLS  bool
}

// A Server keeps accepted mails in memory. It is safe for concurrent use.
type Server struct {
	opts Options
	addr string
	cert *x509.Certificate

	mu       sync.Mutex
	mails    []Mail
	sessions int
}

// New starts a server, which ends with the test.
func New(tb testing.TB, opts Options) *Server {
	tb.Helper()
	s := &Server{opts: opts}
	web := httptest.NewTLSServer(nil) // for its certificate, which is for 127.0.0.1
	web.Close()
	s.cert = web.Certificate()
	server := smtp.NewServer(smtp.BackendFunc(s.session))
	server.Domain, server.AllowInsecureAuth = "mail.example.com", true
	server.ErrorLog = silent{}
	config := &tls.Config{Certificates: web.TLS.Certificates, MinVersion: tls.VersionTLS12}
	if opts.StartTLS {
		server.TLSConfig = config
	}
	l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s.addr = l.Addr().String()
	l = &countingListener{Listener: l, server: s}
	if opts.TLS {
		l = tls.NewListener(l, config)
	}
	tb.Cleanup(func() { _ = server.Close() })
	go func() { _ = server.Serve(l) }()
	return s
}

// Addr returns host and port.
func (s *Server) Addr() string { return s.addr }

// Roots returns the certificates that a client must trust.
func (s *Server) Roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(s.cert)
	return pool
}

// RootsFile returns a file with the certificates of Roots.
func (s *Server) RootsFile(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "roots.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.cert.Raw})
	if err := os.WriteFile(path, text, 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// Mails returns the mails so far.
func (s *Server) Mails() []Mail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Mail(nil), s.mails...)
}

// Connections returns how many connections are open.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions
}

func (s *Server) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions += n
}

func (s *Server) session(c *smtp.Conn) (smtp.Session, error) {
	_, secure := c.TLSConnectionState()
	return &session{server: s, mail: Mail{TLS: secure}}, nil
}

type session struct {
	server *Server
	mail   Mail
}

func (s *session) AuthMechanisms() []string {
	if s.server.opts.User == "" {
		return nil
	}
	return []string{sasl.Plain}
}

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != s.server.opts.User || password != s.server.opts.Password {
			return smtp.ErrAuthFailed
		}
		s.mail.User = user
		return nil
	}), nil
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if s.mail.User != s.server.opts.User {
		return smtp.ErrAuthRequired
	}
	s.mail.From = from
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	for _, refused := range s.server.opts.Refuse {
		if to == refused {
			return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "No such mailbox"}
		}
	}
	s.mail.To = append(s.mail.To, to)
	return nil
}

func (s *session) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.mail.Text = string(text)
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.mails = append(s.server.mails, s.mail)
	return nil
}

func (s *session) Reset()        { s.mail.From, s.mail.To, s.mail.Text = "", nil, "" }
func (s *session) Logout() error { return nil }

// silent drops the server's log, such as lines about clients that disconnect.
type silent struct{}

func (silent) Printf(string, ...any) {}
func (silent) Println(...any)        {}

// A countingListener counts the connections that are open.
type countingListener struct {
	net.Listener

	server *Server
}

// Accept waits for a connection.
func (l *countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.server.count(1)
	return &countedConn{Conn: conn, server: l.server}, nil
}

// A countedConn is a connection of the server.
type countedConn struct {
	net.Conn

	server *Server
	close  sync.Once
	mute   bool
}

// Write sends a reply, unless the server is mute.
func (c *countedConn) Write(p []byte) (int, error) {
	o := &c.server.opts
	if c.mute || o.Mute {
		return len(p), nil
	}
	c.mute = o.MuteAfter != "" && bytes.Contains(p, []byte(o.MuteAfter))
	return c.Conn.Write(p)
}

// Close closes the connection.
func (c *countedConn) Close() error {
	c.close.Do(func() { c.server.count(-1) })
	return c.Conn.Close()
}
