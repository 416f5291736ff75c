package main_test

import (
	"bytes"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An invalid command line ends with status 2 and a message that names the flag, and does nothing.
func TestUsageErrorsNameTheFlag(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, args, want string
	}{
		{"no command", "", "serve"},
		{"unknown command", "dance", "dance"},
		{"unknown flag", "serve --port 80", "--port"},
		{"missing name", "keys create --permissions all", "--name"},
		{"missing permissions", "keys create --name n", "--permissions"},
		{"missing events", "webhooks create --url http://example.com", "--events"},
		{"missing argument", "keys revoke", "uuid"},
		{"duration", "serve --webhook-timeout soon", "--webhook-timeout"},
		{"duration in a list", "serve --webhook-retries 1m,soon", "--webhook-retries"},
		{"address range", "serve --webhook-allow localhost", "--webhook-allow"},
		{"log format", "serve --log-format xml", "--log-format"},
		{"number", "serve --quota many", "--quota"},
		{"database scheme", "serve --db mysql://root@localhost/forms", "--db"},
		{"database without a scheme", "migrate up --db forms.db", "--db"},
		{"database without a path", "migrate up --db sqlite:", "--db"},
		{"missing secret", "sign", "--secret"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			r := invocation{args: strings.Fields(test.args), dir: dir}.run(t)
			if r.status != 2 || !strings.Contains(r.err, test.want) || r.out != "" {
				t.Errorf("formsvc %s: status %d, %q and %q, want 2 and %q", test.args, r.status, r.err, r.out, test.want)
			}
			if made, err := os.ReadDir(dir); err != nil || len(made) > 0 {
				t.Errorf("formsvc %s left %v behind (%v)", test.args, made, err)
			}
		})
	}
}

// Values that fail only when the server is built are usage errors too.
func TestServeRefusesUnusableOptions(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ flag, args string }{
		{"--base-url", "--base-url=forms.example.com"},
		{"--webhook-retries", "--webhook-retries=1m,-5m"},
		{"--webhook-timeout", "--webhook-timeout=-1s"},
		{"--webhook-lease", "--webhook-lease=20s"},
		{"--webhook-concurrency", "--webhook-concurrency=-1"},
		{"--retention", "--retention=-1h"},
		{"--retention", "--retention=30m --webhook-retries=1s"},
		{"--retention", "--retention=2h --webhook-retries=1h,1h"},
		{"--smtp", "--smtp=mail.example.com"},
		{"--mail-from", "--smtp=smtp://mail.example.com"},
		{"--secret-keys", "--secret-keys=short"},
		{"--metrics-addr", "--metrics-addr=nowhere"},
		{"--webhook-allow", "--webhook-allow=10.0.0.0"},
	} {
		dir := t.TempDir()
		r := invocation{args: append([]string{"serve", "--addr", "127.0.0.1:0"}, strings.Fields(x.args)...), dir: dir}.run(t)
		if r.status == 0 || !strings.Contains(r.err, x.flag) {
			t.Errorf("serve %s: status %d, %q, want the flag", x.args, r.status, r.err)
		}
		if r.status != 2 && x.flag != "--metrics-addr" {
			t.Errorf("serve %s: status %d, want 2", x.args, r.status)
		}
		if made, err := os.ReadDir(dir); err != nil || len(made) > 0 {
			t.Errorf("serve %s left %v behind (%v)", x.args, made, err)
		}
	}
}

// A second server at the same address exits before it touches the database.
func TestAddressInUse(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	dir := t.TempDir()
	r := invocation{args: []string{"serve", "--addr", l.Addr().String()}, dir: dir}.run(t)
	if r.status != 1 || !strings.Contains(r.err, l.Addr().String()) {
		t.Errorf("serve: status %d, %q", r.status, r.err)
	}
	if made, err := os.ReadDir(dir); err != nil || len(made) > 0 {
		t.Errorf("serve left %v behind (%v)", made, err)
	}
}

// --help prints to standard output with status 0.
func TestHelpListsTheCommands(t *testing.T) {
	t.Parallel()
	r := invocation{args: []string{"--help"}}.run(t)
	if r.status != 0 || r.err != "" {
		t.Errorf("--help: status %d, %q", r.status, r.err)
	}
	for _, want := range []string{
		"serve", "accounts contact", "keys create", "webhooks create", "webhooks redeliver", "secrets rotate-key", "migrate up", "sign",
		"verify", "listen", "export", "backup", "restore", "doctor",
	} {
		if !strings.Contains(r.out, want) {
			t.Errorf("--help does not name %q", want)
		}
	}
}

// Flags can be set in the environment, and the command line wins.
func TestFlagsFromTheEnvironment(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		env := []string{"FORMSVC_DB=" + dsn, "FORMSVC_JSON=true", "FORMSVC_ACCOUNT=nobody"}
		r := invocation{args: []string{"accounts", "create", "env"}, env: env}.run(t)
		if r.status != 0 || object(t, []byte(r.out))["name"] != "env" {
			t.Fatalf("accounts create: status %d\n%s%s", r.status, r.out, r.err)
		}
		r = invocation{args: []string{"keys", "list"}, env: env}.run(t)
		if r.status != 1 || !strings.Contains(r.err, "nobody") {
			t.Errorf("keys list for an unknown account: status %d, %q", r.status, r.err)
		}
		r = invocation{args: []string{"keys", "list", "--account", "env"}, env: env}.run(t)
		if r.status != 0 {
			t.Errorf("keys list with --account over FORMSVC_ACCOUNT: status %d, %q", r.status, r.err)
		}
		r = invocation{args: []string{"serve"}, env: append(env, "FORMSVC_WEBHOOK_TIMEOUT=soon")}.run(t)
		if r.status != 2 || !strings.Contains(r.err, "FORMSVC_WEBHOOK_TIMEOUT") && !strings.Contains(r.err, "--webhook-timeout") {
			t.Errorf("a bad FORMSVC_WEBHOOK_TIMEOUT: status %d, %q", r.status, r.err)
		}
	})
}

// Without --db, everything is stored under --data, which is created if missing and accessible only to its owner.
func TestDataDirectoryIsMadeForItsOwner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data := filepath.Join(dir, "some", "where")
	r := invocation{args: []string{"accounts", "create", "x", "--data", data}, dir: dir}.run(t)
	if r.status != 0 {
		t.Fatal(r.err)
	}
	create := []string{"webhooks", "create", "--url", "https://example.com", "--events", "all", "--account", "x", "--data", data}
	if r := (invocation{args: create, dir: dir}).run(t); r.status != 0 {
		t.Fatal(r.err)
	}
	for path, want := range map[string]os.FileMode{
		data: 0o700, filepath.Join(data, "formsvc.db"): 0o600, filepath.Join(data, "secret.keys"): 0o600,
	} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has the mode %v, want %v", filepath.Base(path), info.Mode().Perm(), want)
		}
	}
}

// The signatures match OpenSSL's. The constants were made with
//
//	openssl dgst -sha256 -hmac 'a secret of the tests, äöü'
func TestSignAndVerifyAgreeWithOpenSSL(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ body, signature string }{
		{"", "5ba20c3e20d78f88b9bb3e764e1560225ffa5b1cb7b0799d28e695d07a11f2c1"},
		{`{"event":"response.created"}`, "085a3f34289ab518c9d3d237091a974f7cb74caea7b61712d4cd2fb7550b6b6b"},
		{"x\x00y\xff\n", "b2795564d455a68d25bab1bc0dcca67979079401cd30143a3abcd47996f010c4"},
	} {
		r := invocation{args: []string{"sign", "--secret", secret}, stdin: test.body}.run(t)
		if r.status != 0 || r.out != test.signature+"\n" {
			t.Errorf("sign %q: status %d, %q, want %s", test.body, r.status, r.out, test.signature)
		}
		if !signedBySpec(secret, []byte(test.body), http.Header{"X-Service-Signature": {test.signature}}) {
			t.Errorf("these tests compute another signature for %q", test.body)
		}
		verify := []string{"verify", "--secret", secret, "--signature", test.signature}
		if r := (invocation{args: verify, stdin: test.body}).run(t); r.status != 0 {
			t.Errorf("verify %q: status %d, %q", test.body, r.status, r.err)
		}
		if r := (invocation{args: verify, stdin: test.body + "\n"}).run(t); r.status != 1 || r.err == "" {
			t.Errorf("verify %q with a byte more: status %d, %q, want 1 and a reason", test.body, r.status, r.err)
		}
		verify[2] = "another secret"
		if r := (invocation{args: verify, stdin: test.body}).run(t); r.status != 1 {
			t.Errorf("verify %q with another secret: status %d, want 1", test.body, r.status)
		}
	}
	body := string(bytes.Repeat([]byte("0123456789abcdef"), 1<<15))
	r := invocation{args: []string{"sign", "--secret", secret}, stdin: body}.run(t)
	if !signedBySpec(secret, []byte(body), http.Header{"X-Service-Signature": {strings.TrimSpace(r.out)}}) {
		t.Errorf("sign of a long body prints %q", r.out)
	}
}
