//go:build long

package transfer_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
	"github.com/formsvc/toolkit/storage/transfer"
)

var errStop = errors.New("stop here")

// A copy is interrupted at every report of progress, as by the end of the process, and
// resumes.
func TestInterruptedCopyResumes(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, from, to database) {
		newWorld(t, from)
		scatter(t, from, 4200)
		stops := 0
		for {
			err := interrupted(t, from, to, 1+stops%2)
			if err == nil {
				break
			}
			if !errors.Is(err, errStop) {
				t.Fatal(err)
			}
			for _, d := range []database{from, to} {
				if _, err := d.try(t.Context(), ring(t), false); !errors.Is(err, formsvc.ErrMoved) {
					t.Errorf("%s can be used amid a copy: %v", d.kind, err)
				}
			}
			stops++
		}
		if stops < 15 {
			t.Errorf("the copy was stopped %d times", stops)
		}
		compared(t, from, to)
	})
}

// interrupted copies until the nth report of progress, and leaves everything in that
// state.
func interrupted(t *testing.T, from, to database, n int) (err error) {
	t.Helper()
	a, b := from.open(t, true), to.open(t, true)
	defer func() { _ = errors.Join(a.Close(), b.Close()) }()
	done := make(chan error, 1)
	stopped := make(chan struct{})
	go func() {
		told := 0
		_, err := transfer.Copy(context.Background(), a, b, &transfer.Options{Progress: func(p transfer.Progress) {
			if p.What != "rows" {
				return
			}
			if told++; told == n {
				close(stopped)
				select {} // a dead process does nothing more
			}
		}})
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-stopped:
		return errStop
	}
}

// A copy ends between the two marks: neither database may be used, and the next run
// finishes the copy.
func TestUnfinishedMoveBlocksBothDatabases(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, from, to database) {
		newWorld(t, from)
		scatter(t, from, 100)
		if err := interrupted(t, from, to, 17); !errors.Is(err, errStop) { // the last table follows
			t.Fatal(err)
		}
		if _, err := moved(t, from, newDatabase(t, from.kind), nil); !errors.Is(err, formsvc.ErrMoved) {
			t.Errorf("to another database: %v", err)
		}
		a, b := from.open(t, true), to.open(t, true)
		ctx, cancel := context.WithCancel(t.Context())
		_, err := transfer.Copy(ctx, a, &hooked{b, func() error {
			if from.number(t, "SELECT count(*) FROM formsvc_identity WHERE state = 'moved'") > 0 {
				cancel()
			}
			return ctx.Err()
		}}, nil)
		if err == nil || !strings.Contains(err.Error(), "run the same copy again") {
			t.Fatalf("a copy that ends after the first mark: %v", err)
		}
		must(t, errors.Join(a.Close(), b.Close()))
		for _, d := range []database{from, to} {
			if _, err := d.try(t.Context(), ring(t), false); !errors.Is(err, formsvc.ErrMoved) {
				t.Errorf("%s can be used amid a copy: %v", d.kind, err)
			}
		}
		a = from.open(t, true)
		if err := transfer.Cancel(t.Context(), a); !errors.Is(err, formsvc.ErrMoved) {
			t.Errorf("all is copied, and it is cancelled: %v", err)
		}
		must(t, a.Close())
		_, err = moved(t, from, to, nil)
		must(t, err)
		must(t, to.open(t, false).Close())
		compared(t, from, to)
	})
}

// hooked is a store that calls before ahead of each write; the write fails if before
// does.
type hooked struct {
	store

	before func() error
}

func (h *hooked) Portable() bunstore.Portable { return &hookedPortable{h.store.Portable(), h.before} }

type hookedPortable struct {
	bunstore.Portable

	before func() error
}

func (p *hookedPortable) Write(ctx context.Context, do func(c bun.IConn) error) error {
	if err := p.before(); err != nil {
		return err
	}
	return p.Portable.Write(ctx, do)
}

// The same copy runs twice at once.
func TestConcurrentCopies(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, from, to database) {
		newWorld(t, from)
		scatter(t, from, 4200)
		if err := interrupted(t, from, to, 1); !errors.Is(err, errStop) {
			t.Fatal(err)
		}
		var (
			errs [2]error
			work sync.WaitGroup
		)
		for i := range errs {
			a, b := from.open(t, true), to.open(t, true)
			work.Go(func() {
				_, errs[i] = transfer.Copy(t.Context(), a, b, nil)
				errs[i] = errors.Join(errs[i], a.Close(), b.Close())
			})
		}
		work.Wait()
		for i, err := range errs {
			// One that begins after the other has ended finds the data moved.
			refused := errors.Is(err, transfer.ErrUnderWay) || errors.Is(err, formsvc.ErrMoved)
			if err != nil && (!refused || errs[1-i] != nil) {
				t.Errorf("copy %d of two: %v", i, err)
			}
		}
		compared(t, from, to)
	})
}

// A copy is cancelled while it runs, and another one begins: the first neither finishes
// in place of the other nor removes its fence.
func TestCancelledCopyLeavesTheNextAlone(t *testing.T) {
	t.Parallel()
	for name, goesOn := range map[string]bool{"goes on": true, "fails": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachPair(t, func(t *testing.T, from, to database) {
				newWorld(t, from)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				a, b, writes := from.open(t, true), to.open(t, true), 0
				_, err := transfer.Copy(ctx, &hooked{a, func() error {
					if writes++; writes != 2 { // the first write is the fence, the second marks it as moved
						return nil
					}
					s := from.open(t, true)
					must(t, transfer.Cancel(t.Context(), s))
					must(t, s.Close())
					if err := interrupted(t, from, to, 1); !errors.Is(err, errStop) {
						t.Errorf("the other copy: %v", err)
					}
					if !goesOn {
						cancel()
					}
					return ctx.Err()
				}}, b, nil)
				must(t, errors.Join(a.Close(), b.Close()))
				want := transfer.ErrUnderWay
				if !goesOn {
					want = context.Canceled
				}
				if !errors.Is(err, want) {
					t.Errorf("the first copy: %v, want %v", err, want)
				}
				if from.number(t, "SELECT count(*) FROM formsvc_identity WHERE state = 'moving'") != 1 {
					t.Error("the other copy has no fence anymore")
				}
				_, err = moved(t, from, to, nil)
				must(t, err)
				compared(t, from, to)
			})
		})
	}
}

// An interrupted copy is cancelled; what it copied is never taken for a part of the next
// copy.
func TestCancelReleasesTheSource(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, from, to database) {
		w := newWorld(t, from)
		scatter(t, from, 4200)
		if err := interrupted(t, from, to, 20); !errors.Is(err, errStop) {
			t.Fatal(err)
		}
		elsewhere := newDatabase(t, to.kind)
		if _, err := moved(t, from, elsewhere, nil); !errors.Is(err, formsvc.ErrMoved) {
			t.Errorf("a copy to another database meanwhile: %v", err)
		}
		s := from.open(t, true)
		must(t, transfer.Cancel(t.Context(), s))
		if err := transfer.Cancel(t.Context(), s); err == nil {
			t.Error("a copy is cancelled twice")
		}
		must(t, s.Close())
		w.respond(t, from, 3)
		// A copy that ended before it began in the target.
		from.exec(t, "UPDATE formsvc_identity SET state = 'moving', since = since + 1, peer = 'nowhere'")
		to.exec(t, "UPDATE formsvc_identity SET peer = 'nowhere'")
		if _, err := moved(t, from, to, nil); !errors.Is(err, formsvc.ErrMoved) {
			t.Errorf("a part of another copy is taken: %v", err)
		}
		from.exec(t, "UPDATE formsvc_identity SET state = 'active', peer = ''")
		_, err := moved(t, from, to, nil)
		must(t, err)
		compared(t, from, to)
		if err := transfer.Cancel(t.Context(), from.open(t, true)); !errors.Is(err, formsvc.ErrMoved) {
			t.Errorf("a copy is cancelled that is done: %v", err)
		}
	})
}
