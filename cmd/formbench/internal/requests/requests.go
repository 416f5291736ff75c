// Package requests measures requests to the API one after the other on each connection:
// creates, reads, pages far behind, and what quotas and idempotency keys cost. Its cells,
// rows and ratios are those of every part that sends requests.
package requests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/loadgen"
)

// A Runner measures requests.
type Runner struct {
	*bench.Bench
	Cells []Cell // what was measured so far
}

// Run measures the parts that send requests to the API. What was measured
// until one fails is returned, too.
func Run(ctx context.Context, b *bench.Bench) ([]Cell, error) {
	r := &Runner{Bench: b, Cells: []Cell{}}
	for _, part := range []struct {
		name string
		run  func(context.Context) error
	}{{bench.CreatePart, r.create}, {bench.ReadPart, r.read}, {bench.DepthPart, r.depth}, {bench.ChecksPart, r.checks}} {
		if !slices.Contains(b.Only, part.name) {
			continue
		}
		if err := part.run(ctx); err != nil {
			return r.Cells, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return r.Cells, nil
}

// Note adds a measured cell.
func (r *Runner) Note(c Cell) {
	r.Cells = append(r.Cells, c)
	_, _ = fmt.Fprintf(r.Log, "%s: %.0f/s\n", &c, c.PerSecond)
}

// plan returns the cells of a part in the order they are measured in: what is
// compared is measured one after the other.
func (r *Runner) plan(whats []string, conns, sizes []int, systems []string) (list []Cell) {
	for round := range r.Rounds {
		for _, store := range r.Stores {
			for _, what := range whats {
				for _, n := range conns {
					for _, size := range sizes {
						for _, system := range bench.Rotated(systems, round) {
							list = append(list, Cell{
								What: what, Store: store, System: system, Conns: n, Responses: size, Round: round + 1,
							})
						}
					}
				}
			}
		}
	}
	return list
}

// create measures new responses.
func (r *Runner) create(ctx context.Context) error {
	for _, c := range r.plan([]string{CreateWhat}, r.Conns, []int{0}, r.Systems) {
		if err := r.createCell(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", &c, err)
		}
	}
	return nil
}

func (r *Runner) createCell(ctx context.Context, c Cell) (err error) {
	if c.System == bench.CeilingSystem {
		w := database.InventedWorld()
		_, err := r.Measure(ctx, c, "", func(string) (loadgen.Workload, error) { return w.Creates() })
		return err
	}
	db, err := database.New(ctx, c.Store, r.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Drop()) }()
	w, err := db.NewAccount(ctx)
	if err != nil {
		return err
	}
	if w, err = db.WithWebhook(ctx, w); err != nil {
		return err
	}
	answered, err := r.Measure(ctx, c, db.DSN, func(string) (loadgen.Workload, error) {
		if c.System == bench.KeyedSystem {
			return w.KeyedCreates()
		}
		return w.Creates()
	})
	if err != nil {
		return err
	}
	return db.Holds(ctx, w, answered)
}

// checks measures new responses without a quota, with one, and with an idempotency
// key as well.
func (r *Runner) checks(ctx context.Context) error {
	if !slices.Contains(r.Systems, bench.APISystem) {
		return nil
	}
	for _, c := range r.plan([]string{ChecksWhat}, r.Conns, []int{0}, []string{bench.APISystem, bench.QuotaSystem, bench.KeyedSystem}) {
		if err := r.createCell(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", &c, err)
		}
	}
	return nil
}

// read measures one response and the newest ones.
func (r *Runner) read(ctx context.Context) (err error) {
	stores, err := r.fill(ctx, r.Fill)
	defer func() { err = errors.Join(err, stores.drop()) }()
	if err != nil {
		return err
	}
	systems := slices.DeleteFunc(slices.Clone(r.Systems), func(s string) bool { return s == bench.EachSystem })
	for _, c := range r.plan([]string{GetWhat, ListWhat}, r.ReadConns, []int{r.Fill}, systems) {
		f := stores[c.Store]
		w := f.campaigns[c.Responses]
		if c.System == bench.CeilingSystem {
			w = database.InventedWorld()
		}
		work := w.Gets(c.Responses)
		if c.What == ListWhat {
			work = w.List()
		}
		if _, err := r.Measure(ctx, c, f.DSN, func(string) (loadgen.Workload, error) { return work, nil }); err != nil {
			return fmt.Errorf("%s: %w", &c, err)
		}
	}
	return nil
}

// depth measures pages of a small and a large campaign of one account.
func (r *Runner) depth(ctx context.Context) (err error) {
	if !slices.Contains(r.Systems, bench.APISystem) {
		return nil
	}
	sizes := []int{bench.SmallCampaign, r.Large}
	stores, err := r.fill(ctx, sizes...)
	defer func() { err = errors.Join(err, stores.drop()) }()
	if err != nil {
		return err
	}
	for _, c := range r.plan([]string{FirstWhat, DeepWhat}, []int{1}, sizes, []string{bench.APISystem}) {
		f := stores[c.Store]
		w := f.campaigns[c.Responses]
		prepare := func(addr string) (loadgen.Workload, error) {
			if c.What == DeepWhat {
				return w.Deep(ctx, addr, c.Responses)
			}
			return w.List(), nil
		}
		if _, err := r.Measure(ctx, c, f.DSN, prepare); err != nil {
			return fmt.Errorf("%s: %w", &c, err)
		}
	}
	return nil
}

// A filled database has campaigns, by size, that are only read.
type filled struct {
	*database.Database
	campaigns map[int]database.World
}

// filledStores has one on each store.
type filledStores map[string]filled

func (s filledStores) drop() (err error) {
	for _, f := range s {
		err = errors.Join(err, f.Drop())
	}
	return err
}

// fill makes a database on each store, with campaigns of these sizes. What it
// made has to be dropped also when it fails.
func (r *Runner) fill(ctx context.Context, sizes ...int) (filledStores, error) {
	stores := make(filledStores)
	for _, store := range r.Stores {
		start := time.Now()
		db, err := database.New(ctx, store, r.Dir)
		if err != nil {
			return stores, err
		}
		f := filled{Database: db, campaigns: make(map[int]database.World)}
		stores[store] = f
		if err := f.fill(ctx, sizes); err != nil {
			return stores, fmt.Errorf("%s: %w", store, err)
		}
		_, _ = fmt.Fprintf(r.Log, "stored %d responses in %s in %.1f s\n", sizes, store, time.Since(start).Seconds())
	}
	return stores, nil
}

func (f *filled) fill(ctx context.Context, sizes []int) error {
	account, err := f.NewAccount(ctx)
	if err != nil {
		return err
	}
	first := 0
	for _, n := range sizes {
		if f.campaigns[n], err = f.WithResponses(ctx, account, first, n); err != nil {
			return err
		}
		first += n
	}
	return f.Settle(ctx)
}
