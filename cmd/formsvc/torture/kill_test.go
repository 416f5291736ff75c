package torture_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/formsvc/toolkit/blobstore/s3blob/s3test"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

// The only node is killed at any moment, on either database.
func TestKill(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { killing(t, newWorld(t, 1, setup{dsn: sqliteDSN(t)})) })
	t.Run("postgres", func(t *testing.T) { killing(t, newWorld(t, 1, setup{dsn: postgrestest.DSN(t)})) })
}

// One of three nodes, which share a Postgres and a bucket, is killed at any moment.
func TestKillOneOfThree(t *testing.T) {
	server := s3test.Start(t)
	killing(t, newWorld(t, 3, bucket(server, server.Endpoint, postgrestest.DSN(t))))
}

// killing kills a node each round, at a random moment under load, and restarts it. In every fourth round it is also killed
// while it starts.
func killing(t *testing.T, w *world) {
	t.Helper()
	w.startAll()
	w.begin(600)
	for n := range rounds(8) {
		w.more(40)
		time.Sleep(100*time.Millisecond + rand.N(time.Second))
		i := rand.IntN(len(w.nodes))
		w.kill(i)
		if len(w.nodes) > 1 {
			time.Sleep(rand.N(200 * time.Millisecond)) // the others do without it
		}
		if n%4 == 3 {
			p := w.launch(t)
			time.Sleep(rand.N(60 * time.Millisecond))
			p.kill()
		}
		w.start(i)
	}
	w.check()
}

// A node is paused at any moment for longer than its leases of 8 seconds, and resumed. Another node has taken over its
// deliveries by then, and its late outcomes are rejected.
func TestPausePastLease(t *testing.T) {
	w := newWorld(t, 2, setup{dsn: postgrestest.DSN(t)})
	w.startAll()
	w.begin(300)
	for range rounds(1) {
		w.more(100)
		w.receiver.shut() // so that deliveries are in progress when it stops
		waitFor(t, "deliveries are under way", func() bool { return w.receiver.held.Load() > 0 })
		time.Sleep(100 * time.Millisecond)
		w.pause(rand.IntN(2), 9*time.Second, w.receiver.open)
	}
	w.check()
	if _, repeated := w.receiver.counts(); repeated == 0 {
		t.Error("INVALID: nothing was delivered by both nodes")
	}
}
