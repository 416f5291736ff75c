package torture_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/load"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/world"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

// leastRate is the minimum average of acknowledged writes per second, including downtime, for kills to be meaningful.
const leastRate = 200

// The only node is killed at any moment, on either database.
func TestKill(t *testing.T) {
	t.Parallel()
	for name, dsn := range map[string]func(testing.TB) string{"sqlite": sqliteDSN, "postgres": postgrestest.DSN} {
		t.Run(name, func(t *testing.T) {
			w := world.New(t, world.Options{Program: program(t), DSN: dsn(t)})
			killing(t, w, 8)
		})
	}
}

// One of three nodes, which share a Postgres and a bucket, is killed at any moment.
func TestKillOneOfThree(t *testing.T) {
	t.Parallel()
	_, blobs, env := bucket(t)
	w := world.New(t, world.Options{Program: program(t), DSN: postgrestest.DSN(t), Blobs: blobs, Env: env, Nodes: 3})
	killing(t, w, 8)
}

// killing kills a node each round, at a random moment under load, and restarts it. In every fourth round it is also killed
// while it starts.
func killing(t *testing.T, w *world.World, few int) {
	t.Helper()
	began, r := time.Now(), newRounds(few)
	w.StartAll()
	l := w.Load(func(o *load.Options) { o.Rate = 600 })
	for r.next() {
		before := l.Acked()
		for time.Sleep(100*time.Millisecond + rand.N(1500*time.Millisecond)); l.Acked() < before+40; time.Sleep(time.Millisecond) {
		}
		i := rand.IntN(max(1, len(w.Targets())))
		w.Kill(i)
		if len(w.Targets()) > 0 {
			time.Sleep(rand.N(200 * time.Millisecond)) // the others do without it
		}
		if r.done%4 == 0 {
			w.KillStarting(i, rand.N(60*time.Millisecond))
		}
		w.Start(i)
	}
	w.Stop(l)
	s := w.Check()
	report(t, r, "kills", began, &s)
	if s.PerSecond < leastRate {
		t.Logf("INVALID as a measure: %.0f writes a second, want %d", s.PerSecond, leastRate)
	}
	if s.FailedForGood > 0 {
		t.Errorf("%d deliveries failed for good, to a receiver that refuses first attempts only", s.FailedForGood)
	}
}
