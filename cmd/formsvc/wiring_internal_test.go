package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/sqlite"
)

// wiring has for every flag of serve a test of its visible effect.
var wiring = map[string][]string{
	"TestEveryFlagHasAnEffect/limits":    {"max-campaigns", "max-stored", "max-upload", "base-url"},
	"TestEveryFlagHasAnEffect/work":      {"max-requests", "request-timeout"},
	"TestEveryFlagHasAnEffect/files":     {"hash-downloads"},
	"TestEveryFlagHasAnEffect/webhooks":  {"webhook-timeout", "webhook-retries", "webhook-lease", "webhook-concurrency"},
	"TestEveryFlagHasAnEffect/retention": {"retention"},
	"TestEveryFlagHasAnEffect/log":       {"log-format"},
	"TestServeLimits":                    {"quota", "quota-window", "quota-per-account", "rate"},
	"TestServeWorkflow":                  {"workflow"},
	"TestServeTellsClientsApart":         {"trusted-proxy"},
	"TestMaxConnections":                 {"max-connections", "addr"},
	"TestServeChecksWebhookAddresses":    {"webhook-allow"},
	"TestServeForms":                     {"forms-per-visitor", "log-requests"},
	"TestServeMetrics":                   {"metrics-addr"},
	"TestConsoleLinkCommand":             {"max-keys"},
	"TestDrainDelay":                     {"drain-delay"},
	"TestReady":                          {"ready"},
	"TestServeMails":                     {"smtp", "mail-from"},
	"TestServeConfirms":                  {"mails-per-address", "mails-per-hour"},
	"TestProviderFlags": {
		"oidc-issuer", "oidc-client-id", "oidc-client-secret", "oidc-title", "oidc-scope", "oidc-role-claim", "oidc-role", "oidc-domain", "oidc-account", "oidc-account-claim",
	},
	"TestProxyHeader":                  {"auth-proxy-header", "auth-proxy-networks", "auth-proxy-name-header", "auth-proxy-role", "auth-proxy-account"},
	"TestServeTLS":                     {"tls-cert", "tls-key"},
	"TestAutomaticCertificateOverHTTP": {"autocert-domain", "autocert-email", "autocert-directory", "redirect-addr"},
}

func TestEveryFlagHasAnEffect(t *testing.T) {
	t.Parallel()
	parser := must(newParser(new(cli)))
	tested := map[string]bool{}
	for _, flags := range wiring {
		for _, f := range flags {
			tested[f] = true
		}
	}
	for _, n := range parser.Model.Leaves(true) {
		for _, f := range n.Flags {
			if n.Name == "serve" && !tested[f.Name] {
				t.Errorf("--%s has no test: show its effect here", f.Name)
			}
		}
	}
	t.Run("limits", flagsOfLimits)
	t.Run("work", flagsOfWork)
	t.Run("files", flagsOfFiles)
	t.Run("webhooks", flagsOfWebhooks)
	t.Run("retention", flagOfRetention)
	t.Run("log", flagOfLog)
}

func flagsOfLimits(t *testing.T) {
	t.Parallel()
	s := newShell(t).serve(t, "--max-campaigns", "2", "--max-stored", "10", "--max-upload", "8", "--base-url", "https://forms.example.com/api")
	campaign := s.campaign(t)
	s.campaign(t)
	contains(t, "--max-campaigns", s.call(t, http.StatusConflict, http.MethodPost, "/v1/campaigns", map[string]string{"title": "x"}), "campaign_limit", "at most 2 ")
	files := responses(campaign) + "/" + s.submit(t, campaign) + "/files"
	contains(t, "--max-upload", s.call(t, http.StatusRequestEntityTooLarge, http.MethodPost, files, []byte("123456789")), "file_too_large", " 8 bytes")
	a, err := s.ask(t.Context(), http.MethodPost, files, []byte("12345678"))
	if err != nil || a.status != http.StatusCreated || !strings.HasPrefix(a.header.Get("Location"), "https://forms.example.com/api/v1/files/") {
		t.Errorf("--base-url: %+v, %v", a, err)
	}
	contains(t, "--max-stored", s.call(t, http.StatusConflict, http.MethodPost, files, []byte("123")), "storage_limit", "at most 10 ")
}

func flagsOfWork(t *testing.T) {
	t.Parallel()
	if a := newShell(t).serve(t, "--request-timeout", "1ns").get(t, "/v1/campaigns"); a.status != http.StatusServiceUnavailable || !strings.Contains(a.body, `"timeout"`) {
		t.Errorf("--request-timeout: %+v", a)
	}
	// Twice as many transfers as requests may run at once, of which an account gets half, and an address of visitors too.
	s := newShell(t).serve(t, "--max-requests", "1", "--forms-per-visitor", "0", "--trusted-proxy", "127.0.0.0/8")
	campaign := s.campaign(t)
	files := responses(campaign) + "/" + s.submit(t, campaign) + "/files"
	begin := func(path, first string, header ...string) { // a request whose body doesn't end; it fails if another one is quicker
		body, open := io.Pipe()
		t.Cleanup(func() { _ = open.Close() })
		go func() {
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+path, body)
			for i := 0; i < len(header); i += 2 {
				r.Header.Set(header[i], header[i+1])
			}
			if resp, err := http.DefaultClient.Do(r); err == nil {
				_ = resp.Body.Close()
			}
		}()
		_, _ = open.Write([]byte(first))
	}
	until(t, "--max-requests refuses a second transfer", func() bool {
		begin(files, "x", "Authorization", "Bearer "+s.key, "Content-Type", "text/plain", "Content-Disposition", "attachment; filename=a")
		a, err := s.ask(t.Context(), http.MethodPost, files, []byte("x"))
		return err == nil && a.status == http.StatusServiceUnavailable && strings.Contains(a.body, "too_many_transfers")
	})
	var made struct{ Form struct{ Token string } }
	noError(t, json.Unmarshal([]byte(s.call(t, http.StatusCreated, http.MethodPost, "/v1/campaigns", map[string]any{
		"title": "x", "requireEmail": false, "form": map[string]any{"enabled": true}, "modules": []any{map[string]any{"name": "f", "type": "file"}},
	})), &made))
	form, part := "/f/"+made.Form.Token, "--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a\"\r\n\r\n"+strings.Repeat("x", 40<<10)
	until(t, "the forms share these transfers", func() bool {
		begin(form, part, "Content-Type", "multipart/form-data; boundary=x", "X-Forwarded-For", "192.0.2.1")
		a, err := s.ask(t.Context(), http.MethodPost, form, []byte(part+"\r\n--x--\r\n"), "Content-Type: multipart/form-data; boundary=x", "X-Forwarded-For: 192.0.2.2")
		return err == nil && a.status == http.StatusServiceUnavailable
	})
}

// Only the hash notices a change of the row: the checksums of the blocks still fit.
func flagsOfFiles(t *testing.T) {
	t.Parallel()
	for _, hashes := range []bool{false, true} {
		sh, flags := newShell(t), []string(nil)
		if hashes {
			flags = []string{"--hash-downloads"}
		}
		s := sh.serve(t, flags...)
		campaign := s.campaign(t)
		file := s.made(t, responses(campaign)+"/"+s.submit(t, campaign)+"/files", []byte("content"))
		sh.change(t, "UPDATE formsvc_files SET sha256 = zeroblob(32)")
		a, err := s.ask(t.Context(), http.MethodGet, "/v1/files/"+file, nil)
		if whole := err == nil && a.status == http.StatusOK && a.body == "content"; whole == hashes {
			t.Errorf("--hash-downloads=%v: %+v, %v", hashes, a, err)
		}
	}
}

// change changes the SQLite database.
func (s *shell) change(t testing.TB, statement string) {
	t.Helper()
	db := must(sql.Open("sqlite", filepath.Join(s.data, "formsvc.db")+"?_pragma=busy_timeout(5000)"))
	defer func() { _ = db.Close() }()
	must(db.ExecContext(t.Context(), statement))
}

func flagsOfWebhooks(t *testing.T) {
	t.Parallel()
	hang := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then the end of the connection is noticed
		<-r.Context().Done()
	}))
	defer hang.Close()
	sh := newShell(t)
	s := sh.serve(t, "--webhook-timeout", "300ms", "--webhook-retries", "1ms", "--webhook-lease", "10h", "--webhook-concurrency", "1")
	campaign := s.campaign(t)
	hooks := make([]string, 6)
	for i := range hooks {
		hooks[i] = sh.hook(t, hang.URL+"/"+strconv.Itoa(i), "response.created")
	}
	s.submit(t, campaign)
	leased := func() (n int) {
		db := must(sql.Open("sqlite", filepath.Join(sh.data, "formsvc.db")+"?_pragma=busy_timeout(5000)"))
		defer func() { _ = db.Close() }()
		at := time.Now().Add(9 * time.Hour).UnixMicro()
		noError(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM formsvc_deliveries WHERE lease % 2 = 1 AND due_at > ?", at).Scan(&n))
		return n
	}
	until(t, "--webhook-lease", func() bool { return leased() > 0 })
	most := 0
	var list []map[string]any
	until(t, "all deliveries have failed", func() bool {
		list, most = nil, max(most, leased())
		for _, hook := range hooks {
			list = append(list, sh.list(t, "webhooks", "deliveries", hook)...)
		}
		failed := 0
		for _, d := range list {
			if d["state"] == "failed" {
				failed++
			}
		}
		return failed == len(hooks)
	})
	for _, d := range list {
		attempts := d["attempts"].([]any)
		if len(attempts) != 2 || attempts[0].(map[string]any)["error"] != "timeout" {
			t.Errorf("--webhook-retries and --webhook-timeout: %v", attempts)
		}
	}
	if most > 3 { // one is sent, and a few are fetched ahead
		t.Errorf("--webhook-concurrency: %d at once", most)
	}
}

// A server deletes events that are older than the retention period when it starts.
func flagOfRetention(t *testing.T) {
	t.Parallel()
	sh := newShell(t)
	s := sh.serve(t)
	campaign, key := s.campaign(t), s.key
	account := formsvc.ID(sh.list(t, "accounts", "list")[0]["uuid"].(string))
	s.stop()
	store := must(sqlite.Open(t.Context(), filepath.Join(sh.data, "formsvc.db"), nil))
	svc, err := formsvc.New(store, &formsvc.Options{Now: func() time.Time { return time.Now().Add(-2 * time.Hour) }})
	if err == nil {
		_, err = svc.Responses.Create(t.Context(), formsvc.CampaignKey{AccountID: account, ID: formsvc.ID(campaign)},
			formsvc.ResponseInput{User: formsvc.User{Email: "ada@example.com"}})
	}
	noError(t, errors.Join(err, store.Close()))
	for _, period := range []string{"3h", "1h"} {
		s := sh.serve(t, "--retention", period, "--webhook-retries", "1m")
		s.key = key
		until(t, "--retention "+period, func() bool { return strings.Contains(s.get(t, "/v1/events").body, `"items":[]`) == (period == "1h") })
		s.stop()
	}
}

func flagOfLog(t *testing.T) {
	t.Parallel()
	for format, isJSON := range map[string]bool{"json": true, "text": false} {
		p := newShell(t).background(t, "serve", "--addr", "127.0.0.1:0", "--log-format", format)
		p.log.wait(p.ctx, `serving`)
		line, _, _ := strings.Cut(p.log.String(), "\n")
		equal(t, json.Valid([]byte(line)), isJSON, "--log-format %s: %s is JSON: %t", format, line)
	}
}
