package bunstore

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// A disk is a connection that notes statements; its commits end as it is told.
type disk struct {
	bun.IConn

	commit     func() error
	statements []string
	taken      int
	lost       []bool // of the connections that were given back
}

func (d *disk) ExecContext(_ context.Context, query string, _ ...any) (sql.Result, error) {
	d.statements = append(d.statements, query)
	if query == "COMMIT" {
		return nil, d.commit()
	}
	return nil, nil //nolint:nilnil // nobody looks at it
}

// commitTogether commits units as one group and returns what their callers get: an error or
// a panic.
func (d *disk) commitTogether(units ...*Unit) (errs []error, panics []any) {
	k := newCommitter(&Config{GroupLimit: len(units), Transactions: &Transactions{
		Conn: func(context.Context) (bun.IConn, func(bool), error) {
			d.taken++
			return d, func(lost bool) { d.lost = append(d.lost, lost) }, nil
		},
		Begin: "BEGIN", Commit: "COMMIT", Undone: func(error) bool { return false },
	}})
	s := &core{backend: classifies{}, commit: k.commit, closed: make(chan struct{})}
	errs, panics = make([]error, len(units)), make([]any, len(units))
	first, hold := make(chan struct{}), make(chan struct{})
	k.groups.run = func(ctx context.Context, group []*Unit) {
		if group[0] != units[0] { // alone before them, so that they gather
			close(first)
			<-hold
			return
		}
		k.run(ctx, group)
	}
	var all sync.WaitGroup
	all.Go(func() { _ = s.submit(context.Background(), &Unit{}) })
	<-first
	for i, u := range units {
		errs[i] = errors.New("the caller's goroutine ended")
		all.Go(func() {
			defer func() { panics[i] = recover() }()
			errs[i] = s.submit(context.Background(), u)
		})
		synctest.Wait() // one after the other, the first one leads
	}
	close(hold)
	all.Wait()
	k.close()
	return errs, panics
}

// classifies is a backend that takes errors as they are.
type classifies struct{ Backend }

func (classifies) Classify(err error) error { return err }

func counted(n *int) *Unit {
	return &Unit{Do: func(context.Context, bun.IConn) error { *n++; return nil }}
}

// TestFailedCommitIsUnknown has a commit fail, of which nobody knows what became of
// it: no unit of it is tried again, and each is told.
func TestFailedCommitIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failure := errors.New("disk I/O error")
		d := &disk{commit: func() error { return failure }}
		ran := 0
		errs, panics := d.commitTogether(counted(&ran), counted(&ran), counted(&ran))
		for i, err := range errs {
			if !errors.Is(err, formsvc.ErrUnknownOutcome) || !errors.Is(err, failure) || panics[i] != nil {
				t.Errorf("unit %d: %v, want ErrUnknownOutcome and its cause", i, err)
			}
		}
		if ran != len(errs) || d.taken != 1 || !slices.Contains(d.statements, "ROLLBACK") {
			t.Errorf("%d units were run, want each of %d once: %q", ran, len(errs), d.statements)
		}
	})
}

// TestACommitThatPanics gives the panic to one caller, and an unknown outcome to the others.
func TestACommitThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		value := &struct{ int }{1}
		d := &disk{commit: func() error { panic(value) }}
		ran := 0
		errs, panics := d.commitTogether(counted(&ran), counted(&ran), counted(&ran))
		if panics[0] != any(value) {
			t.Errorf("the first caller got the panic %v, want %v", panics[0], value)
		}
		for i, err := range errs[1:] {
			if !errors.Is(err, formsvc.ErrUnknownOutcome) || panics[i+1] != nil {
				t.Errorf("unit %d: %v and the panic %v, want ErrUnknownOutcome", i+1, err, panics[i+1])
			}
		}
		if ran != len(errs) || !slices.Equal(d.lost, []bool{true}) {
			t.Errorf("%d units were run, want each of %d once; connections lost: %v, want the one", ran, len(errs), d.lost)
		}
	})
}

// TestAUnitThatPanics among others is undone alone, and its connection not used again.
func TestAUnitThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		value := &struct{ int }{1}
		d := &disk{commit: func() error { return nil }}
		ran := 0
		bad := &Unit{Do: func(context.Context, bun.IConn) error { panic(value) }}
		errs, panics := d.commitTogether(counted(&ran), bad, counted(&ran))
		if errs[0] != nil || errs[2] != nil || ran != 2 || panics[0] != nil || panics[2] != nil {
			t.Errorf("the neighbours got %v and the panics %v", errs, panics)
		}
		want := []string{
			"BEGIN", "SAVEPOINT formsvc_unit", "RELEASE SAVEPOINT formsvc_unit", "SAVEPOINT formsvc_unit",
			"ROLLBACK TO SAVEPOINT formsvc_unit", "RELEASE SAVEPOINT formsvc_unit", "SAVEPOINT formsvc_unit",
			"RELEASE SAVEPOINT formsvc_unit", "COMMIT",
		}
		if panics[1] != any(value) || !slices.Equal(d.statements, want) || !slices.Equal(d.lost, []bool{true}) {
			t.Errorf("its caller got %v after %q; connections lost: %v", panics[1], d.statements, d.lost)
		}
	})
}

// TestAUnitThatExits takes the goroutine with it that commits. Nobody waits for ever, and
// nobody is told that what was rolled back is there.
func TestAUnitThatExits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{commit: func() error { return nil }}
		ran := 0
		exits := &Unit{Do: func(context.Context, bun.IConn) error { runtime.Goexit(); return nil }}
		errs, _ := d.commitTogether(counted(&ran), exits, counted(&ran))
		for i, err := range errs {
			if err == nil {
				t.Errorf("unit %d was rolled back, and got no error", i)
			}
		}
		if !slices.Contains(d.statements, "ROLLBACK") || slices.Contains(d.statements, "COMMIT") || !slices.Equal(d.lost, []bool{true}) {
			t.Errorf("%q; connections lost: %v", d.statements, d.lost)
		}
	})
}

// TestAReadThatPanics gives the panic to who leads, and an error to the others: they must
// not take it for that there is nothing.
func TestAReadThatPanics(t *testing.T) {
	value := &struct{ int }{1}
	s := newStore(new(core))
	group := []*Read{{}, {}}
	defer func() {
		if got := recover(); got != any(value) {
			t.Errorf("the panic %v, want %v", got, value)
		}
		for _, r := range group {
			if !errors.Is(r.err, formsvc.ErrUnavailable) {
				t.Errorf("a read of the group got %v", r.err)
			}
		}
	}()
	s.readGroup(func(context.Context, bun.IConn, []*Read) error { panic(value) }, group)
}
