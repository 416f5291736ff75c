package torture_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/api"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/inbox"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/service"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/world"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

// The node dies at a named point: before or after a commit, a claim, a request, an outcome or a blob. The binary lists the
// names, so that none is left out.
func TestFailpoints(t *testing.T) {
	t.Parallel()
	tagged, err := buildTagged()
	if err != nil {
		t.Fatal(err)
	}
	for name, dsn := range map[string]func(testing.TB) string{"sqlite": sqliteDSN, "postgres": postgrestest.DSN} {
		t.Run(name, func(t *testing.T) {
			w := world.New(t, world.Options{Program: tagged, DSN: dsn(t), Flags: []string{"--quota", "1000000"}})
			points := strings.Fields(service.Command(t, &w.Setup, "failpoints"))
			rand.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
			if *roundsFlag == 0 && *forFlag == 0 {
				points = hot(points) // with few rounds, skip rare points
			}
			began, r := time.Now(), newRounds(8)
			l := w.Load(nil)
			reached := make(map[string]bool)
			for few := min(len(points), r.want); r.nextUntil(len(reached) >= few*6/10); {
				point := points[r.done%len(points)]
				if die(t, w, point) {
					reached[point] = true
				}
			}
			w.Stop(l)
			s := w.Check()
			report(t, r, "deaths at named points", began, &s)
			var never []string
			for _, point := range points {
				if !reached[point] {
					never = append(never, point)
				}
			}
			t.Logf("%d of %d points were reached; not %v", len(reached), len(points), never)
			if len(reached) < min(len(points), r.done-r.extra)*6/10 {
				t.Error("INVALID: most points were not reached")
			}
		})
	}
}

// die starts a node that dies at a point, does what leads there, and reports whether it or a command died.
func die(t *testing.T, w *world.World, point string) bool {
	t.Helper()
	setup := w.Setup
	name, times := point[:strings.LastIndex(point, ".")], 1
	if slices.Contains(frequent, name) {
		times += rand.IntN(1 << rand.IntN(5))
	}
	setup.Env = append(slices.Clone(setup.Env), "FORMSVC_FAILPOINT="+point+":"+strconv.Itoa(times))
	p := service.Launch(t, &setup)
	defer w.Lose(0, p)
	reached := false
	if p.Await() {
		w.Adopt(0, p)
		m := manager{w: w, setup: &setup, url: p.URL}
		reached = m.lead(name)
	}
	select {
	case <-p.Done():
		code, signal := p.Status()
		if signal != syscall.SIGKILL {
			t.Errorf("at %s the server ended with status %d\n%s", point, code, p.Log())
		}
		return true
	case <-time.After(time.Second): // what it waits for does not happen now
	}
	if !reached && strings.HasSuffix(name, "return") || name == "key.use" { // as it ends
		p.Signal(t, syscall.SIGTERM)
		<-p.Done()
		_, signal := p.Status()
		reached = signal == syscall.SIGKILL
	}
	return reached
}

// frequent are the units that requests and deliveries reach.
var frequent = []string{
	"response.create", "response.update", "file.create", "comment.create", "signature.create", "queue.ready", "queue.claim",
	"queue.payloads", "queue.finish", "request", "blob.put",
}

// hot returns the points of frequent units.
func hot(points []string) []string {
	return slices.DeleteFunc(slices.Clone(points), func(p string) bool {
		return !slices.Contains(frequent, p[:strings.LastIndex(p, ".")])
	})
}

// A manager does what clients rarely do, and ignores errors: at any of its steps the server or the command may die.
type manager struct {
	w     *world.World
	setup *service.Setup
	url   string
}

// lead triggers a unit, and reports whether a command died.
func (m *manager) lead(unit string) (died bool) {
	switch kind, _, _ := strings.Cut(unit, "."); kind {
	case "campaign":
		campaign := m.call(http.MethodPost, "/v1/campaigns", `{"title":"Aside"}`)
		m.call(http.MethodPut, "/v1/campaigns/"+campaign, `{"title":"Still aside"}`)
	case "webhook", "redeliver", "redeliver-failed", "audit":
		m.webhook()
	case "key":
		return m.command("keys", "create", "--name", world.Name(), "--permissions", "campaigns:read") ||
			m.command("keys", "revoke", strings.TrimSpace(m.lastKey()))
	case "account":
		name := world.Name()
		return m.command("accounts", "create", name) || m.command("accounts", "contact", name, "ada@example.com")
	case "link":
		return m.command("settings-link")
	case "erase":
		return m.command("erase", "--email", "nobody@example.com")
	}
	return false
}

func (m *manager) webhook() {
	campaign := m.call(http.MethodPost, "/v1/campaigns", `{"title":"Aside"}`)
	hook := "/v1/webhooks/" + m.call(http.MethodPost, "/v1/webhooks",
		`{"url":"`+m.w.Inbox.URL+inbox.Aside+`","events":["response.created"],"campaignUuid":"`+campaign+`"}`)
	delivery := m.call(http.MethodPost, hook+"/test", `{}`)
	m.call(http.MethodPost, hook+"/rotate", `{}`)
	time.Sleep(100 * time.Millisecond) // for the test to be delivered
	m.call(http.MethodPost, "/v1/deliveries/"+delivery+"/redeliver", `{}`)
	m.call(http.MethodPost, hook+"/redeliver", `{"since":"2020-01-01T00:00:00Z"}`)
	m.call(http.MethodDelete, hook, "")
}

// call makes a request and returns the UUID of the created record, if any.
func (m *manager) call(method, path, body string) string {
	a, err := m.w.Client.Do(context.Background(), api.Request{
		Method: method, URL: m.url + path, Body: []byte(body), Header: map[string]string{"Idempotency-Key": world.Name()},
	})
	if err != nil {
		return ""
	}
	return a.Created()
}

// command runs a command and reports whether it was killed.
func (m *manager) command(args ...string) bool {
	_, err := service.TryCommand(context.Background(), m.setup, args...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled()
}

// lastKey returns the UUID of a key other than the first, which the clients use.
func (m *manager) lastKey() string {
	out, _ := service.TryCommand(context.Background(), m.setup, "keys", "list", "--json")
	var key struct {
		UUID string `json:"uuid"`
		Name string `json:"name"`
	}
	for dec := json.NewDecoder(strings.NewReader(out)); dec.Decode(&key) == nil; {
		if key.Name != "first key" {
			return key.UUID
		}
	}
	return ""
}
