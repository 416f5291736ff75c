package bunstore

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// A Unit is one write: all of it happens, or none.
type Unit struct {
	// Exactly one of these says what to write. Creation is kept apart since a
	// group writes all its creations with the same few statements.
	Creation *Creation
	Do       func(ctx context.Context, c bun.IConn) error
	// Single says that Do is one statement, or atomic by itself, on a database
	// where statements are transactions; else it is run in one.
	Single bool

	Err  error // what became of the unit
	Wake bool  // whether the unit left deliveries to send

	panicked any
	member
}

// A Creation is a new response.
type Creation struct {
	Response        formsvc.Response
	CampaignVersion int64
	Change          formsvc.Change
}

// Attempt runs the unit's function on c, inside whatever transaction c is in.
func (u *Unit) Attempt(ctx context.Context, c bun.IConn) (err error) {
	defer func() {
		if p := recover(); p != nil {
			u.panicked = fmt.Sprintf("%v\n\n%s", p, debug.Stack())
			err = fmt.Errorf("bunstore: panic in a unit: %v", p)
		}
	}()
	return u.Do(ctx, c)
}
