package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/memory"
	"github.com/formsvc/toolkit/webhook/webhooktest"
)

// nobody is the UUID of nothing.
const nobody = "0198b0e1-3e6f-7c1a-8a4e-0123456789ab"

// Accounts are created once, listed, and have a contact that can be changed and removed.
func TestAccountCommands(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	made := s.record(t, "accounts", "create", "Acme", "--contact", "ops@example.com")
	if made["name"] != "Acme" || made["contact"] != "ops@example.com" || made["createdAt"] == nil {
		t.Errorf("created %v", made)
	}
	uuid := made["uuid"].(string)
	s.do(t, "accounts", "contact", uuid, "dev@example.com")
	contains(t, "accounts list", s.do(t, "accounts", "list"), "UUID ", uuid, "Acme", "dev@example.com")
	none := s.record(t, "accounts", "contact", "Acme", "none")
	if v, ok := none["contact"]; !ok || v != nil {
		t.Errorf("without contact: %v", none)
	}
	s.refuses(t, []mistake{
		{"accounts create Acme", 1, `account "Acme" already exists`},
		{"accounts create Half --contact nonsense", 1, "--contact was not set"},
		{"accounts contact Acme nonsense", 1, "e-mail"},
		{"accounts contact " + nobody + " a@example.com", 1, nobody},
		{"keys list --account Nobody", 1, `no account "Nobody"`},
	})
	if list := s.list(t, "accounts", "list"); len(list) != 2 {
		t.Errorf("accounts: %v", list)
	}
}

// A key is printed once, alone, and works until it is revoked. Lists show no values.
func TestKeyCommands(t *testing.T) {
	t.Parallel()
	s := newShell(t).serve(t)
	r := s.try(t, "keys", "create", "--name", "reader", "--permissions", "campaigns:read,files:read", "--expires", "720h")
	if !regexp.MustCompile(`^formsvc_[0-9A-Za-z]{49}\n$`).MatchString(r.out) || strings.Contains(r.err, strings.TrimSpace(r.out)) {
		t.Fatalf("keys create prints %q and %q", r.out, r.err)
	}
	s.key = strings.TrimSpace(r.out)
	s.call(t, http.StatusOK, http.MethodGet, "/v1/campaigns", nil)
	contains(t, "the refusal", s.call(t, http.StatusForbidden, http.MethodPost, "/v1/campaigns", map[string]string{"title": "x"}), "campaigns:write")

	all := s.record(t, "keys", "create", "--name", "all", "--permissions", "all")
	if list := all["permissions"].([]any); len(list) != len(formsvc.AllPermissions()) || all["key"] == nil || all["expiresAt"] != nil {
		t.Errorf("a key with all permissions: %v", all)
	}
	list := s.list(t, "keys", "list")
	if len(list) != 3 || list[1]["name"] != "reader" && list[0]["name"] != "reader" {
		t.Fatalf("keys list: %v", list)
	}
	uuid := ""
	for _, k := range list {
		if k["key"] != nil {
			t.Errorf("the list shows a key: %v", k)
		}
		if k["name"] == "reader" {
			uuid = k["uuid"].(string)
			if k["expiresAt"] == nil || k["revokedAt"] != nil {
				t.Errorf("listed as %v", k)
			}
		}
	}
	s.do(t, "keys", "revoke", strings.ToUpper(uuid))
	until(t, "the key is refused", func() bool { return s.get(t, "/v1/me").status == http.StatusUnauthorized })
	table := s.do(t, "keys", "list")
	if !regexp.MustCompile(`(?m)^UUID +NAME +PREFIX +PERMISSIONS +CREATED +LAST USED +EXPIRES +REVOKED$`).MatchString(table) ||
		!regexp.MustCompile(`reader .*campaigns:read,files:read .*Z +- +\S+Z +\S+Z\n`).MatchString(table) {
		t.Errorf("keys list prints\n%s", table)
	}
	lacks(t, "keys list", table, s.key, all["key"].(string))
	s.stop()
	if at := s.list(t, "keys", "list"); at[1]["lastUsedAt"] == nil || at[0]["lastUsedAt"] != nil { // written at the latest when the server stops
		t.Errorf("last used %v", at)
	}
	s.refuses(t, []mistake{
		{"keys create --name n --permissions fly", 1, "permissions"},
		{"keys revoke " + nobody, 1, nobody},
		{"keys revoke nonsense", 2, `"nonsense" is not a UUID`},
	})
}

// The life of a webhook: its secret is shown once, it can be listed, disabled, enabled, given another secret and deleted.
func TestWebhookCommands(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.do(t, "accounts", "create", "default")
	create := []string{"webhooks", "create", "--url", "https://example.com/hook", "--events", "response.created,response.completed"}
	first := s.try(t, create...)
	secret := regexp.MustCompile(`(?m)^secret  (whsec_\S{32,})$`).FindStringSubmatch(first.out)
	if first.status != 0 || secret == nil || strings.Contains(first.err, "whsec_") {
		t.Fatalf("webhooks create: %+v", first)
	}
	uuid := strings.Fields(first.out)[1]
	again := s.try(t, create...)
	if again.status != 0 || !strings.Contains(again.out, uuid) || !strings.Contains(again.err, "already") {
		t.Errorf("again: %+v", again)
	}
	lacks(t, "webhooks create again", again.out+again.err+s.do(t, append(create, "--json")...), "whsec_")
	if other := s.try(t, append(create, "--secret", "sixteen bytes or more")...); other.status != 1 || !strings.Contains(other.err, uuid) ||
		strings.Contains(other.err, "sixteen") {
		t.Errorf("with another secret: %+v", other)
	}

	other := s.hook(t, "https://example.com/other", "all", "--header", "X-Token: very-secret")
	if off := s.record(t, "webhooks", "disable", uuid); off["disabled"] != true || off["url"] != "https://example.com/hook" {
		t.Errorf("disabled: %v", off)
	}
	contains(t, "webhooks get", s.do(t, "webhooks", "get", other, "--json"), `"headers":{"X-Token":null}`)
	contains(t, "webhooks list", s.do(t, "webhooks", "list"), uuid, "response.created,response.completed", "disabled")
	if on := s.record(t, "webhooks", "enable", uuid); on["disabled"] != false {
		t.Errorf("enabled: %v", on)
	}
	lacks(t, "the lists", s.do(t, "webhooks", "list")+s.do(t, "webhooks", "list", "--json")+s.do(t, "webhooks", "get", other), "very-secret", testSecret, secret[1])

	rotated := s.try(t, "webhooks", "rotate", uuid)
	if fresh, rest, _ := strings.Cut(rotated.out, "\n"); rotated.status != 0 || !strings.HasPrefix(fresh, "whsec_") || rest != "" || fresh == secret[1] ||
		strings.Contains(rotated.err, fresh) || !strings.Contains(rotated.err, "is signed with the old secret") {
		t.Errorf("webhooks rotate: %+v; want the secret alone", rotated)
	}
	if got := s.record(t, "webhooks", "get", uuid); got["previousSecretExpiresAt"] == nil || got["secret"] != nil {
		t.Errorf("in the grace period: %v", got)
	}
	const chosen = "a secret of my own"
	if got := s.record(t, "webhooks", "rotate", uuid, "--grace", "0s", "--secret", chosen); got["secret"] != chosen || got["previousSecretExpiresAt"] != nil {
		t.Errorf("without grace: %v", got)
	}
	if weak := s.try(t, "webhooks", "rotate", uuid, "--secret", "short"); weak.status != 0 || weak.out != "short\n" || !strings.Contains(weak.err, "The secret is weak") {
		t.Errorf("a weak secret: %+v", weak)
	}
	s.do(t, "webhooks", "delete", uuid)
	if list := s.list(t, "webhooks", "list"); len(list) != 1 || list[0]["uuid"] != other {
		t.Errorf("deleted, it is listed: %v", list)
	}
}

// A test event and redeliveries reach the receiver, with the webhook's headers. The exit status of a test tells whether it arrived.
func TestDeliveryCommands(t *testing.T) {
	t.Parallel()
	s := newShell(t).serve(t, "--webhook-retries", "10ms")
	r := receive(t)
	uuid := s.hook(t, r.URL(), "response.created", "--header", "X-Token: a,b; c")
	tested := s.try(t, "webhooks", "test", uuid)
	got := arrived(t, r, 1)[0]
	if tested.status != 0 || !strings.Contains(tested.out, "delivered") || !strings.Contains(tested.err, "arrived") || got.Header.Get("X-Token") != "a,b; c" {
		t.Errorf("webhooks test: %+v; it came with %v", tested, got.Header)
	}
	r.AnswerAlways(webhooktest.Reply{Status: 418, Body: "a teapot\x1b[2J"})
	if tested = s.try(t, "webhooks", "test", uuid); tested.status != 1 || !strings.Contains(tested.out, "failed") || !strings.Contains(tested.err, `status 418, status, response "a teapot\x1b[2J"`) {
		t.Errorf("a receiver that refuses: %+v", tested)
	}
	if tested = s.try(t, "webhooks", "test", uuid, "--no-wait"); tested.status != 0 || !strings.Contains(tested.out, "pending") {
		t.Errorf("--no-wait: %+v", tested)
	}
	arrived(t, r, 3)
	campaign := s.campaign(t)
	s.submit(t, campaign)
	s.submit(t, campaign)
	arrived(t, r, 7) // twice each
	failed := func() []map[string]any { return s.list(t, "webhooks", "deliveries", uuid, "--state", "failed") }
	until(t, "four have failed", func() bool { return len(failed()) == 4 })
	last := failed()[0]
	attempts := last["attempts"].([]any)
	if a := attempts[1].(map[string]any); len(attempts) != 2 || a["number"] != 2.0 || a["status"] != 418.0 || a["error"] != "status" || a["answer"] != "a teapot\x1b[2J" ||
		last["attemptCount"] != 2.0 || last["nextAttemptAt"] != nil || last["event"] != "response.created" {
		t.Errorf("a failed delivery is %v", last)
	}
	if few := s.try(t, "webhooks", "deliveries", uuid, "--limit", "2"); !strings.Contains(few.err, "newest 2 of 5") || strings.Count(few.out, "\n") > 5 {
		t.Errorf("--limit 2: %+v", few)
	}

	r.AnswerAlways(webhooktest.Reply{})
	s.do(t, "webhooks", "redeliver", last["uuid"].(string))
	if again := arrived(t, r, 8)[7]; again.Delivery.ID != last["uuid"] || again.Delivery.EventID != last["eventUuid"] {
		t.Errorf("sent again as %v", again.Header)
	}
	until(t, "it is recorded", func() bool { return len(failed()) == 3 })
	equal(t, s.do(t, "webhooks", "redeliver", uuid, "--since", "1h"), "3\n", "redeliver --since prints %q")
	arrived(t, r, 11)
	if out := s.do(t, "webhooks", "redeliver", uuid, "--since", "2026-01-01T00:00:00Z", "--json"); !strings.HasPrefix(out, `{"redelivered":`) {
		t.Errorf("redeliver --json prints %q", out)
	}
	s.refuses(t, []mistake{
		{"webhooks redeliver " + uuid, 2, "add --since"},
		{"webhooks redeliver " + last["uuid"].(string) + " --since 1h", 2, "is a delivery"},
	})
}

// Without a server the test event is not taken, and the receiver isn't blamed.
func TestTestEventWithoutServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		svc := must(formsvc.New(memory.New(), nil))
		account := must(svc.Accounts.Create(t.Context(), "Acme"))
		hook, _, err := svc.Webhooks.Create(t.Context(), account.ID, formsvc.WebhookInput{URL: "https://example.com", Events: []formsvc.EventType{"response.created"}})
		noError(t, err)
		sent := must(svc.Webhooks.Test(t.Context(), formsvc.WebhookKey{AccountID: account.ID, ID: hook.ID}))
		d, err := await(t.Context(), svc, sent)
		var said strings.Builder
		if judge(&d, streams{err: &said}) == nil || err != nil || !strings.Contains(said.String(), "No server sent the test event") {
			t.Errorf("%v: %s", err, &said)
		}
	})
}

// Errors of the commands for webhooks name the mistake.
func TestWebhookMistakes(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.do(t, "accounts", "create", "default")
	uuid := s.hook(t, "http://127.0.0.1:9/", "all")
	create := "webhooks create --url https://example.com --events "
	s.refuses(t, []mistake{
		{"webhooks get nonsense", 2, "nonsense"},
		{"webhooks get " + nobody, 1, nobody},
		{"webhooks delete " + nobody, 1, nobody},
		{"webhooks test " + nobody, 1, nobody},
		{"webhooks rotate " + nobody, 1, nobody},
		{"webhooks rotate " + uuid + " --secret " + strings.Repeat("x", 257), 1, "256"},
		{"webhooks rotate " + uuid + " --grace 9000h", 1, "gracePeriod"},
		{"webhooks disable " + nobody, 1, nobody},
		{"webhooks deliveries " + nobody, 1, nobody},
		{"webhooks deliveries " + uuid + " --state lost", 2, "--state"},
		{"webhooks deliveries " + uuid + " --limit 0", 2, "--limit"},
		{"webhooks deliveries " + uuid + " --limit 1001", 2, "--limit"},
		{"webhooks redeliver " + nobody, 1, nobody},
		{"webhooks redeliver " + nobody + " --since 1h", 1, nobody},
		{"webhooks redeliver " + uuid + " --since yesterday", 2, "yesterday"},
		{"webhooks redeliver " + uuid + " --since=-1h", 2, "--since"},
		{create + "response.eaten", 1, "/events/0"},
		{create + "all --header token", 2, "--header"},
		{create + "all --header Host:example.com", 1, "/headers/Host"},
		{create + "all --campaign " + nobody, 1, "/campaignUuid"},
		{create + "all --campaign x", 2, "--campaign"},
		{create + "all --account Nobody", 1, "Nobody"},
		{"webhooks create --url http://10.1.2.3/ --events all", 1, "use --webhook-allow with this command"},
		{"webhooks create --url http://10.1.2.3/ --events all --webhook-allow 10.0.0.0", 2, "--webhook-allow"},
	})
	if list := s.list(t, "webhooks", "list"); len(list) != 1 {
		t.Errorf("the webhooks are %v", list)
	}
}

// An invalid command line ends with status 2 and a message that names the flag. It creates nothing.
func TestUsageErrors(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.refuses(t, []mistake{
		{"dance", 2, "dance"},
		{"serve --port 80", 2, "--port"},
		{"keys create --permissions all", 2, "--name"},
		{"keys create --name n", 2, "--permissions"},
		{"webhooks create --url http://example.com", 2, "--events"},
		{"keys revoke", 2, "uuid"},
		{"serve --webhook-timeout soon", 2, "--webhook-timeout"},
		{"serve --webhook-retries 1m,soon", 2, "--webhook-retries"},
		{"serve --log-format xml", 2, "--log-format"},
		{"serve --db mysql://root@localhost/forms", 2, "--db"},
		{"migrate up --db forms.db", 2, "--db"},
		{"migrate up --db sqlite:", 2, "--db"},
		{"files verify --blobs ftp://x", 2, "--blobs"},
		{"sign", 2, "--secret"},
	})
	for name, want := range map[string]string{"FORMSVC_WEBHOOK_TIMEOUT=soon": "--webhook-timeout", "FORMSVC_QUOTA=many": "--quota"} {
		s.env = environment{name}
		s.refuses(t, []mistake{{"serve", 2, want}})
	}
	if _, err := os.Stat(s.data); err == nil {
		t.Error("the data directory was created")
	}
}

// Variables set flags, and the command line wins.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.env = environment{"FORMSVC_DATA=" + s.data, "FORMSVC_JSON=true", "FORMSVC_ACCOUNT=nobody", "FORMSVC_NAME=k", "FORMSVC_PERMISSIONS=files:read,campaigns:read"}
	r := s.pipe(t, "", "accounts", "create", "env")
	if r.status != 0 || objects(t, r.out)[0]["name"] != "env" {
		t.Fatalf("accounts create: %+v", r)
	}
	if r = s.pipe(t, "", "keys", "create"); r.status != 1 || !strings.Contains(r.err, `"nobody"`) {
		t.Errorf("in an unknown account: %+v", r)
	}
	if r = s.pipe(t, "", "keys", "create", "--account", "env"); r.status != 0 || len(objects(t, r.out)[0]["permissions"].([]any)) != 2 {
		t.Errorf("required flags in variables: %+v", r)
	}
	for path, want := range map[string]os.FileMode{s.data: 0o700, filepath.Join(s.data, "formsvc.db"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want mode %v", path, info, err, want)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	r := s.pipe(t, "", "--version")
	if r.status != 0 || !strings.HasPrefix(r.out, "formsvc ") || !strings.HasSuffix(r.out, ", "+runtime.Version()+", "+runtime.GOOS+"/"+runtime.GOARCH+"\n") {
		t.Errorf("--version: %+v", r)
	}
	if r := s.pipe(t, "", "--help"); r.status != 0 || r.err != "" {
		t.Errorf("--help: %+v", r)
	} else {
		contains(t, "--help", r.out, "serve", "accounts contact", "webhooks redeliver", "secrets rotate-key", "verify", "restore", "doctor")
	}
}

// The signatures match OpenSSL's. The constants were made with
//
//	openssl dgst -sha256 -hmac 'a secret of the tests, äöü'
func TestSignAndVerify(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for body, signature := range map[string]string{
		"":                             "5ba20c3e20d78f88b9bb3e764e1560225ffa5b1cb7b0799d28e695d07a11f2c1",
		`{"event":"response.created"}`: "085a3f34289ab518c9d3d237091a974f7cb74caea7b61712d4cd2fb7550b6b6b",
		"x\x00y\xff\n":                 "b2795564d455a68d25bab1bc0dcca67979079401cd30143a3abcd47996f010c4",
	} {
		if r := s.pipe(t, body, "sign", "--secret", testSecret); r != (result{0, signature + "\n", ""}) {
			t.Errorf("sign %q: %+v, want %s", body, r, signature)
		}
		verify := []string{"verify", "--secret", testSecret, "--signature", signature}
		if r := s.pipe(t, body, verify...); r.status != 0 || r.out != "" {
			t.Errorf("verify %q: %+v", body, r)
		}
		if r := s.pipe(t, body+"\n", verify...); r.status != 1 || !strings.Contains(r.err, "invalid") {
			t.Errorf("verify %q with a byte more: %+v", body, r)
		}
		verify[2] = "another secret"
		if r := s.pipe(t, body, verify...); r.status != 1 {
			t.Errorf("verify %q with another secret: %+v", body, r)
		}
	}
}

// The check of a container works over plain HTTP at any address of the listener, and tells a server that isn't ready.
func TestHealthCommand(t *testing.T) {
	t.Parallel()
	s := newShell(t).serve(t, "--addr", "0.0.0.0:0")
	_, port, err := net.SplitHostPort(strings.TrimPrefix(s.url, "http://"))
	noError(t, err)
	ask := func(flags ...string) result { return s.pipe(t, "", append([]string{"health"}, flags...)...) }
	for _, addr := range []string{":" + port, "0.0.0.0:" + port, "127.0.0.1:" + port} {
		if r := ask("--addr", addr); r.status != 0 || r.out != "ready\n" {
			t.Errorf("%s: %+v", addr, r)
		}
	}
	if r := ask("--addr", ":"+port, "--tls-cert", "x"); r.status != 1 {
		t.Errorf("over HTTPS: %+v", r)
	}
	if r := ask("--addr", "nowhere"); r.status != 2 || !strings.Contains(r.err, "--addr") {
		t.Errorf("no address: %+v", r)
	}
	s.stop()
	if r := ask("--addr", ":"+port); r.status != 1 || r.out != "" {
		t.Errorf("after the stop: %+v", r)
	}
	busy := must(new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0"))
	other := &http.Server{Handler: http.NotFoundHandler()}
	t.Cleanup(func() { _ = other.Close() })
	go func() { _ = other.Serve(busy) }()
	if r := ask("--addr", busy.Addr().String()); r.status != 1 || !strings.Contains(r.err, "404") {
		t.Errorf("another program: %+v", r)
	}
}
