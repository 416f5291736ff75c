package mailer

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// serverOptions configures the server. The zero value accepts every mail and has neither TLS nor logins.
type serverOptions struct {
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
	// Instead makes it send Say and close the connection instead of a reply that contains this text.
	Instead, Say string
}

// A received is an accepted mail.
type received struct {
	From string
	To   []string
	Text string // header and body
	User string // the login
	TLS  bool
}

// A server keeps accepted mails in memory. It is safe for concurrent use.
type server struct {
	opts serverOptions
	addr string
	cert *x509.Certificate

	mu       sync.Mutex
	mails    []received
	sessions int
}

// serve starts a server, which ends with the test.
func serve(tb testing.TB, opts serverOptions) *server {
	tb.Helper()
	s := &server{opts: opts}
	web := httptest.NewTLSServer(nil) // for its certificate, which is for 127.0.0.1
	web.Close()
	s.cert = web.Certificate()
	listening := smtp.NewServer(smtp.BackendFunc(s.session))
	listening.Domain, listening.AllowInsecureAuth = "mail.example.com", true
	listening.ErrorLog = silent{}
	config := &tls.Config{Certificates: web.TLS.Certificates, MinVersion: tls.VersionTLS12}
	if opts.StartTLS {
		listening.TLSConfig = config
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
	tb.Cleanup(func() { _ = listening.Close() })
	go func() { _ = listening.Serve(l) }()
	return s
}

// Roots returns the certificates that a client must trust.
func (s *server) Roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(s.cert)
	return pool
}

// Mails returns the mails so far.
func (s *server) Mails() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]received(nil), s.mails...)
}

// Connections returns how many connections are open.
func (s *server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions
}

func (s *server) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions += n
}

func (s *server) session(c *smtp.Conn) (smtp.Session, error) {
	_, secure := c.TLSConnectionState()
	return &session{server: s, mail: received{TLS: secure}}, nil
}

type session struct {
	server *server
	mail   received
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

	server *server
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

	server *server
	close  sync.Once
	mute   bool
}

// Write sends a reply, unless the server is mute.
func (c *countedConn) Write(p []byte) (int, error) {
	o := &c.server.opts
	if c.mute || o.Mute {
		return len(p), nil
	}
	if o.Instead != "" && bytes.Contains(p, []byte(o.Instead)) {
		_, _ = io.WriteString(c.Conn, o.Say)
		return 0, c.Close()
	}
	c.mute = o.MuteAfter != "" && bytes.Contains(p, []byte(o.MuteAfter))
	return c.Conn.Write(p)
}

// Close closes the connection.
func (c *countedConn) Close() error {
	c.close.Do(func() { c.server.count(-1) })
	return c.Conn.Close()
}
