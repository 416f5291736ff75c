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

// A disk is a connection that records statements and whose commits end as configured.
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
	return nil, nil //nolint:nilnil // the result is ignored
}

// commitTogether commits units as one group and returns what each caller gets: an error or
// a panic.
func (d *disk) commitTogether(units ...*Unit) (errs []error, panics []any) {
	k := newCommitter(&Config{GroupLimit: len(units), Transactions: &Transactions{
		Conn: func(context.Context) (bun.IConn, func(bool), error) {
			d.taken++
			return d, func(lost bool) { d.lost = append(d.lost, lost) }, nil
		},
		Begin: "BEGIN", Commit: "COMMIT", Undone: func(error) bool { return false },
	}})
	s := &Store{backend: classifies{}, commit: k.commit, closed: make(chan struct{})}
	errs, panics = make([]error, len(units)), make([]any, len(units))
	first, hold := make(chan struct{}), make(chan struct{})
	k.groups.run = func(group []*Unit) {
		if group[0] != units[0] { // commits alone, so that the next ones gather
			close(first)
			<-hold
			return
		}
		k.run(context.Background(), group)
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
		synctest.Wait() // started in order, so that the first one leads
	}
	close(hold)
	all.Wait()
	k.groups.close()
	return errs, panics
}

// classifies is a backend that returns errors unchanged.
type classifies struct{ Backend }

func (classifies) Classify(err error) error { return err }

func counted(n *int) *Unit {
	return &Unit{Do: func(context.Context, *Tx) error { *n++; return nil }}
}

// After a failed commit, whose outcome is unknown, no unit is retried and each caller
// gets the error.
func TestFailedCommitReturnsUnknownOutcome(t *testing.T) {
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

// One caller gets the panic, the others ErrUnknownOutcome.
func TestCommitPanicReachesOneCaller(t *testing.T) {
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

// Only the unit that panics is undone, and its connection isn't used again.
func TestPanickingUnitIsUndoneAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		value := &struct{ int }{1}
		d := &disk{commit: func() error { return nil }}
		ran := 0
		bad := &Unit{Do: func(context.Context, *Tx) error { panic(value) }}
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

// The goroutine that commits exits. Every caller returns, and none is told that a
// rolled-back write succeeded.
func TestGoexitInUnitReturnsToEveryCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{commit: func() error { return nil }}
		ran := 0
		exits := &Unit{Do: func(context.Context, *Tx) error { runtime.Goexit(); return nil }}
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
