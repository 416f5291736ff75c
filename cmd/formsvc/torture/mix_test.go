package torture_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/load"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/pg"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/wire"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/world"
)

// A year of production in a few minutes: three nodes of which one at a time is killed, terminated or paused, a Postgres
// that is disconnected, stopped and restarted, and a bucket that fails, in random order.
func TestMix(t *testing.T) {
	t.Parallel()
	server := pg.Start(t, nil)
	proxy := wire.New(t, server.Addr())
	store, _, env := bucket(t)
	way, endpoint := newLink(t, store.Endpoint)
	w := world.New(t, world.Options{
		Program: program(t), DSN: proxy.DSN(t, server.DSN()), Nodes: 3, Env: env,
		Blobs: fmt.Sprintf("s3://%s?endpoint=%s&region=%s", store.Bucket, endpoint, store.Region),
	})
	node := func() int { return rand.IntN(3) }
	faults := map[string]func(){
		"kill":      func() { i := node(); w.Kill(i); time.Sleep(rand.N(200 * time.Millisecond)); w.Start(i) },
		"terminate": func() { i := node(); w.Terminate(i); w.Start(i) },
		"stand still": func() {
			d := rand.N(time.Second)
			if rand.IntN(8) == 0 {
				d = pause
			}
			w.Pause(node(), d, func() {})
		},
		"cut a commit": func() {
			proxy.Arm(wire.Position(rand.IntN(3)), wire.Containing("INSERT INTO formsvc_responses"))
			waitFor(t, "a statement to cut", func() bool { return !proxy.Armed() })
		},
		"cut all connections": func() { proxy.CutAll() },
		"slow network":        func() { proxy.Latency(t, 50*time.Millisecond); time.Sleep(300 * time.Millisecond); proxy.Latency(t, 0) },
		"stalled network":     func() { proxy.Stall(t, true); time.Sleep(rand.N(time.Second)); proxy.Stall(t, false) },
		"end connections":     func() { server.Terminate(t) },
		"crash of Postgres":   func() { server.Stop(t, pg.Immediate); server.Restart(t) },
		"no bucket":           func() { store.Stop(); time.Sleep(rand.N(500 * time.Millisecond)); store.Restart() },
		"uploads cut off": func() {
			way.hurt("limit_data", "upstream", `"bytes":100000`)
			time.Sleep(300 * time.Millisecond)
			way.heal()
		},
		"nobody takes webhooks": func() { w.Inbox.Shut(); time.Sleep(rand.N(500 * time.Millisecond)); w.Inbox.Open() },
	}
	names := make([]string, 0, len(faults))
	for name := range faults {
		names = append(names, name)
	}
	began, r := time.Now(), newRounds(10)
	w.StartAll()
	l := w.Load(func(o *load.Options) { o.Rate, o.Large = 300, true })
	for r.next() {
		time.Sleep(rand.N(600 * time.Millisecond))
		faults[names[rand.IntN(len(names))]]()
	}
	w.Stop(l)
	s := w.Check()
	report(t, r, "mixed faults", began, &s)
}
