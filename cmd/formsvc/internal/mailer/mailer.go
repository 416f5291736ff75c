// Package mailer sends mail through an SMTP server.
package mailer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	netmail "net/mail"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/wneessen/go-mail"

	"github.com/formsvc/toolkit/formsvc/digest"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// timeout limits the whole sending of one mail, so that a hanging server doesn't delay others for longer.
const timeout = 15 * time.Second

// connections is how many mails are sent at once. Servers limit it, often to 10 or 20.
const connections = 8

// A Mailer sends mail through one SMTP server, with one connection per mail. It is safe for concurrent use.
type Mailer struct {
	host           string
	port           int
	tls            bool // from the first byte on
	startTLS       mail.TLSPolicy
	user, password string
	from           string
	timeout        time.Duration
	sending        chan struct{}  // has a value for each connection
	roots          *x509.CertPool // trusted authorities; nil means the system's
}

// New parses the address of a server, smtp://USER:PASSWORD@HOST:PORT or smtps://…, and the sender. Its errors name the flags --smtp and --mail-from, and don't
// repeat the address, which contains a password.
func New(address, from string) (*Mailer, error) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || (u.Path != "" && u.Path != "/") || u.Fragment != "" {
		return nil, errors.New("--smtp: must be smtp://USER:PASSWORD@HOST:PORT or smtps://…; " +
			"percent-encode special characters in the password (%40 for @)")
	}
	m := &Mailer{host: u.Hostname(), from: from, timeout: timeout, sending: make(chan struct{}, connections)}
	switch u.Scheme {
	case "smtp":
		m.port = 587
	case "smtps":
		m.port, m.tls = 465, true
	default:
		return nil, errors.New("--smtp: the scheme must be smtp or smtps")
	}
	if u.Port() != "" {
		if m.port, err = strconv.Atoi(u.Port()); err != nil || m.port < 1 || m.port > 65535 {
			return nil, errors.New("--smtp: the port must be a number from 1 to 65535")
		}
	}
	if u.User != nil {
		m.user = u.User.Username()
		if m.password, _ = u.User.Password(); m.user == "" || m.password == "" {
			return nil, errors.New("--smtp: set both a user name and a password, or neither")
		}
	}
	if m.startTLS, err = startTLS(u.Query(), m.tls); err != nil {
		return nil, err
	}
	if _, err := netmail.ParseAddress(from); err != nil {
		return nil, fmt.Errorf("--mail-from: %q is not an e-mail address; --smtp needs a sender", from)
	}
	return m, nil
}

// startTLS parses the parameter starttls.
func startTLS(query url.Values, implicit bool) (mail.TLSPolicy, error) {
	for name := range query {
		if name != "starttls" || implicit {
			return 0, fmt.Errorf("--smtp: unknown parameter %q; smtp:// takes starttls", name)
		}
	}
	policy, ok := map[string]mail.TLSPolicy{
		"": mail.TLSMandatory, "required": mail.TLSMandatory, "optional": mail.TLSOpportunistic, "off": mail.NoTLS,
	}[query.Get("starttls")]
	if !ok {
		return 0, errors.New("--smtp: starttls must be required, optional or off")
	}
	return policy, nil
}

// Send sends a mail. It returns nil once the server has accepted it, and a *[delivery.MailError] if the server refused it.
func (m *Mailer) Send(ctx context.Context, in digest.Message) error {
	ctx, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel() // also closes the connection, see dial
	msg, err := m.message(&in)
	if err != nil {
		return &delivery.MailError{Text: "the address can't be used in a mail", Final: true}
	}
	select {
	case m.sending <- struct{}{}:
		defer func() { <-m.sending }()
	case <-ctx.Done():
		return fmt.Errorf("waiting for other mails: %w", ctx.Err())
	}
	client, err := m.client(ctx)
	if err != nil {
		return err
	}
	// A failure after the server accepted the mail, such as on QUIT, doesn't matter.
	if err = client.DialAndSendWithContext(ctx, msg); err != nil && !msg.IsDelivered() {
		return refusal(ctx, err, in.To)
	}
	return nil
}

// message returns a mail for the library.
func (m *Mailer) message(in *digest.Message) (*mail.Msg, error) {
	msg := mail.NewMsg(mail.WithNoDefaultUserAgent())
	err := errors.Join(msg.From(m.from), msg.To(in.To))
	if in.ReplyTo != "" {
		err = errors.Join(err, msg.ReplyTo(in.ReplyTo))
	}
	if err != nil {
		return nil, err
	}
	msg.Subject(in.Subject)
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no holiday replies
	if in.Unsubscribe != "" {
		msg.SetListUnsubscribe(in.Unsubscribe)
		msg.SetListUnsubscribePost()
	}
	if sender, err := netmail.ParseAddress(m.from); err == nil && in.ID != "" {
		_, domain, _ := strings.Cut(sender.Address, "@")
		msg.SetMessageIDWithValue(in.ID + "@" + domain)
	}
	msg.SetBodyString(mail.TypeTextPlain, in.Text)
	if in.HTML != "" {
		msg.AddAlternativeString(mail.TypeTextHTML, in.HTML)
	}
	return msg, nil
}

// shownRefusal is how much of a server's reply is kept, in bytes.
const shownRefusal = 500

// refusal returns a server's reply in the words that people see, without the address. Other errors say whether the server was too slow
// or ended the connection, which the library hides.
func refusal(ctx context.Context, err error, to string) error {
	var code int
	var text string
	sent, ok := errors.AsType[*mail.SendError](err)
	early, refused := errors.AsType[*textproto.Error](err) // the connection or the login, unless sent says more
	switch {
	case ok && sent.ErrorCode() != 0:
		code, text = sent.ErrorCode(), words(sent)
	case refused && !ok:
		code, text = early.Code, fmt.Sprint(early.Code, " ", early.Msg)
	case ctx.Err() != nil:
		return ctx.Err()
	case ok:
		return io.ErrUnexpectedEOF
	default:
		return err
	}
	text = strings.ToValidUTF8(strings.ReplaceAll(text, to, "the recipient"), "")
	return &delivery.MailError{Code: code, Text: text[:min(len(text), shownRefusal)], Final: ok && code >= 500 && sent.Reason == mail.ErrSMTPRcptTo}
}

// words returns a reply, which the library puts between words of its own.
func words(sent *mail.SendError) string {
	text, _, _ := strings.Cut(sent.Error(), ", affected ")
	code := strconv.Itoa(sent.ErrorCode()) + " "
	_, reply, _ := strings.Cut(text, ": "+code)
	if quoted, err := strconv.QuotedPrefix(reply); err == nil {
		reply, _ = strconv.Unquote(quoted)
	}
	return code + reply
}

// client returns a client for one mail. Its connection ends with ctx.
func (m *Mailer) client(ctx context.Context) (*mail.Client, error) {
	options := []mail.Option{
		mail.WithPort(m.port), mail.WithTimeout(2 * m.timeout), mail.WithTLSPolicy(m.startTLS), mail.WithTLSConfig(m.config()),
		mail.WithDialContextFunc(func(dialing context.Context, network, _ string) (net.Conn, error) {
			// The library's own address is wrong for IPv6.
			return m.dial(ctx, dialing, network, net.JoinHostPort(m.host, strconv.Itoa(m.port)))
		}),
	}
	if m.tls {
		options = append(options, mail.WithSSL()) // the connection has TLS already: no STARTTLS
	}
	if m.user != "" {
		// PLAIN and LOGIN send nothing without TLS, except to this machine.
		options = append(options, mail.WithUsername(m.user), mail.WithPassword(m.password),
			mail.WithOpportunisticSMTPAuth(mail.SMTPAuthSCRAMSHA256, mail.SMTPAuthSCRAMSHA1, mail.SMTPAuthPlain, mail.SMTPAuthLogin))
	}
	return mail.NewClient(m.host, options...)
}

func (m *Mailer) config() *tls.Config {
	return &tls.Config{ServerName: m.host, RootCAs: m.roots, MinVersion: tls.VersionTLS12}
}

// dial connects. The connection is closed when ctx ends: the library leaves it open if the server refuses, and ignores ctx
// once it is connected.
func (m *Mailer) dial(ctx, dialing context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(dialing, network, address)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	if !m.tls {
		return conn, nil
	}
	secure := tls.Client(conn, m.config())
	if err := secure.HandshakeContext(dialing); err != nil {
		return nil, err
	}
	return secure, nil
}
