//go:build long

package main_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// acmeDomain is the domain of the certificates. The top-level domain .test is reserved for tests.
const acmeDomain = "forms.example.test"

// nameServer starts a DNS server that resolves every name to this machine. It returns its TCP address.
func nameServer(t testing.TB) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				for answerName(conn) == nil { // one question after the other
					continue
				}
			}()
		}
	}()
	return l.Addr().String()
}

// answerName answers one DNS query. Query and answer have their length in front.
func answerName(conn net.Conn) error {
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return err
	}
	question := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(conn, question); err != nil {
		return err
	}
	var m dnsmessage.Message
	if err := m.Unpack(question); err != nil {
		return err
	}
	m.Response, m.Additionals = true, nil
	for _, q := range m.Questions {
		if q.Type == dnsmessage.TypeA {
			header := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1}
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}})
		}
	}
	out, err := m.AppendPack(make([]byte, 2, 512))
	if err != nil {
		return err
	}
	binary.BigEndian.PutUint16(out, uint16(len(out)-2))
	_, err = conn.Write(out)
	return err
}

// A pebble is Let's Encrypt's ACME server for tests. Like the real one, it issues a certificate after it has connected to
// the domain and verified the response.
type pebble struct {
	ca        *authority // of the server itself
	directory string
	roots     *x509.CertPool // of the certificates that it issues
	cmd       *exec.Cmd
}

// startPebble starts the server, which validates domains on these ports.
func startPebble(t testing.TB, tlsPort, httpPort int) *pebble {
	t.Helper()
	const variable = "FORMSVC_TEST_PEBBLE"
	program := os.Getenv(variable)
	if program == "" {
		missing(t, variable+` is not set ("make test" builds pebble and sets it)`)
	}
	p, dir, addrs := &pebble{ca: newAuthority(t), roots: x509.NewCertPool()}, t.TempDir(), freeAddrs(t, 2)
	cert, key, config := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "config.json")
	p.ca.issue(t, cert, key, 1, time.Now().Add(time.Hour))
	text, err := json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress": addrs[0], "managementListenAddress": addrs[1], "certificate": cert, "privateKey": key, "tlsPort": tlsPort, "httpPort": httpPort,
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	var said output
	p.cmd = exec.Command(program, "-strict", "-config", config, "-dnsserver", nameServer(t))
	p.cmd.Env = append(os.Environ(), "PEBBLE_VA_NOSLEEP=1")
	p.cmd.Stdout, p.cmd.Stderr = &said, &said
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Logf("pebble said:\n%s", tail(said.String(), 40))
		}
	})
	c := trusting(newClient(t, "https://"+addrs[1], ""), &tls.Config{RootCAs: p.ca.pool})
	eventually(t, "pebble answers", func() bool {
		a, err := c.do(t.Context(), http.MethodGet, "/roots/0", nil)
		return err == nil && a.status == http.StatusOK && p.roots.AppendCertsFromPEM(a.body)
	})
	p.directory = p.locating(t, addrs[0], cert, key) + "/dir"
	return p
}

// locating returns the address of a proxy in front of pebble. It adds the Location of a finalized order, as Let's Encrypt
// does. The standard doesn't require that and pebble doesn't do it, but golang.org/x/crypto/acme needs it.
func (p *pebble) locating(t testing.TB, addr, cert, key string) string {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { // the requested URL is signed and must stay
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "https", addr, r.In.Host
		},
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: p.ca.pool}},
		ModifyResponse: func(r *http.Response) error {
			if order, ok := strings.CutPrefix(r.Request.URL.Path, "/finalize-order/"); ok {
				r.Header.Set("Location", "https://"+r.Request.Host+"/my-order/"+order)
			}
			return nil
		},
	})
	proxy.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	proxy.StartTLS()
	t.Cleanup(proxy.Close)
	return "https://" + proxy.Listener.Addr().String()
}

// stop ends the server, if it runs.
func (p *pebble) stop() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// nobody is a port that nobody listens on.
const nobody = 1

// The server gets a certificate from an authority that validates at the TLS listener. The certificate is ready before the
// first visitor, and stored: a restart needs no authority.
func TestAutomaticCertificate(t *testing.T) {
	t.Parallel()
	addr := freeAddrs(t, 1)[0]
	p := startPebble(t, portOf(t, addr), nobody)
	dsn, data := databases()[0].dsn(t), filepath.Join(t.TempDir(), "data")
	port := strconv.Itoa(portOf(t, addr))
	run := func() *server {
		return execute(t, dsn, []string{"SSL_CERT_FILE=" + p.ca.path}, "--addr", addr, "--data", data, "--metrics-addr", "127.0.0.1:0",
			"--autocert-domain", strings.ToUpper(acmeDomain), "--autocert-directory", p.directory, "--autocert-email", "ada@example.com").started(t)
	}
	s := run()
	eventually(t, "the certificate is there", func() bool { return strings.Contains(s.log.String(), `"msg":"certificate ready"`) })
	config := &tls.Config{RootCAs: p.roots, ServerName: acmeDomain}
	state, err := shake(addr, config)
	if err != nil {
		t.Fatal(err)
	}
	serial := state.PeerCertificates[0].SerialNumber
	c := trusting(newClient(t, "https://"+addr, s.firstKey(t)), config)
	c.campaign(t, "ACME")
	if !strings.Contains(s.log.String(), `"baseUrl":"https://`+acmeDomain+":"+port+`"`) {
		t.Errorf("the domain is not the address of the API:\n%s", s.log.String())
	}
	if families, _ := scrape(t, s); value(families["formsvc_tls_certificate_expiry_timestamp_seconds"]) != float64(state.PeerCertificates[0].NotAfter.Unix()) {
		t.Error("the metrics don't say when the certificate ends")
	}
	dir := filepath.Join(data, "autocert")
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("certificates are kept in a directory of mode %v (%v), want 0700", info.Mode(), err)
	}
	for _, name := range []string{"other.example.test", "localhost", ""} {
		if _, err := shake(addr, &tls.Config{ServerName: name, InsecureSkipVerify: true}); err == nil {
			t.Errorf("there is a certificate for %q", name)
		}
	}

	s.terminate(t)
	s.stopped(t)
	p.stop()
	run()
	if state, err = shake(addr, config); err != nil || state.PeerCertificates[0].SerialNumber.Cmp(serial) != 0 {
		t.Errorf("after a restart there is another certificate (%v)", err)
	}
}

func portOf(t testing.TB, addr string) int {
	t.Helper()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// An authority that can't reach the TLS listener can validate at the redirect listener.
func TestAutomaticCertificateOverHTTP(t *testing.T) {
	t.Parallel()
	addrs := freeAddrs(t, 2)
	p := startPebble(t, nobody, portOf(t, addrs[1]))
	s := execute(t, databases()[0].dsn(t), []string{"SSL_CERT_FILE=" + p.ca.path}, "--addr", addrs[0], "--redirect-addr", addrs[1],
		"--autocert-domain", acmeDomain, "--autocert-directory", p.directory).started(t)
	eventually(t, "the certificate is there", func() bool { return strings.Contains(s.log.String(), `"msg":"certificate ready"`) })
	if _, err := shake(addrs[0], &tls.Config{RootCAs: p.roots, ServerName: acmeDomain}); err != nil {
		t.Error(err)
	}
}

// If no certificate is issued, the log says why, once, and the server keeps running.
func TestNoAutomaticCertificate(t *testing.T) {
	t.Parallel()
	refusing := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "not today")
	})
	ca, addr := newAuthority(t), freeAddrs(t, 1)[0]
	dir := t.TempDir()
	ca.issue(t, filepath.Join(dir, "cert"), filepath.Join(dir, "key"), 1, time.Now().Add(time.Hour))
	authority := &http.Server{Addr: addr, Handler: refusing, ReadHeaderTimeout: patience}
	t.Cleanup(func() { _ = authority.Close() })
	go func() { _ = authority.ListenAndServeTLS(filepath.Join(dir, "cert"), filepath.Join(dir, "key")) }()
	s := execute(t, databases()[0].dsn(t), []string{"SSL_CERT_FILE=" + ca.path},
		"--autocert-domain", acmeDomain, "--autocert-directory", "https://"+addr+"/dir").started(t)
	const line = `"msg":"no certificate for domain","domain":"` + acmeDomain + `"`
	eventually(t, "the log says that there is no certificate", func() bool { return strings.Contains(s.log.String(), line) })
	for range 3 {
		if _, err := shake(strings.TrimPrefix(s.url, "http://"), &tls.Config{ServerName: acmeDomain, InsecureSkipVerify: true}); err == nil {
			t.Error("there is a certificate")
		}
	}
	if n := strings.Count(s.log.String(), line); n != 1 {
		t.Errorf("the log has it %d times", n)
	}
	s.terminate(t)
	s.stopped(t)
}
