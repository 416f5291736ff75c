//go:build long

package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// acmeDomain is the domain of the certificates. The top-level domain .test is reserved for tests.
const acmeDomain = "forms.example.test"

// nameServer starts a DNS server that resolves every name to this machine. It returns its TCP address.
func nameServer(t testing.TB) string {
	t.Helper()
	l := must(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))
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
	directory, ca string         // its address, and the file with the certificate that it uses itself
	roots         *x509.CertPool // of the certificates that it issues
	stop          func()
}

// startPebble starts the server, which validates domains at these ports.
func startPebble(t testing.TB, tlsPort, httpPort int) *pebble {
	t.Helper()
	const variable = "FORMSVC_TEST_PEBBLE"
	program := os.Getenv(variable)
	if program == "" {
		missing(t, variable+` is not set ("make test-long" builds pebble and sets it)`)
	}
	cert, key, client := certificate(t)
	config, addrs := filepath.Join(t.TempDir(), "config.json"), freeAddrs(t, 2)
	text, err := json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress": addrs[0], "managementListenAddress": addrs[1], "certificate": cert, "privateKey": key, "tlsPort": tlsPort, "httpPort": httpPort,
	}})
	noError(t, errors.Join(err, os.WriteFile(config, text, 0o600)))
	var said transcript
	cmd := exec.Command(program, "-strict", "-config", config, "-dnsserver", nameServer(t))
	cmd.Env = append(os.Environ(), "PEBBLE_VA_NOSLEEP=1")
	cmd.Stdout, cmd.Stderr = &said, &said
	noError(t, cmd.Start())
	p := &pebble{ca: cert, roots: x509.NewCertPool(), stop: sync.OnceFunc(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })}
	t.Cleanup(func() {
		if p.stop(); t.Failed() {
			t.Logf("pebble said:\n%s", &said)
		}
	})
	management := &service{url: "https://" + addrs[1], client: client}
	until(t, "pebble answers", func() bool {
		a, err := management.ask(t.Context(), http.MethodGet, "/roots/0", nil)
		return err == nil && p.roots.AppendCertsFromPEM([]byte(a.body))
	})
	// The proxy adds the Location of a finalized order, as Let's Encrypt does. The standard doesn't require that and pebble doesn't
	// do it, but golang.org/x/crypto/acme needs it.
	proxy := httptest.NewTLSServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { // the requested URL is signed and must stay
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "https", addrs[0], r.In.Host
		},
		Transport: client.Transport,
		ModifyResponse: func(r *http.Response) error {
			if order, ok := strings.CutPrefix(r.Request.URL.Path, "/finalize-order/"); ok {
				r.Header.Set("Location", "https://"+r.Request.Host+"/my-order/"+order)
			}
			return nil
		},
	})
	t.Cleanup(proxy.Close)
	p.directory = proxy.URL + "/dir"
	return p
}

// serve starts a server for the domain, and waits until it has a certificate.
func (p *pebble) serve(t testing.TB, sh *shell, flags ...string) *service {
	t.Helper()
	sh.env = environment{"SSL_CERT_FILE=" + p.ca}
	s := sh.spawn(t, append(flags, "--autocert-domain", strings.ToUpper(acmeDomain), "--autocert-directory", p.directory, "--autocert-email", "ada@example.com")...)
	if m := s.log.wait(s.ctx, `"msg":"(certificate ready|no certificate for domain)"`); m == nil || m[1] != "certificate ready" {
		t.Fatal("there is no certificate")
	}
	return s
}

// serial opens a TLS connection and returns the serial number of the server's certificate.
func (p *pebble) serial(t testing.TB, addr string) string {
	t.Helper()
	conn := must(tls.Dial("tcp", addr, &tls.Config{RootCAs: p.roots, ServerName: acmeDomain}))
	defer func() { _ = conn.Close() }()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
}

func portOf(t testing.TB, addr string) int {
	t.Helper()
	at := must(netip.ParseAddrPort(addr))
	return int(at.Port())
}

// unused is a port where nothing listens.
const unused = 1

// The server gets a certificate from an authority that validates at the TLS listener. The certificate is ready before the
// first visitor, and stored: a restart needs no authority.
func TestAutomaticCertificate(t *testing.T) {
	t.Parallel()
	addr := freeAddrs(t, 1)[0]
	p, sh := startPebble(t, portOf(t, addr), unused), newShell(t)
	s := p.serve(t, sh, "--addr", addr)
	serial := p.serial(t, addr)
	contains(t, "the log", s.log.String(), `"baseUrl":"https://`+acmeDomain+addr[strings.LastIndex(addr, ":"):]+`"`)
	if info, err := os.Stat(filepath.Join(sh.data, "autocert")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory of the certificates: %v, %v", info, err)
	}
	s.stop()
	p.stop()
	p.serve(t, sh, "--addr", addr)
	equal(t, p.serial(t, addr), serial, "certificate %s after a restart")
}

// An authority that can't reach the TLS listener can validate at the redirect listener.
func TestAutomaticCertificateOverHTTP(t *testing.T) {
	t.Parallel()
	addrs := freeAddrs(t, 2)
	p := startPebble(t, unused, portOf(t, addrs[1]))
	p.serve(t, newShell(t), "--addr", addrs[0], "--redirect-addr", addrs[1])
	p.serial(t, addrs[0])
}
