package egress_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formsvc/toolkit/webhook/egress"
)

func TestCheckURLAccepts(t *testing.T) {
	t.Parallel()
	p := newPolicy(t, fixed{addrs: addrs("93.184.216.34", "2606:4700::1111")}, "10.0.0.0/8", "fd00::/8")
	for _, url := range plain(`http://receiver.example https://receiver.example/ https://receiver.example:443/hook?token=a%20b&c=@
		HTTPS://Receiver.Example/HOOK https://receiver.example./hook https://receiver.example:8443 https://receiver.example:/hook
		http://my_host.receiver.example/ https://xn--bcher-kva.example/ http://a.0xg/ http://a.x7f/ http://1.2.3.4.example/
		http://0x7f.0.0.1.example/ http://example.4you/ http://8.8.8.8 https://8.8.8.8:443/ http://8.8.8.8:1024/ http://8.8.8.8:65535/
		http://8.8.8.8:0080/ http://[2606:4700::1111]/ https://[2606:4700:0:0::1111]:8443/ http://[::ffff:8.8.8.8]/
		http://10.1.2.3:22/ http://[::ffff:10.1.2.3]:22/ http://[fd00::1]:25/ https://receiver.example/a//b/../c;d?e?f
		https://receiver.example/\@127.0.0.1 https://receiver.example/@127.0.0.1 https://receiver.example?@127.0.0.1/`) {
		if err := p.CheckURL(t.Context(), url); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// Every address of a name is checked, with the port of the URL.
func TestCheckURLResolves(t *testing.T) {
	t.Parallel()
	const name = "http://receiver.example"
	mapped := netip.AddrFrom16(netip.MustParseAddr("8.8.8.8").As16())
	for _, c := range []struct {
		title  string
		answer fixed
		url    string
		allow  []string
		rule   string
	}{
		{"public", fixed{addrs: addrs("8.8.8.8", "2606:4700::1111")}, name, nil, ""},
		{"as net writes IPv4", fixed{addrs: []netip.Addr{mapped}}, name, nil, ""},
		{"private", fixed{addrs: addrs("10.0.0.1")}, name, nil, byAddress},
		{"private, mapped", fixed{addrs: addrs("::ffff:10.0.0.1")}, name, nil, byAddress},
		{"last one private", fixed{addrs: addrs("8.8.8.8", "2606:4700::1111", "fd00::1")}, name, nil, byAddress},
		{"zone", fixed{addrs: addrs("8.8.8.8", "fe80::1%eth0")}, name, nil, byZone},
		{"invalid", fixed{addrs: make([]netip.Addr, 1)}, name, nil, byParse},
		{"no address", fixed{}, name, nil, ""},
		{"no such host", fixed{err: &net.DNSError{IsNotFound: true}}, name, nil, ""},
		{"failure", fixed{err: errors.New("down")}, name, nil, ""},
		{"failure with an address", fixed{addrs: addrs("10.0.0.1"), err: errors.New("down")}, name, nil, ""},
		{"no such host, port 22", fixed{err: &net.DNSError{IsNotFound: true}}, name + ":22", nil, byPort},
		{"no such host, port 0", fixed{err: &net.DNSError{IsNotFound: true}}, name + ":0", []string{"10.0.0.0/8"}, byPort},
		{"no such host, port 22 may be allowed", fixed{err: &net.DNSError{IsNotFound: true}}, name + ":22", []string{"10.0.0.0/8"}, ""},
		{"allowed, port 22", fixed{addrs: addrs("10.0.0.1")}, name + ":22", []string{"10.0.0.0/8"}, ""},
		{"public, port 22", fixed{addrs: addrs("8.8.8.8")}, name + ":22", []string{"10.0.0.0/8"}, byPort},
		{"allowed and public", fixed{addrs: addrs("10.0.0.1", "8.8.8.8")}, name, []string{"10.0.0.0/8"}, ""},
		{"allowed and private", fixed{addrs: addrs("10.0.0.1", "192.168.0.1")}, name, []string{"10.0.0.0/8"}, byAddress},
	} {
		err := newPolicy(t, c.answer, c.allow...).CheckURL(t.Context(), c.url)
		if c.rule == "" && err != nil || c.rule != "" && !isRule(err, c.rule) {
			t.Errorf("%s: %v, want %q", c.title, err, c.rule)
		}
	}
}

// A name that had a public address when the webhook was saved may have others when a request is sent.
func TestRebinding(t *testing.T) {
	t.Parallel()
	const public4, public6, url = "93.184.216.34", "2606:4700::1111", "http://receiver.example:8080/hook"
	p := newPolicy(t, fixed{addrs: addrs(public4, public6)})
	if err := p.CheckURL(t.Context(), url); err != nil {
		t.Fatalf("when saved: %v", err)
	}
	for _, s := range []struct {
		send []netip.Addr
		pass string // what Control may allow
	}{
		{addrs("127.0.0.1", "::1"), ""},
		{addrs("0.0.0.0", "::"), ""},
		{addrs("169.254.169.254", "fd00:ec2::254"), ""},
		{addrs("::ffff:127.0.0.1"), ""},
		{addrs("64:ff9b::7f00:1"), ""},
		{addrs("10.0.0.1", "192.168.0.1", "127.0.0.1"), ""},
		{addrs("127.0.0.1", public4), public4},
		{addrs("127.0.0.1", public6), public6},
	} {
		allowed, err := send(p, fixed{addrs: s.send}, url)
		if s.pass == "" && (!errors.Is(err, egress.ErrRefused) || allowed.IsValid()) || s.pass != "" && allowed.String() != s.pass {
			t.Errorf("%v: %v, connected to %v, want %q", s.send, err, allowed, s.pass)
		}
	}
}

// asked is a resolver that records its arguments and waits for ctx.
type asked struct{ network, host string }

func (a *asked) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	a.network, a.host = network, host
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestCheckURLWaitsThreeSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // with a clock of its own
		for _, c := range []struct{ limit, want time.Duration }{{time.Hour, 3 * time.Second}, {time.Second, time.Second}} {
			r := &asked{}
			ctx, cancel := context.WithTimeout(t.Context(), c.limit)
			start := time.Now()
			err := newPolicy(t, r).CheckURL(ctx, "http://Receiver.example.:8080/")
			cancel()
			if took := time.Since(start); err != nil || took != c.want {
				t.Errorf("%v after %v, want nil after %v", err, took, c.want)
			}
			if r.network != "ip" || r.host != "Receiver.example." {
				t.Errorf("asked for %q %q", r.network, r.host)
			}
		}
	})
}

// The error may be shown: it contains neither the URL nor an address.
func TestErrorsContainNoURL(t *testing.T) {
	t.Parallel()
	p := newPolicy(t, fixed{addrs: addrs("10.20.30.40")})
	for _, url := range plain(`http://receiver.example/s3cret http://s3cret@receiver.example/ http://127.0.0.1/s3cret http://[s3cret/
		s3cret://receiver.example http://receiver.example/#s3cret http://s3cret!/ http://receiver.example:22/s3cret`) {
		err := p.CheckURL(t.Context(), url)
		if err == nil || strings.ContainsAny(err.Error()[len("egress: destination refused:"):], "/@%") ||
			strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "10.20") || strings.Contains(err.Error(), "127.0") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// By default a policy uses the system's resolver.
func TestDefaultResolver(t *testing.T) {
	t.Parallel()
	if err := newPolicy(t, nil).CheckURL(t.Context(), "http://localhost/"); !refused(err) {
		t.Error(err)
	}
}

// Names of the machine itself are refused, whether or not a name server knows them.
func TestLoopbackNames(t *testing.T) {
	t.Parallel()
	for _, host := range plain(`localhost localhost. LOCALHOST LocalHost.:8080 a.localhost a.b.LocalHost. localhost.localdomain localhost.localdomain.
		ip6-localhost. ip6-loopback`) {
		for _, resolver := range []fixed{{}, {err: errors.New("no such host")}, {addrs: addrs("127.0.0.1")}, {addrs: addrs("::1")}} {
			if err := newPolicy(t, resolver).CheckURL(t.Context(), "http://"+host+"/"); !isRule(err, byAddress) {
				t.Errorf("%s: %v", host, err)
			}
		}
		if err := newPolicy(t, fixed{}, "127.0.0.0/8").CheckURL(t.Context(), "http://"+host+"/"); err != nil {
			t.Errorf("%s: %v, although it is allowed", host, err)
		}
	}
	for _, host := range plain("localhost.example notlocalhost mylocalhost.") {
		if err := newPolicy(t, fixed{}).CheckURL(t.Context(), "http://"+host+"/"); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}
