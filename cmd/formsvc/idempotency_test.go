//go:build long

package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"sync"
	"testing"
)

// once sends a POST with an Idempotency-Key.
func (c *client) once(ctx context.Context, path, key string, body []byte, edit func(*http.Request)) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	if edit != nil {
		edit(req)
	}
	return c.answered(req)
}

// callers records the calls of clients and their responses. It is safe for concurrent use.
type callers struct {
	campaign string

	mu    sync.Mutex
	sent  []string          // every key that was used
	acked map[string]answer // by key: the first complete response
}

func (k *callers) acknowledged() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.acked)
}

func (k *callers) body(t testing.TB, key string) []byte {
	t.Helper()
	b, err := json.Marshal(submission(key))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// work creates responses, each with its own key, until a request gets no response.
func (k *callers) work(t testing.TB, c *client, name string) {
	for i := 0; ; i++ {
		key := fmt.Sprint(name, "-", i)
		k.mu.Lock()
		k.sent = append(k.sent, key)
		k.mu.Unlock()
		a, err := c.once(t.Context(), responsesPath(k.campaign), key, k.body(t, key), nil)
		if err != nil {
			return
		}
		if a.status != http.StatusCreated {
			t.Errorf("%s: %d %s", key, a.status, a.body)
			return
		}
		k.mu.Lock()
		k.acked[key] = a
		k.mu.Unlock()
	}
}

// After a kill, clients repeat the calls that got no response. No call is done twice, whether its response arrived or not.
func TestRetriedCallsAfterKillAreDoneOnce(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		s := start(t, dsn)
		key := s.firstKey(t)
		k := &callers{campaign: newClient(t, s.url, key).campaign(t, "Keys"), acked: make(map[string]answer)}
		const lives = 4
		for life := range lives {
			before := k.acknowledged()
			var clients sync.WaitGroup
			for i := range 8 {
				c := newClient(t, s.url, key)
				clients.Go(func() { k.work(t, c, fmt.Sprint(life, "-", i)) })
			}
			eventually(t, "there is load", func() bool { return k.acknowledged() > before+100 || s.ended() })
			s.kill()
			clients.Wait()
			s = start(t, dsn)
		}
		k.again(t, newClient(t, s.url, key))
		t.Logf("%d calls, %d of them answered before the server was killed", len(k.sent), len(k.acked))
	})
}

// again repeats every call, and checks that each was done once.
func (k *callers) again(t *testing.T, c *client) {
	t.Helper()
	uuids := make(map[string]string) // by key
	done := 0
	for _, key := range k.sent {
		a, err := c.once(t.Context(), responsesPath(k.campaign), key, k.body(t, key), nil)
		if err != nil || a.status != http.StatusCreated {
			t.Fatalf("%s: %v, %d %s", key, err, a.status, a.body)
		}
		uuids[key] = path.Base(a.header.Get("Location"))
		first, acked := k.acked[key]
		if replayed := a.header.Get("Idempotent-Replayed") == "true"; replayed && !acked {
			done++ // although its response was lost
		} else if acked && (!replayed || !bytes.Equal(a.body, first.body)) {
			t.Errorf("%s: replayed: %t, %s after %s", key, replayed, a.body, first.body)
		}
	}
	stored := c.list(t, k.campaign)
	if len(stored) != len(k.sent) {
		t.Errorf("%d responses of %d calls", len(stored), len(k.sent))
	}
	for i := range stored {
		if marker, err := stored[i].marker(); err != nil || uuids[marker] != stored[i].UUID {
			t.Errorf("%s has the marker %q, %v; its call was answered with %s", stored[i].UUID, marker, err, uuids[marker])
		}
	}
	t.Logf("%d calls were done without an answer", done)
}

// Of two processes on one database that get the same call at once, one does it.
func TestSameCallOnTwoNodesIsDoneOnce(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		first := start(t, dsn)
		key := first.firstKey(t)
		second := start(t, dsn)
		nodes := []*client{newClient(t, first.url, key), newClient(t, second.url, key)}
		campaign := nodes[0].campaign(t, "Nodes")
		r := nodes[0].submit(t, campaign, "marker")
		body, err := json.Marshal(submission("twin"))
		if err != nil {
			t.Fatal(err)
		}
		upload := func(req *http.Request) { req.Header.Set("Content-Disposition", "attachment; filename=a.json") }
		for i := range 5 {
			together(t, nodes, responsesPath(campaign), fmt.Sprint("response-", i), body, nil)
			together(t, nodes, responsePath(campaign, r.UUID)+"/files", fmt.Sprint("file-", i), body, upload)
		}
		if n := len(nodes[0].list(t, campaign)); n != 1+5 {
			t.Errorf("%d responses, want 6", n)
		}
		var files struct{ Total int }
		nodes[1].want(t, http.StatusOK, http.MethodGet, responsePath(campaign, r.UUID)+"/files", nil, &files)
		if files.Total != 5 {
			t.Errorf("%d files, want 5", files.Total)
		}
	})
}

// together sends the same call to the nodes in turn, a hundred times at once.
func together(t *testing.T, nodes []*client, target, key string, body []byte, edit func(*http.Request)) {
	t.Helper()
	var (
		all   sync.WaitGroup
		mu    sync.Mutex
		fresh int
		made  = make(map[string]bool)
	)
	for i := range 100 {
		all.Go(func() {
			a, err := nodes[i%len(nodes)].once(t.Context(), target, key, body, edit)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && a.status == http.StatusCreated:
				made[a.header.Get("Location")] = true
				if a.header.Get("Idempotent-Replayed") == "" {
					fresh++
				}
			case err != nil || a.status != http.StatusConflict || a.header.Get("Retry-After") == "":
				t.Errorf("%s: %v, %d %s", target, err, a.status, a.body)
			}
		})
	}
	all.Wait()
	if fresh != 1 || len(made) != 1 {
		t.Errorf("%s: done %d times, as %v", target, fresh, made)
	}
}
