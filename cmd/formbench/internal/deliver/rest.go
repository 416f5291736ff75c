package deliver

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/loadgen"
	"github.com/formsvc/toolkit/cmd/formbench/internal/proc"
	"github.com/formsvc/toolkit/cmd/formbench/internal/result"
	"github.com/formsvc/toolkit/cmd/formbench/internal/worker"
)

// The claims of the backlog cells.
const (
	claimEndpoints = 9
	warmClaims     = 10
)

// claimRounds is the number of measured claims.
func claimRounds(o *bench.Options) int { return max(4*warmClaims, min(o.Events/100, 200)) }

// backlog measures claims for nine endpoints, beside the backlog of a tenth and
// without it.
func (d *runner) backlog(ctx context.Context, c *result.Cell) (err error) {
	var targets []*target
	defer func() {
		for _, t := range targets {
			err = errors.Join(err, t.Drop())
		}
	}()
	urls := make([]string, claimEndpoints+1)
	for i := range urls {
		urls[i] = d.receiver.Ready.Addr + "/" + strconv.Itoa(i)
	}
	for _, n := range []int{0, d.Backlog} {
		t, err := d.newTarget(ctx, c, urls...)
		if err != nil {
			return err
		}
		targets = append(targets, t)
		if err := t.pile(ctx, c.What, n, claimRounds(&d.Options)); err != nil {
			return err
		}
	}
	rounds := claimRounds(&d.Options)
	before, err := blocks(ctx, c.Store, targets)
	if err != nil {
		return err
	}
	took, err := claims(ctx, targets, rounds)
	if err != nil {
		return err
	}
	if err := rest(ctx, time.Second/2); err != nil { // the server updates its counters when connections end
		return err
	}
	after, err := blocks(ctx, c.Store, targets)
	if err != nil {
		return err
	}
	waiting, err := countWaiting(ctx, targets[1].Database, targets[1].hooks[claimEndpoints])
	alone, beside := medianMicros(took[0]), medianMicros(took[1])
	c.Add("claim-µs", beside)
	c.Add("claim-alone-µs", alone)
	c.Add("claim-ratio", beside/alone)
	c.Add("backlog", float64(waiting))
	if blocksAlone := float64(after[0]-before[0]) / float64(rounds); blocksAlone > 0 {
		c.Add("blocks", float64(after[1]-before[1])/float64(rounds))
		c.Add("blocks-alone", blocksAlone)
		c.Add("blocks-ratio", float64(after[1]-before[1])/float64(after[0]-before[0]))
	}
	return err
}

// claims measures the time to find and claim deliveries of the first endpoints. The databases take turns, so that both
// see the same machine.
func claims(ctx context.Context, targets []*target, rounds int) (took [2][]time.Duration, err error) {
	var stores [2]database.Store
	for i, t := range targets {
		if stores[i], err = database.OpenStore(ctx, t.DSN, 0); err != nil {
			return took, err
		}
		defer func() { err = errors.Join(err, stores[i].Close()) }()
	}
	for range rounds {
		for i, t := range targets {
			_, d, err := database.Claim(ctx, stores[i], t.endpoints())
			if err != nil {
				return took, err
			}
			took[i] = append(took[i], d)
		}
	}
	return took, nil
}

// endpoints are the endpoints to claim for.
func (t *target) endpoints() (list []string) {
	for _, id := range t.hooks[:claimEndpoints] {
		list = append(list, string(id))
	}
	return list
}

// medianMicros leaves out the first samples, which read the data that later ones find in memory.
func medianMicros(took []time.Duration) float64 {
	took = slices.Sorted(slices.Values(took[min(warmClaims, len(took)-1):]))
	return 1e3 * loadgen.Quantile(took, 50, 100)
}

// pile stores the deliveries for some rounds of claims, and a backlog of n for the last webhook.
func (t *target) pile(ctx context.Context, how string, n, rounds int) error {
	due := time.Now().Add(-time.Hour)
	return t.Use(func(db *sql.DB) error {
		statements := []string{}
		if !strings.HasPrefix(t.DSN, "sqlite:") { // SQLite vacuums nothing by itself
			statements = append(statements, "ALTER TABLE formsvc_deliveries SET (autovacuum_enabled = false)")
		}
		if how == bench.EmptyWhat {
			statements = append(statements, "ANALYZE formsvc_deliveries")
		}
		for _, s := range statements {
			if _, err := db.ExecContext(ctx, s); err != nil {
				return err
			}
		}
		each := (database.Claimed/claimEndpoints + 1) * rounds
		if n > 0 {
			if err := fillDeliveries(ctx, t.Database, db, t.hooks[claimEndpoints], 1, n, due.Add(-time.Hour)); err != nil {
				return err
			}
		}
		for i, hook := range t.hooks[:claimEndpoints] {
			if err := fillDeliveries(ctx, t.Database, db, hook, n+1+i*each, each, due); err != nil {
				return err
			}
		}
		return nil
	})
}

// blocks returns the number of blocks of the table and its indexes that were read so far, on Postgres.
func blocks(ctx context.Context, store string, targets []*target) ([]int64, error) {
	list := make([]int64, len(targets))
	if store != bench.PostgresStore {
		return list, nil
	}
	for i, t := range targets {
		var err error
		list[i], err = database.ServerCount(ctx, t.DSN, `SELECT coalesce(heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit, 0)
			FROM pg_statio_user_tables WHERE relname = 'formsvc_deliveries'`)
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// idleSettle is the time before a process counts as idle. Postgres may take 10 seconds to count the work of a
// connection.
func idleSettle(store string) time.Duration {
	if store == bench.PostgresStore {
		return 11 * time.Second
	}
	return time.Second
}

// idle measures a process with an idle store and engine.
func (d *runner) idle(ctx context.Context, c *result.Cell) (err error) {
	t, err := d.newTarget(ctx, c, d.receiver.Ready.Addr+"/0")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Drop()) }()
	p, err := t.start(ctx, d)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	if _, err := p.Do(worker.Command{Do: worker.Start}); err != nil {
		return err
	}
	if err := rest(ctx, idleSettle(c.Store)); err != nil {
		return err
	}
	queries, err := t.queries(ctx, c.Store)
	if err != nil {
		return err
	}
	before, err := proc.ReadTimes(p.PID)
	if err != nil {
		return err
	}
	if err := rest(ctx, d.Idle); err != nil {
		return err
	}
	after, err := proc.ReadTimes(p.PID)
	if err != nil {
		return err
	}
	later, err := t.queries(ctx, c.Store)
	seconds, each, _, _ := after.Since(&before)
	c.Add("core-%", 100*each[0])
	if c.Store == bench.PostgresStore {
		c.Add("queries/s", float64(later-queries)/seconds)
	}
	return err
}

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// queries returns the number of transactions in the database so far, by the counters of the Postgres server.
func (t *target) queries(ctx context.Context, store string) (int64, error) {
	if store != bench.PostgresStore {
		return 0, nil
	}
	dsn, err := url.Parse(t.DSN)
	if err != nil {
		return 0, errors.New("not a URL")
	}
	return database.ServerCount(ctx, os.Getenv(bench.PostgresEnv), // from another database, whose own queries do not count
		"SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = $1", strings.TrimPrefix(dsn.Path, "/"))
}
