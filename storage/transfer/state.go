package transfer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

func (j *job) state(ctx context.Context, d bunstore.Portable) (s bunstore.State, err error) {
	err = d.Read(ctx, func(c bun.IConn) error {
		s, err = bunstore.ReadState(ctx, c)
		return err
	})
	return s, err
}

// locked calls do in a transaction that has locked the state.
func locked(ctx context.Context, d bunstore.Portable, do func(c bun.IConn, s bunstore.State) error) error {
	return d.Write(ctx, func(c bun.IConn) error {
		if _, err := c.ExecContext(ctx, "UPDATE formsvc_identity SET id = 1 WHERE id = 1"); err != nil {
			return err
		}
		s, err := bunstore.ReadState(ctx, c)
		if err != nil {
			return err
		}
		return do(c, s)
	})
}

func setState(ctx context.Context, d bunstore.Portable, c bun.IConn, s bunstore.State) error {
	_, err := c.ExecContext(ctx, d.Rebind("UPDATE formsvc_identity SET identity = "+d.Param(bunstore.UUID)+
		", state = ?, peer = ?, since = ? WHERE id = 1"), s.Identity, s.State, s.Peer, s.Since)
	return err
}

// checkSchema checks that a database has the schema of this release.
func (j *job) checkSchema(ctx context.Context, d bunstore.Portable, older string) error {
	has, knows, err := d.Versions(ctx)
	switch {
	case err != nil:
		return err
	case has > knows:
		return fmt.Errorf("%w: that of %s is newer (%d) than this release knows (%d): use the release that runs on it",
			bunstore.ErrSchemaNewer, d.Place(), has, knows)
	case has == 0:
		return fmt.Errorf("%w: %s has none: it is new, or not a database of formsvc", ErrSchema, d.Place())
	case has < knows:
		return fmt.Errorf("%w: that of %s is older (%d) than this release (%d): %s", ErrSchema, d.Place(), has, knows, older)
	}
	return nil
}

// begin checks both databases, and fences the source unless that is done. moved says that
// everything was copied already.
func (j *job) begin(ctx context.Context) (moved bool, err error) {
	if (j.FromBlobs == nil) != (j.ToBlobs == nil) {
		return false, fmt.Errorf("transfer: one blob store is given, but not the other")
	}
	if err := j.checkSchema(ctx, j.from, "start this release on it once, or run \"formsvc migrate up\""); err != nil {
		return false, err
	}
	from, err := j.state(ctx, j.from)
	if errors.Is(err, sql.ErrNoRows) {
		return false, fmt.Errorf("%w: %s was never opened by this release; start this release on it once", ErrSchema, j.from.Place())
	}
	if err != nil {
		return false, err
	}
	if from.State == bunstore.Receiving {
		return false, from.Refuse()
	}
	if err := j.missing(ctx); err != nil {
		return false, err
	}
	if err := j.checkBlobs(ctx, from.Identity); err != nil {
		return false, err
	}
	to, err := j.checkTarget(ctx, &from)
	if err != nil {
		return false, err
	}
	same := to.State == bunstore.Receiving && to.Identity == from.Identity && to.Since == from.Since
	if from.State == bunstore.Moved {
		if !same {
			return false, from.Refuse()
		}
		j.token = from.Since
		return true, nil
	}
	return false, j.fence(ctx, same)
}

// checkTarget checks that the target is empty or has a part of this copy, and migrates
// it.
func (j *job) checkTarget(ctx context.Context, from *bunstore.State) (to bunstore.State, err error) {
	has, knows, err := j.to.Versions(ctx)
	switch {
	case err != nil:
		return to, err
	case has > knows:
		return to, j.checkSchema(ctx, j.to, "")
	case has == knows:
		to, err = j.state(ctx, j.to)
		if errors.Is(err, sql.ErrNoRows) {
			break // the process that created the schema was killed before it added the row: Migrate adds it
		}
		if err != nil {
			return to, err
		}
		if to.Identity == from.Identity && to.State != bunstore.Receiving && from.State != bunstore.Moved {
			return to, fmt.Errorf("%w: %s and %s are one database, or one is a copy of the other", ErrSame, j.from.Place(), j.to.Place())
		}
	}
	if to.State == bunstore.Receiving {
		if to.Identity != from.Identity {
			return to, fmt.Errorf("%w: %w", ErrNotEmpty, to.Refuse())
		}
		return to, nil // begun before; start deletes the data if it is of no use
	}
	if from.State == bunstore.Moved {
		return to, nil
	}
	if err := j.to.Read(ctx, func(c bun.IConn) error { return j.checkEmpty(ctx, c, has, knows) }); err != nil {
		return to, err
	}
	if err := j.target.Migrate(ctx); err != nil {
		return to, err
	}
	return j.state(ctx, j.to)
}

// checkEmpty checks that the target has no data, whatever its schema version. The record
// of the key that secrets are sealed with is allowed.
func (j *job) checkEmpty(ctx context.Context, c bun.IConn, has, knows int) error {
	if has == 0 {
		return nil
	}
	for _, t := range j.to.TablesFrom(j.from.Kind()) {
		if t.Name == "formsvc_secret_keys" || has < knows && t.Name != "formsvc_accounts" { // this table always exists
			continue
		}
		var full bool
		if err := c.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM "+t.Name+")").Scan(&full); err != nil {
			return err
		}
		if full {
			return fmt.Errorf("%w: %s has rows in %s; a copy needs a new database, and writes over nothing", ErrNotEmpty, j.to.Place(), t.Name)
		}
	}
	return nil
}

// fence blocks all writes to the source. same says that the target has a part of this
// very copy.
func (j *job) fence(ctx context.Context, same bool) error {
	return locked(ctx, j.from, func(c bun.IConn, s bunstore.State) error {
		switch s.State {
		case bunstore.Moving:
			if !same && s.Peer != j.to.Place() {
				return s.Refuse()
			}
			j.token = s.Since
			return nil
		case bunstore.Active:
			if err := j.from.Fence(ctx, c); err != nil {
				return err
			}
			j.token = time.Now().UnixMicro()
			s.State, s.Peer, s.Since = bunstore.Moving, j.to.Place(), j.token
			return setState(ctx, j.from, c, s)
		}
		return s.Refuse()
	})
}

// release removes the fence, if it is that of this copy.
func (j *job) release(ctx context.Context) error {
	return locked(ctx, j.from, func(c bun.IConn, s bunstore.State) error {
		if s.State == bunstore.Moved && s.Since == j.token {
			return errLeft
		}
		if s.State != bunstore.Moving || s.Since != j.token {
			return nil
		}
		if err := j.from.Unfence(ctx, c); err != nil {
			return err
		}
		s.State, s.Peer, s.Since = bunstore.Active, "", time.Now().UnixMicro()
		return setState(ctx, j.from, c, s)
	})
}

// start makes the target the receiver of this copy, with no data, unless it is that
// already.
func (j *job) start(ctx context.Context) error {
	from, err := j.state(ctx, j.from)
	if err != nil {
		return err
	}
	return locked(ctx, j.to, func(c bun.IConn, s bunstore.State) error {
		if s.State == bunstore.Receiving && s.Identity == from.Identity && s.Since == j.token {
			return nil
		}
		if s.State != bunstore.Receiving || s.Identity != from.Identity {
			if err := j.checkEmpty(ctx, c, 1, 1); err != nil {
				return err
			}
		}
		if _, err := c.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS formsvc_copy "+
			"(name TEXT PRIMARY KEY, copied BIGINT NOT NULL, upto TEXT NOT NULL, done INTEGER NOT NULL)"); err != nil {
			return err
		}
		if err := j.to.Empty(ctx, c); err != nil {
			return err
		}
		for _, t := range j.from.TablesTo(j.to.Kind()) {
			_, err := c.ExecContext(ctx, j.to.Rebind("INSERT INTO formsvc_copy (name, copied, upto, done) VALUES (?, 0, '', 0)"), t.Name)
			if err != nil {
				return err
			}
		}
		return setState(ctx, j.to, c, bunstore.State{
			Identity: from.Identity, State: bunstore.Receiving, Peer: j.from.Place(), Since: j.token,
		})
	})
}

// finish makes the copied rows a usable database.
func (j *job) finish(ctx context.Context) error {
	var last int64
	err := j.from.Read(ctx, func(c bun.IConn) (err error) {
		last, err = j.from.LastPosition(ctx, c)
		return err
	})
	if err != nil {
		return err
	}
	return j.to.Write(ctx, func(c bun.IConn) error { return j.to.Finish(ctx, c, last) })
}

// leave marks the source as moved, which can't be undone.
func (j *job) leave(ctx context.Context) error {
	return locked(ctx, j.from, func(c bun.IConn, s bunstore.State) error {
		if s.State == bunstore.Moved && s.Since == j.token {
			return nil
		}
		if s.State != bunstore.Moving || s.Since != j.token {
			return fmt.Errorf("%w: %s was released meanwhile", ErrUnderWay, j.from.Place())
		}
		s.State = bunstore.Moved
		return setState(ctx, j.from, c, s)
	})
}

// activate makes the target usable.
func (j *job) activate(ctx context.Context) error {
	return locked(ctx, j.to, func(c bun.IConn, s bunstore.State) error {
		if s.State != bunstore.Receiving || s.Since != j.token {
			return nil // another process did it first
		}
		if _, err := c.ExecContext(ctx, "DROP TABLE formsvc_copy"); err != nil {
			return err
		}
		s.State, s.Peer, s.Since = bunstore.Active, "", time.Now().UnixMicro()
		return setState(ctx, j.to, c, s)
	})
}

// tables returns how each table is read from the source and from the target.
func (j *job) tables() (from, to []bunstore.Table) {
	from, to = j.from.TablesTo(j.to.Kind()), j.to.TablesFrom(j.from.Kind())
	if len(from) != len(to) || !slices.EqualFunc(from, to, func(a, b bunstore.Table) bool { return a.Name == b.Name }) {
		panic("transfer: the databases don't have the same tables")
	}
	return from, to
}
