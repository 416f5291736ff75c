//go:build long

package main_test

import (
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// privateURLs returns URLs of private addresses in many notations.
func privateURLs() []string {
	return []string{
		"http://127.0.0.1:8080/", "http://localhost:8080/", "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://0.0.0.0/",
		"http://10.1.2.3/", "http://192.168.0.1/", "http://172.16.0.1/", "http://100.64.0.1/", "http://169.254.169.254/latest/",
		"http://[fd00::1]/", "http://[fe80::1]/", "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/", "http://2130706433/",
		"http://0x7f.1/", "http://017700000001/", "http://①②⑦.⓪.⓪.①/", "http://93.184.216.34:22/", "http://224.0.0.1/",
	}
}

// A webhook to a private address can't be saved by the command or the API unless the operator allows it.
func TestPrivateAddressesAreNotSaved(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		s := execute(t, dsn, nil).started(t)
		c := newClient(t, s.url, s.firstKey(t))
		for i, url := range privateURLs() {
			var p struct {
				Errors []struct{ Pointer, Code string }
			}
			c.want(t, http.StatusUnprocessableEntity, http.MethodPost, "/v1/webhooks",
				map[string]any{"url": url, "events": []string{"response.created"}}, &p)
			if len(p.Errors) != 1 || p.Errors[0].Pointer != "/url" {
				t.Errorf("the API answers %s with %+v", url, p)
			}
			if i%5 != 0 { // each needs a process
				continue
			}
			r := attempt(t, dsn, "webhooks", "create", "--url", url, "--events", "all")
			if r.status != 1 || r.out != "" || !strings.Contains(r.err, "--webhook-allow") {
				t.Errorf("webhooks create of %s: status %d, %q, %q", url, r.status, r.out, r.err)
			}
		}
		if out := manage(t, dsn, "webhooks", "list", "--json"); out != "" {
			t.Errorf("there is a webhook: %s", out)
		}
		hook(t, dsn, "http://127.0.0.1:8080/", "all") // hook allows loopback
	})
}

// A webhook that was saved while its address was allowed gets no connection once it isn't: each attempt checks the address.
func TestPrivateAddressesAreNotConnectedTo(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		s := execute(t, dsn, []string{"FORMSVC_WEBHOOK_ALLOW=10.0.0.0/8,192.168.0.0/16"}, "--webhook-retries", "100ms").started(t)
		if !strings.Contains(s.log.String(), `"ranges":"10.0.0.0/8, 192.168.0.0/16"`) {
			t.Errorf("the log does not say what is allowed:\n%s", s.log.String())
		}
		c := newClient(t, s.url, s.firstKey(t))
		canary, connections := newCanary(t)
		byName := strings.Replace(canary, "127.0.0.1", "localhost", 1)
		uuids := []string{hook(t, dsn, canary, "all"), hook(t, dsn, byName, "all")}
		c.submit(t, c.campaign(t, "Inside"), "x")
		eventually(t, "both deliveries fail for good", func() bool { return len(finalFailures(s)) == 2 })
		for _, uuid := range uuids {
			if f := finalFailures(s)[uuid]; f.Error != "refused_address" || f.Attempts != 2 || f.Status != 0 {
				t.Errorf("the failure is %+v", f)
			}
			for _, a := range deliveries(t, dsn, uuid)[0].Attempts {
				if a.Error != "refused_address" || a.Answer != "" {
					t.Errorf("an attempt is on record as %+v", a)
				}
			}
		}
		if n := connections.Load(); n != 0 {
			t.Errorf("there were %d connections", n)
		}
	})
}

// newCanary returns an address on this machine, and the number of connections to it.
func newCanary(t testing.TB) (url string, connections *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	connections = new(atomic.Int64)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			_ = conn.Close()
		}
	}()
	return "http://" + l.Addr().String(), connections
}
