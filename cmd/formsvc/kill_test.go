package main_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// killsEnv names the variable that raises the number of kills.
	killsEnv = "FORMSVC_TEST_KILLS"
	// killsByDefault is for each database.
	killsByDefault = 20
	// killClients create responses at the same time.
	killClients = 8
	// killLoad is how many responses must have been acknowledged between two
	// kills, on average, for the test to say anything.
	killLoad = 20
	// killPause is the longest time under load before a kill, beyond killLoad.
	killPause = 700 * time.Millisecond
	// killMost is about how many responses end a life before that, so that a fast
	// machine does not make a long test.
	killMost = 400
	// leaseEnds is when the deliveries of a killed server are surely taken up
	// again: their leases last 10 seconds.
	leaseEnds = 30 * time.Second
)

// Whenever the server is killed: what it acknowledged is there, nothing is there
// that nobody sent, nothing twice, and every webhook event arrives, signed and
// with the same bytes each time.
func TestKillLosesNothing(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		kills := killsByDefault
		if n, err := strconv.Atoi(os.Getenv(killsEnv)); err == nil {
			kills = max(kills, n)
		}
		k := newKilling(t, dsn)
		began := time.Now()
		for i := range kills {
			k.life(t, i)
			if i%4 == 0 {
				k.shortLife(t)
			}
		}
		last := k.start(t)
		sent, acked := len(k.ledger.intents), k.ledger.acknowledged()
		t.Logf("%d kills under load and %d at the start in %v: %d responses sent, %d acknowledged, %d completed; slowest start %v",
			kills, k.short, time.Since(began).Round(time.Second), sent, acked, len(k.ledger.completed), k.slowest)
		if acked < killLoad*kills {
			t.Fatalf("INVALID: only %d acknowledged responses in %d lives, which proves nothing", acked, kills)
		}
		k.check(t, last)
	})
}

// A killing is a series of servers on one database, each killed.
type killing struct {
	dsn, key string
	ledger   *ledger
	inbox    *inbox
	short    int           // kills at the start
	slowest  time.Duration // start until serving
}

// newKilling prepares a database: a campaign, and a webhook for everything.
func newKilling(t *testing.T, dsn string) *killing {
	t.Helper()
	k := &killing{dsn: dsn, inbox: newInbox(t, 5*time.Millisecond, true)}
	s := k.start(t)
	k.key = s.firstKey(t)
	k.ledger = newLedger(newClient(t, s.url, k.key).campaign(t, "Kill"))
	hook(t, dsn, k.inbox.url, "all")
	s.kill()
	k.slowest = 0 // this one had to make the database
	return k
}

func (k *killing) flags() []string {
	return []string{"--webhook-retries", "100ms,100ms,100ms", "--webhook-timeout", "5s", "--webhook-lease", "10s"}
}

// start starts a server that is killed later.
func (k *killing) start(t *testing.T) *server {
	t.Helper()
	begin := time.Now()
	s := start(t, k.dsn, k.flags()...)
	k.slowest = max(k.slowest, time.Since(begin).Round(time.Millisecond))
	return s
}

// life starts a server, lets clients create responses and kills it at a random
// moment.
func (k *killing) life(t *testing.T, number int) {
	t.Helper()
	s := k.start(t)
	before := k.ledger.acknowledged()
	var clients sync.WaitGroup
	for i := range killClients {
		c := newClient(t, s.url, k.key)
		clients.Go(func() { k.ledger.work(t.Context(), c, fmt.Sprintf("%d-%d", number, i)) })
	}
	eventually(t, "there is load", func() bool { return k.ledger.acknowledged() >= before+killLoad || s.ended() })
	for end, most := time.Now().Add(rand.N(killPause)), before+killLoad+rand.N(killMost); time.Now().Before(end); {
		time.Sleep(rand.N(10 * time.Millisecond)) // a part of the random moment
		if k.ledger.acknowledged() > most {
			break
		}
	}
	if s.ended() {
		t.Fatalf("formsvc ended by itself: %v\n%s", s.cmd.ProcessState, tail(s.log.String(), 40))
	}
	s.kill()
	clients.Wait()
}

// shortLife kills a server at a random moment of its start.
func (k *killing) shortLife(t *testing.T) {
	t.Helper()
	s := launch(t, k.dsn, k.flags()...)
	time.Sleep(rand.N(100 * time.Millisecond)) // the random moment
	s.kill()
	k.short++
}

// check compares what clients, service and receiver know, on the last server,
// which it then ends.
func (k *killing) check(t *testing.T, s *server) {
	t.Helper()
	c := newClient(t, s.url, k.key)
	for _, fault := range k.ledger.faults {
		t.Error(fault)
	}
	k.ledger.readEach(t, c)
	begin := time.Now()
	happened, markers := k.ledger.check(t, c)
	k.inbox.wait(t, leaseEnds, happened)
	repeated := k.inbox.check(t, happened, markers)
	t.Logf("%d responses stored, %d events to arrive, %v waited for them; %d came again",
		len(markers), len(happened), time.Since(begin).Round(time.Second), repeated)
	if n := strings.Count(s.log.String(), finalFailure); n > 0 {
		t.Errorf("%d deliveries failed for good, to a receiver that takes every second attempt", n)
	}
	s.terminate(t)
	s.stopped(t)
	checkIntegrity(t, k.dsn)
}

// checkIntegrity checks that a SQLite file is whole.
func checkIntegrity(t testing.TB, dsn string) {
	t.Helper()
	path, ok := strings.CutPrefix(dsn, "sqlite:")
	if !ok {
		return // the server was not killed, only its client
	}
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var verdict string
	if err := db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		t.Errorf("the database is damaged: %s (%v)", verdict, err)
	}
}
