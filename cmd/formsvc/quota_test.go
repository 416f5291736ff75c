//go:build long

package main_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/postgres"
	"github.com/formsvc/toolkit/storage/sqlite"
)

const (
	// quotaLimit is the quota of the servers of these tests.
	quotaLimit = 100
	// quotaWindow doesn't end during a test.
	quotaWindow = "438000h"
)

// limited starts a server with the quota.
func limited(t testing.TB, dsn string) *server {
	t.Helper()
	// Hundreds of requests at once may wait for a slot: the test doesn't measure speed.
	return start(t, dsn, "--quota", strconv.Itoa(quotaLimit), "--quota-window", quotaWindow, "--max-wait", "10m")
}

// openedKeys returns a function that creates keys in an existing database, each with its own quota.
func openedKeys(t testing.TB, dsn string) func() string {
	t.Helper()
	var (
		store interface {
			formsvc.Store
			Close() error
		}
		err error
	)
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		store, err = sqlite.Open(t.Context(), path, &sqlite.Options{SkipMigrations: true})
	} else {
		store, err = postgres.Open(t.Context(), dsn, &postgres.Options{SkipMigrations: true, NoListen: true, MaxConns: 2})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	svc, err := formsvc.New(store, &formsvc.Options{MaxKeys: new(int)})
	if err != nil {
		t.Fatal(err)
	}
	accounts, err := svc.Accounts.List(t.Context())
	if err != nil || len(accounts) == 0 {
		t.Fatalf("no account: %v", err)
	}
	return func() string {
		_, value, err := svc.Keys.Create(t.Context(), accounts[0].ID,
			formsvc.KeyInput{Name: "round", Permissions: []formsvc.Permission{formsvc.CampaignsRead}})
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// A crowd makes concurrent requests over persistent connections.
type crowd struct{ http *http.Client }

func newCrowd(t testing.TB) *crowd {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 2 * quotaLimit}
	t.Cleanup(transport.CloseIdleConnections)
	return &crowd{http: &http.Client{Transport: transport, Timeout: patience}}
}

// ask makes one request and checks the response if it is rejected.
func (c *crowd) ask(t testing.TB, url, key string) (status int) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v1/me", nil)
	if err != nil {
		t.Error(err)
		return 0
	}
	req.Header.Set("Authorization", "Bearer "+key)
	a, err := (&client{http: c.http}).answered(req)
	if err != nil {
		t.Error(err)
		return 0
	}
	if a.status == http.StatusTooManyRequests {
		wait, err := strconv.Atoi(a.header.Get("Retry-After"))
		if err != nil || wait < 1 || a.header.Get("X-RateLimit-Reset") != a.header.Get("Retry-After") ||
			a.header.Get("X-RateLimit-Remaining") != "0" || !strings.Contains(string(a.body), `"quota_exceeded"`) {
			t.Errorf("a refusal with %v: %s", a.header, a.body)
		}
	}
	return a.status
}

// volley makes this many requests with the key to each server, all at once, and counts the responses by status.
func (c *crowd) volley(t testing.TB, key string, at map[*server]int) map[int]int {
	t.Helper()
	var (
		mu       sync.Mutex
		all      sync.WaitGroup
		statuses = make(map[int]int)
		begin    = make(chan struct{})
	)
	for s, n := range at {
		for range n {
			all.Go(func() {
				<-begin
				status := c.ask(t, s.url, key)
				mu.Lock()
				statuses[status]++
				mu.Unlock()
			})
		}
	}
	close(begin)
	all.Wait()
	return statuses
}

// Two servers allow the quota and what they count within a second. A server that stops writes its
// counts, and one that starts knows them.
func TestQuotaOverServers(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		first, second := limited(t, dsn), limited(t, dsn)
		newKey, crowd := openedKeys(t, dsn), newCrowd(t)
		key := newKey()
		allowed := func(s *server, n int) int { return crowd.volley(t, key, map[*server]int{s: n})[200] }
		total := allowed(first, 40) + allowed(second, 10)
		first.terminate(t)
		first.stopped(t)
		eventually(t, "the other server knows", func() bool { // each second it writes its own counts and learns of others
			n := allowed(second, 1)
			total += n
			return n == 0
		})
		if total < quotaLimit || total > quotaLimit+40 {
			t.Errorf("%d requests are allowed, want %d to %d", total, quotaLimit, quotaLimit+40)
		}
		second.terminate(t)
		second.stopped(t)
		if again := allowed(limited(t, dsn), 10); again != 0 {
			t.Errorf("%d more are allowed after a restart", again)
		}
	})
}

// Without flags, a key may make 1000 requests an hour. A quota of 0 is no limit, and --rate smooths bursts.
func TestQuotaFlags(t *testing.T) {
	t.Parallel()
	dsn := databases()[0].dsn(t)
	me := func(key string, variables []string, flags ...string) (quota map[string]int, policy string) {
		s := execute(t, dsn, variables, flags...).started(t)
		defer s.kill()
		if key == "" {
			key = s.firstKey(t)
		}
		var v struct {
			Quota map[string]int `json:"quota"`
		}
		a := newClient(t, s.url, key).want(t, 200, http.MethodGet, "/v1/me", nil, &v)
		return v.Quota, a.header.Get("RateLimit-Policy")
	}
	quota, policy := me("", nil)
	if quota["limit"] != 1000 || quota["windowSeconds"] != 3600 || quota["remaining"] != 999 || policy != `"key";q=1000;w=3600` {
		t.Errorf("without flags: %v, %s", quota, policy)
	}
	key := strings.TrimSpace(manage(t, dsn, "keys", "create", "--name", "k", "--permissions", "all"))
	if quota, policy = me(key, []string{"FORMSVC_QUOTA=0"}); quota != nil || policy != "" {
		t.Errorf("--quota 0: %v, %s", quota, policy)
	}
	if _, policy = me(key, nil, "--quota", "7", "--quota-window", "90s", "--quota-per-account"); policy != `"account";q=7;w=90` {
		t.Errorf("all flags: %s", policy)
	}

	s := start(t, dsn, "--rate", "0.001", "--burst", "5")
	c := newClient(t, s.url, key)
	for range 5 {
		c.want(t, 200, http.MethodGet, "/v1/me", nil, nil)
	}
	if a := c.want(t, 429, http.MethodGet, "/v1/me", nil, nil); !strings.Contains(string(a.body), `"rate_limited"`) ||
		a.header.Get("Retry-After") == "" {
		t.Errorf("a burst is refused with %v: %s", a.header, a.body)
	}

	for _, args := range []string{
		"--quota=-1", "--quota=99999999999", "--quota-window=0s", "--quota-window=1500ms", "--rate=-1", "--rate=NaN", "--burst=3", "--rate=1 --burst=-1",
	} {
		dir := t.TempDir()
		r := invocation{args: append([]string{"serve", "--addr", "127.0.0.1:0"}, strings.Fields(args)...), dir: dir}.run(t)
		flag, _, _ := strings.Cut(args[strings.LastIndex(args, "--"):], "=")
		if r.status != 2 || !strings.Contains(r.err, flag+":") {
			t.Errorf("serve %s: status %d, %q, want %s", args, r.status, r.err, flag)
		}
		if made, err := os.ReadDir(filepath.Clean(dir)); err != nil || len(made) > 0 {
			t.Errorf("serve %s left %v behind (%v)", args, made, err)
		}
	}
}
