package bunstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// A Unit is one atomic write.
type Unit struct {
	// Exactly one of these is set. Creations are separate because a group writes all of
	// them with the same few statements.
	Creation *Creation
	Do       func(ctx context.Context, c *Tx) error
	// Single says that Do is one statement, or atomic by itself, on a database that runs
	// each statement as a transaction. Otherwise Do runs in a transaction.
	Single bool

	Err  error // the outcome
	wake bool  // whether it left deliveries to send

	member
}

// A Tx is the transaction that a Unit runs in.
type Tx struct {
	bun.IConn

	wake bool // whether the unit left deliveries to send
}

// A Creation is a new response.
type Creation struct {
	Response        formsvc.Response
	CampaignVersion int64
	Change          formsvc.Change

	full error // which limit it is beyond
}

// A committer groups units, commits them and returns the outcome to each caller. A
// backend has the statements and classifies errors.
//
// Each unit gets its own error. An error of a group means that nothing was written, and
// each unit is retried alone, so that only the faulty one fails. So does a panic. If the
// commit itself failed, nothing is retried, because its outcome is unknown. A panic of a
// unit is raised again in the goroutine that submitted it, a panic of the commit in that of
// the group's first unit.
type committer struct {
	*Config

	groups *grouper
}

func newCommitter(c *Config) *committer {
	k := &committer{Config: c}
	k.groups = newGrouper(cmp.Or(k.GroupLimit, 256), k.Gather, func(group []*Unit) {
		// A group under way is finished even if the contexts of its units end. A context
		// that can't end also saves the driver a goroutine for every statement.
		k.run(context.Background(), group)
	})
	return k
}

// commit returns when u has run. If ctx ends before u is under way, nothing is written.
func (k *committer) commit(ctx context.Context, u *Unit) (err error) {
	if k.Dialect.ManyWriters && u.Creation == nil {
		err = k.groups.alone(ctx, func() { k.run(ctx, []*Unit{u}) })
	} else {
		err = k.groups.do(ctx, u)
	}
	if err != nil {
		return err
	}
	return u.Err
}

// errAbandoned is the error of units whose group is ended by runtime.Goexit.
var errAbandoned = errCommit(errors.New("bunstore: the goroutine that was to commit has ended"))

// run commits a group and sets Err and Wake of its units.
func (k *committer) run(ctx context.Context, group []*Unit) {
	err := errAbandoned
	defer func() {
		if err != nil {
			fail(group, err)
		}
	}()
	failpoint("before")
	err = k.try(ctx, group)
	if err == nil {
		failpoint("after")
	}
	if err == nil || len(group) == 1 || errors.Is(err, formsvc.ErrUnknownOutcome) {
		return
	}
	fail(group, errAbandoned)
	err = nil
	for i := range group {
		k.run(ctx, group[i:i+1])
	}
}

func fail(group []*Unit, err error) {
	for _, u := range group {
		u.Err, u.wake = err, false
		if p, ok := errors.AsType[*panicError](err); ok { // the panic is raised once
			err = errCommit(errors.New(p.Error()))
		}
	}
}

// try commits a whole group. After an error of errCommit the outcome is unknown; after
// any other error nothing was written.
func (k *committer) try(ctx context.Context, group []*Unit) error {
	if k.Dialect.ManyWriters && (group[0].Creation != nil || group[0].Single) && !slices.ContainsFunc(group, (*Unit).limited) {
		c := k.Queue
		if group[0].Creation != nil {
			c = k.Read
		}
		return k.underWay(ctx, func(ctx context.Context) error {
			err := k.write(ctx, c, group)
			if err == nil || k.Transactions.Undone(err) {
				return err
			}
			return errCommit(err)
		})
	}
	return k.Transactions.with(ctx, func(c bun.IConn) (lost bool, err error) {
		err = k.underWay(ctx, func(ctx context.Context) error {
			lost, err = k.Transactions.on(ctx, c, func() error { return k.write(ctx, c, group) })
			return err
		})
		return lost || slices.ContainsFunc(group, func(u *Unit) bool { return isPanic(u.Err) }), err
	})
}

// underWay runs try with a context that the end of ctx doesn't end, because its caller
// waits for the outcome.
func (k *committer) underWay(ctx context.Context, try func(ctx context.Context) error) error {
	ctx = context.WithoutCancel(ctx)
	if k.UnitTimeout == 0 {
		return k.Transactions.Retried(func() error { return try(ctx) })
	}
	ctx, cancel := context.WithTimeout(ctx, k.UnitTimeout)
	defer cancel()
	err := k.Transactions.Retried(func() error { return try(ctx) })
	if errors.Is(err, context.DeadlineExceeded) {
		return Classified(formsvc.ErrUnavailable, err)
	}
	return err
}

// write runs a group of units in the transaction of c. A unit that fails gets its own
// error. If write returns an error, nothing was written.
func (k *committer) write(ctx context.Context, c bun.IConn, group []*Unit) error {
	creations := make([]*Unit, 0, len(group))
	for _, u := range group {
		u.Err, u.wake = nil, false
		if u.Creation != nil {
			creations = append(creations, u)
		}
	}
	if len(creations) > 0 {
		if err := attempt(func() error { return k.create(ctx, c, creations) }); err != nil {
			return err
		}
	}
	for _, u := range group {
		if u.Creation != nil {
			continue
		}
		if len(group) == 1 {
			// A unit alone in its transaction needs no savepoint.
			return u.run(ctx, c)
		}
		if err := savepoint(ctx, c, u); err != nil {
			return err
		}
	}
	return nil
}

// create writes the creations of a group in the transaction of c, those that are within their limits first.
// If some of these fail, others may take their places.
func (k *Config) create(ctx context.Context, c bun.IConn, group []*Unit) error {
	within, beyond, err := k.split(ctx, c, group)
	if err != nil {
		return err
	}
	if len(within) == 0 {
		for _, u := range beyond {
			u.Err = k.refusal(ctx, c, u.Creation)
		}
		return nil
	}
	list := make([]*Creation, len(within))
	for i, u := range within {
		list[i] = u.Creation
	}
	written, wake, err := k.Backend.CreateResponses(ctx, c, list)
	if err != nil {
		return err
	}
	var placed []*Creation
	for i, u := range within {
		if u.wake = wake; !written[i] {
			u.Err, u.wake = k.refusal(ctx, c, u.Creation), false
		} else if len(u.Creation.Change.Places) > 0 {
			placed = append(placed, u.Creation)
		}
	}
	if err := k.take(ctx, c, placed); err != nil {
		return err
	}
	if len(beyond) == 0 {
		return nil
	}
	return k.create(ctx, c, beyond)
}

const selectReason = "SELECT EXISTS (SELECT 1 FROM formsvc_idempotency AS i WHERE i.id = $1) OR EXISTS (SELECT 1 FROM formsvc_responses AS r WHERE r.call = $1)," +
	" (SELECT c.version FROM formsvc_campaigns AS c WHERE c.id = $2 AND c.account_id = $3)"

// refusal returns why a response was left out.
func (k *Config) refusal(ctx context.Context, c bun.IConn, n *Creation) error {
	var (
		repeated bool
		version  sql.NullInt64
	)
	row := c.QueryRowContext(ctx, selectReason, n.Call(), k.Dialect.arg(n.Response.CampaignID),
		k.Dialect.arg(n.Response.AccountID))
	switch err := row.Scan(&repeated, &version); {
	case err != nil:
		return Classified(formsvc.ErrUnavailable, err)
	case repeated:
		return formsvc.ErrRepeated
	case !version.Valid:
		return formsvc.ErrNotFound
	case version.Int64 == n.CampaignVersion && n.full != nil: // nothing else is wrong
		return n.full
	}
	return formsvc.ErrStale
}

func (u *Unit) run(ctx context.Context, c bun.IConn) error {
	return attempt(func() (err error) {
		tx := &Tx{IConn: c}
		err = u.Do(ctx, tx)
		u.wake = tx.wake
		return err
	})
}

// savepoint runs one unit so that its failure undoes only its own writes.
func savepoint(ctx context.Context, c bun.IConn, u *Unit) error {
	if err := exec(ctx, c, "SAVEPOINT formsvc_unit"); err != nil {
		return err
	}
	u.Err = u.run(ctx, c)
	if u.Err != nil {
		u.wake = false
		if err := exec(ctx, c, "ROLLBACK TO SAVEPOINT formsvc_unit"); err != nil {
			return fmt.Errorf("bunstore: %w (after %w)", err, u.Err)
		}
	}
	return exec(ctx, c, "RELEASE SAVEPOINT formsvc_unit")
}

// inSavepoint runs a unit of a bound store.
func (k *Config) inSavepoint(ctx context.Context, c bun.IConn, u *Unit) error {
	if creation := u.Creation; creation != nil {
		u.Do = func(ctx context.Context, c *Tx) error { return k.createAlone(ctx, c, creation) }
	}
	if err := savepoint(ctx, c, u); err != nil {
		return err
	}
	return u.Err
}

// createAlone writes a response in the transaction of c.
func (k *Config) createAlone(ctx context.Context, c *Tx, creation *Creation) error {
	u := &Unit{Creation: creation}
	err := k.create(ctx, c, []*Unit{u})
	c.wake = u.wake
	return cmp.Or(err, u.Err)
}

// A grouper runs concurrent units in groups, because a commit costs as much for many of
// them as for one. It has no timer and no goroutine. A caller that finds no group under
// way leads one. Units that arrive meanwhile are queued, and the caller of the first of
// them leads the next group. So a lone unit runs at once, and groups grow with the load.
type grouper struct {
	run    func(group []*Unit)
	gather func() // waits for more units before a group is assembled; nil: doesn't wait
	limit  int    // most units of a group

	mu      sync.Mutex
	waiting []*Unit
	led     bool // a group is under way
	closed  bool
	work    sync.WaitGroup // groups, and units that run alone; added to with mu held, and not after closed
}

// A member is the state of one unit in a grouper.
type member struct {
	signal chan struct{} // its group has run, or leads
	leads  bool          // the next group
}

func newGrouper(limit int, gather func(), run func([]*Unit)) *grouper {
	return &grouper{run: run, gather: gather, limit: limit}
}

// do returns when a group with u in it has run. If ctx ends while u is queued, u is
// withdrawn and ctx's error is returned. Once u is in a group, do waits for the outcome.
func (g *grouper) do(ctx context.Context, u *Unit) error {
	if err := g.begin(ctx); err != nil {
		return err
	}
	if g.led {
		u.signal = make(chan struct{}, 1)
		g.waiting = append(g.waiting, u)
		g.mu.Unlock()
		select {
		case <-u.signal:
		case <-ctx.Done():
			if g.withdraw(u) {
				return ctx.Err()
			}
			<-u.signal
		}
		if !u.leads {
			return nil
		}
	} else {
		g.led = true
		g.work.Add(1)
		g.mu.Unlock()
	}
	g.lead(u)
	return nil
}

// alone runs a function as soon as it is called, unless g is closed.
func (g *grouper) alone(ctx context.Context, run func()) error {
	if err := g.begin(ctx); err != nil {
		return err
	}
	g.work.Add(1)
	g.mu.Unlock()
	defer g.work.Done()
	run()
	return nil
}

// begin returns with mu held, or why nothing may begin.
func (g *grouper) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return formsvc.ErrStoreClosed
	}
	return nil
}

// withdraw removes u from the queue, unless it is in a group.
func (g *grouper) withdraw(u *Unit) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := slices.Index(g.waiting, u)
	if at >= 0 {
		g.waiting = slices.Delete(g.waiting, at, at+1)
	}
	return at >= 0
}

// lead runs a group that begins with u, and hands on the lead, however the group ends.
func (g *grouper) lead(u *Unit) {
	if g.gather != nil {
		g.gather()
	}
	g.mu.Lock()
	n := min(len(g.waiting), g.limit-1)
	group := append(append(make([]*Unit, 0, n+1), u), g.waiting[:n]...)
	g.waiting = slices.Delete(g.waiting, 0, n)
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, x := range group[1:] {
			x.signal <- struct{}{}
		}
		if len(g.waiting) == 0 {
			g.led = false
			g.work.Done()
			return
		}
		next := g.waiting[0]
		g.waiting = slices.Delete(g.waiting, 0, 1)
		next.leads = true
		next.signal <- struct{}{}
	}()
	g.run(group)
}

// close refuses new units and returns when the queued ones have run.
func (g *grouper) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.work.Wait()
}
