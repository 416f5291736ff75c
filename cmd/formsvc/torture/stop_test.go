package torture_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/load"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/world"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

// pause is longer than the leases of deliveries in a world, which are 8 seconds.
const pause = 9 * time.Second

// A node is paused at any moment for longer than its leases, and resumed. Another node has taken over its deliveries by
// then, and its late outcomes are rejected.
func TestStopPastLease(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{Program: program(t), DSN: postgrestest.DSN(t), Nodes: 2})
	began, r := time.Now(), newRounds(1)
	w.StartAll()
	l := w.Load(func(o *load.Options) { o.Rate = 300 })
	// If the paused node happens to have sent nothing, the round is repeated.
	for again, tries := 0, 0; r.next() || again == 0 && tries < 5; _, again = w.Inbox.Count() {
		tries++
		waitFor(t, "there is load", func() bool { return l.Acked() >= 100*r.done })
		w.Inbox.Shut() // so that deliveries are in progress when it stops
		waitFor(t, "deliveries are under way", func() bool { return w.Inbox.Held() > 0 })
		time.Sleep(rand.N(100 * time.Millisecond))
		i := rand.IntN(2)
		w.Pause(i, pause, w.Inbox.Open)
	}
	w.Stop(l)
	logs := w.Node(0).Log() + w.Node(1).Log()
	s := w.Check()
	report(t, r, "stops past the lease", began, &s)
	if s.Again == 0 {
		t.Error("INVALID: nothing was delivered by both nodes")
	}
	t.Logf("outcomes refused: %d", strings.Count(logs, "not accepted"))
}
