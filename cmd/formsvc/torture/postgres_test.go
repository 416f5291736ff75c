package torture_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/load"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/pg"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/service"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/wire"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/world"
)

// The connection to Postgres is cut before a commit reaches it, after the commit but before the node knows, and in the
// middle of the reply: for new responses, other writes, and outcomes of deliveries.
func TestCommitCut(t *testing.T) {
	t.Parallel()
	server := pg.Start(t, nil)
	proxy := wire.New(t, server.Addr())
	w := world.New(t, world.Options{Program: program(t), DSN: proxy.DSN(t, server.DSN()), Nodes: 2})
	statements := []func(string) bool{
		wire.Containing("INSERT INTO formsvc_responses"), wire.Commit, wire.Containing("INSERT INTO formsvc_attempts"),
	}
	positions := []wire.Position{wire.Before, wire.After, wire.During}
	began, r := time.Now(), newRounds(27)
	w.StartAll()
	l := w.Load(func(o *load.Options) { o.MoreFiles = true })
	for r.next() {
		n := r.done - 1
		proxy.Arm(positions[n%3], statements[n/3%3])
		waitFor(t, "a statement to cut", func() bool { return !proxy.Armed() })
		time.Sleep(rand.N(40 * time.Millisecond))
		if n%50 == 49 {
			proxy.CutAll() // and once in a while all of them
		}
	}
	w.Stop(l)
	s := w.Check()
	report(t, r, "commits cut", began, &s)
	if s.Happened == 0 && r.done > 50 {
		t.Error("INVALID: nothing happened that was not answered")
	}
	if proxy.Cuts() < r.done*8/10 {
		t.Errorf("INVALID: %d of %d cuts were where they should be", proxy.Cuts(), r.done)
	}
}

// Postgres terminates the connections of nodes, is killed and restarted, and is unreachable for a while.
func TestPostgresRestart(t *testing.T) {
	t.Parallel()
	server := pg.Start(t, nil)
	w := world.New(t, world.Options{Program: program(t), DSN: server.DSN(), Nodes: 2})
	began, r := time.Now(), newRounds(4)
	w.StartAll()
	l := w.Load(nil)
	for r.next() {
		time.Sleep(rand.N(400 * time.Millisecond))
		before := l.Acked()
		switch r.done % 4 {
		case 0:
			server.Terminate(t)
		case 1:
			server.Stop(t, pg.Immediate)
			server.Restart(t)
		case 2:
			server.Stop(t, pg.Kill)
			time.Sleep(rand.N(300 * time.Millisecond))
			server.Restart(t)
		case 3:
			server.Restart(t)
		}
		waitFor(t, "writes are taken again", func() bool { return l.Acked() > before+20 })
	}
	w.Stop(l)
	s := w.Check()
	report(t, r, "stops of Postgres", began, &s)
}

// A node that starts before its database waits for it.
func TestStartBeforeDatabase(t *testing.T) {
	t.Parallel()
	server := pg.Start(t, nil)
	w := world.New(t, world.Options{Program: program(t), DSN: server.DSN()})
	server.Stop(t, pg.Fast)
	p := service.Launch(t, &w.Setup)
	waitFor(t, "the node says that it waits", func() bool { return strings.Contains(p.Log(), "database unreachable; retrying") || p.Ended() })
	server.Restart(t)
	if !p.Await() {
		t.Fatalf("the node does not serve:\n%s", p.Log())
	}
}

// The primary is killed and loses its disk, the synchronous standby is promoted, and the old primary becomes its standby,
// repeatedly.
func TestPromotion(t *testing.T) {
	t.Parallel()
	servers := []*pg.Server{pg.Start(t, nil)}
	servers = append(servers, servers[0].Standby(t))
	w := world.New(t, world.Options{Program: program(t), DSN: pg.MultiHost(servers[0], servers[1]), Nodes: 2})
	began, r := time.Now(), newRounds(2)
	w.StartAll()
	l := w.Load(func(o *load.Options) { o.Rate = 300 })
	var gap time.Duration
	for r.next() {
		time.Sleep(200*time.Millisecond + rand.N(300*time.Millisecond))
		primary, standby := servers[(r.done-1)%2], servers[r.done%2]
		primary.Stop(t, pg.Kill)
		lost := time.Now()
		standby.Promote(t)
		before := l.Acked()
		waitFor(t, "writes are taken again", func() bool { return l.Acked() > before+20 })
		gap = max(gap, time.Since(lost))
		primary.Rejoin(t, standby)
	}
	w.Stop(l)
	s := w.Check()
	report(t, r, "promotions", began, &s)
	t.Logf("longest time from the death of a primary until 20 writes were taken by the other: %v", gap.Round(time.Millisecond))
}

// PgBouncer in transaction mode is between the nodes and Postgres, which is restarted meanwhile.
func TestPooler(t *testing.T) {
	t.Parallel()
	server := pg.Start(t, nil)
	w := world.New(t, world.Options{Program: program(t), DSN: pg.Pooler(t, server), Nodes: 2})
	began, r := time.Now(), newRounds(3)
	w.StartAll()
	l := w.Load(nil)
	for r.next() {
		before := l.Acked()
		time.Sleep(300*time.Millisecond + rand.N(300*time.Millisecond))
		switch r.done % 3 {
		case 0:
			server.Restart(t)
		case 1:
			w.Kill(0)
			w.Start(0)
		case 2:
			server.Terminate(t)
		}
		waitFor(t, "writes are taken again", func() bool { return l.Acked() > before+20 })
	}
	w.Stop(l)
	s := w.Check()
	report(t, r, "faults behind PgBouncer", began, &s)
}
