//go:build long

package httpx_test

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/formsvc/toolkit/webhook"
)

// Each receiver on the page accepts what the service signed and nothing else. It listens on port 3000 of this machine.
func TestDocsReceivers(t *testing.T) {
	const secret = "whsec_5f1c0b9e4d7a42d3-ü"
	body := `{"id":"019a9d3c-7f40-7c3e-8b52-6d1f0a94e2b7","event":"response.created","data":{"note":"Übermut"}}`
	good := webhook.Sign(secret, []byte(body))
	page := docsPage(t)
	for name, run := range map[string][]string{"go": {"go", "run", "main.go"}, "node": {"node", "main.cjs"}, "python": {"python3", "main.py"}} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(run[0]); err != nil {
				t.Skipf("SKIPPED: no %s here", run[0])
			}
			address := runReceiver(t, text(t, page, "snippet-"+name), secret, run)
			for _, row := range []struct {
				name, body, signature string
				want                  int
			}{
				{"changed", body + " ", good, 401}, {"of no secret", body, webhook.Sign("", []byte(body)), 401}, {"unsigned", body, "", 401},
				{"cut", body, good[:63], 401}, {"as long in other characters", body, strings.Repeat("é", 32), 401}, {"authentic", body, good, 200},
			} {
				r := must(http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/hooks", strings.NewReader(row.body)))
				r.Header[http.CanonicalHeaderKey(webhook.SignatureHeader)] = strings.Fields(row.signature)
				a := must(http.DefaultClient.Do(r))
				if _ = a.Body.Close(); a.StatusCode != row.want {
					t.Errorf("%s: %d, want %d", row.name, a.StatusCode, row.want)
				}
			}
		})
	}
}

// runReceiver runs a receiver on a free port and returns its address.
func runReceiver(t *testing.T, code, secret string, run []string) string {
	t.Helper()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	address := listener.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	file := filepath.Join(t.TempDir(), run[len(run)-1])
	noError(t, os.WriteFile(file, []byte(strings.Replace(code, "3000", port, 1)), 0o600))
	_ = listener.Close() // as late as possible, since another process may take the port
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, run[0], append(slices.Clone(run[1:len(run)-1]), file)...)
	var log bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), "WEBHOOK_SECRET="+secret), &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // go run has a child
	noError(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // returns an error since it was killed
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		if t.Failed() {
			t.Log(log.String())
		}
	})
	for {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
			return address
		}
		select {
		case <-ended:
			t.Fatalf("the receiver ended: %v", cmd.ProcessState)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
