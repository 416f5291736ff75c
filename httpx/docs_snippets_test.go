//go:build long

package httpx_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/webhook"
)

// snippetAddress is where the page's receivers listen.
const (
	snippetAddress = "127.0.0.1"
	snippetPort    = "3000"
)

// A snippet is the code of a receiver on the page.
type snippet struct {
	name, file string
	program    string                                          // the program that runs it, which may be missing
	command    func(t *testing.T, file string) (args []string) // runs the file
}

func snippets() []snippet {
	return []snippet{
		{"go", "main.go", "go", func(t *testing.T, file string) []string {
			// A program built here gets this module's package, and runs without the go tool.
			program := strings.TrimSuffix(file, ".go")
			if out, err := exec.Command("go", "build", "-o", program, file).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			return []string{program}
		}},
		{"node", "receiver.cjs", "node", func(_ *testing.T, file string) []string { return []string{"node", file} }},
		{"python", "receiver.py", "python3", func(_ *testing.T, file string) []string { return []string{"python3", file} }},
	}
}

// Each receiver on the page accepts what the service signed and nothing else, and keeps running whatever it gets.
func TestDocsReceivers(t *testing.T) {
	const secret = "whsec_5f1c0b9e4d7a42d3-ü"
	body := `{"id":"019a9d3c-7f40-7c3e-8b52-6d1f0a94e2b7","event":"response.created","data":{"note":"Übermut"}}`
	good := webhook.Sign([]byte(secret), []byte(body))
	page := docsPage(t)
	for _, s := range snippets() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(s.program); err != nil {
				t.Skipf("SKIPPED: no %s here", s.program)
			}
			address := s.start(t, text(t, page, "snippet-"+s.name), secret)
			for _, row := range []struct {
				name, body, signature string
				want                  int
			}{
				{"authentic", body, good, 200},
				{"changed", strings.Replace(body, "created", "updated", 1), good, 401},
				{"longer", body + " ", good, 401},
				{"another secret", body, webhook.Sign([]byte("guessed"), []byte(body)), 401},
				{"of no secret", body, webhook.Sign(nil, []byte(body)), 401},
				{"unsigned", body, "", 401},
				{"upper case", body, strings.ToUpper(good), 401},
				{"cut", body, good[:63], 401},
				{"as long in other characters", body, strings.Repeat("é", 32), 401},
				{"as many characters", body, strings.Repeat("é", 64), 401},
				{"authentic again", body, good, 200},
			} {
				if got := post(t, address, row.body, row.signature); got != row.want {
					t.Errorf("%s: %d, want %d", row.name, got, row.want)
				}
			}
			breakOff(t, address)
			if got := post(t, address, body, good); got != 200 {
				t.Errorf("after a request that broke off: %d", got)
			}
		})
	}
}

// start runs the receiver on a free port and returns its address.
func (s snippet) start(t *testing.T, code, secret string) string {
	t.Helper()
	listener, err := net.Listen("tcp", snippetAddress+":0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	if strings.Count(code, snippetPort) != 1 {
		t.Fatalf("the code names its port %s more or less than once:\n%s", snippetPort, code)
	}
	file := filepath.Join(t.TempDir(), s.file)
	if err := os.WriteFile(file, []byte(strings.Replace(code, snippetPort, port, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	args := s.command(t, file)
	_ = listener.Close() // as late as possible, since another process may take the port

	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var log bytes.Buffer
	cmd.Env = append(os.Environ(), "WEBHOOK_SECRET="+secret)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
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

// post sends a delivery and returns the status of the reply.
func post(t *testing.T, address, body, signature string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/hooks", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Close = true
	if signature != "" {
		r.Header.Set(webhook.SignatureHeader, signature)
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	_, _ = io.Copy(io.Discard, a.Body)
	return a.StatusCode
}

// breakOff sends the beginning of a delivery and closes the connection.
func breakOff(t *testing.T, address string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(conn, "POST /hooks HTTP/1.1\r\nHost: x\r\n%s: %064d\r\nContent-Length: 100\r\n\r\n{", webhook.SignatureHeader, 0)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}
