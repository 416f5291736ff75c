package delivery

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"testing"
)

// What cannot be seen from outside without a trusted certificate or a network.
func TestOwnTransport(t *testing.T) {
	o, err := withDefaults(nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := newTransport(&o)
	if tr.Proxy != nil {
		t.Error("a proxy gets around Control")
	}
	if tr.TLSClientConfig.MinVersion < tls.VersionTLS12 || tr.TLSClientConfig.InsecureSkipVerify {
		t.Error("TLS is weak")
	}
	if tr.MaxIdleConnsPerHost < o.PerEndpoint || tr.IdleConnTimeout <= 0 || tr.TLSHandshakeTimeout <= 0 {
		t.Error("idle connections are too few or live for ever")
	}
}

func TestOwnTransportSpeaksHTTP2(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.Proto))
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	o, err := withDefaults(nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := newTransport(&o)
	tr.TLSClientConfig.RootCAs = server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	defer tr.CloseIdleConnections()
	e := &Engine{opts: o, transport: tr}
	j := &job{claim: Claim{ID: "d1", Endpoint: Endpoint{URL: server.URL, Secret: "s"}}, body: []byte("body")}
	status, answer, err := e.exchange(t.Context(), j, 1)
	if status != 200 || string(answer) != "HTTP/2.0" || err != nil {
		t.Errorf("%d %q %v", status, answer, err)
	}
}
