package peers

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/fixture"
	"github.com/formsvc/toolkit/cmd/formbench/internal/pocketbase"
	"github.com/formsvc/toolkit/cmd/formbench/internal/server"
)

// newPocket returns an empty directory of PocketBase: a copy of one that it made
// itself, since that takes it a second.
func (p *runner) newPocket(ctx context.Context) (*pocketScene, error) {
	if p.template == "" {
		dir, err := os.MkdirTemp(p.Dir, "formbench-")
		if err != nil {
			return nil, err
		}
		p.template = dir
		srv, err := server.StartProgram(ctx, pocketbase.Config{Dir: dir}, p.Log, p.PeerProgram, pocketbase.Command)
		if err != nil {
			return nil, err
		}
		if err := srv.Stop(); err != nil {
			return nil, err
		}
	}
	dir, err := os.MkdirTemp(p.Dir, "formbench-")
	if err != nil {
		return nil, err
	}
	s := &pocketScene{dir: dir}
	if err := os.CopyFS(dir, os.DirFS(p.template)); err != nil {
		return nil, errors.Join(err, s.drop())
	}
	return s, nil
}

// use opens its database for as long as do runs.
func (s *pocketScene) use(do func(*sql.DB) error) error {
	db := &database.Database{DSN: "sqlite:" + filepath.Join(s.dir, pocketbase.Database)}
	return db.Use(do)
}

// holds fails unless each of the collections has as many records as were
// acknowledged.
func (s *pocketScene) holds(ctx context.Context, answered int, collections ...string) error {
	return s.use(func(db *sql.DB) error {
		for _, name := range collections {
			n := 0
			if err := db.QueryRowContext(ctx, "SELECT count(*) FROM "+name).Scan(&n); err != nil {
				return fmt.Errorf("count %s of PocketBase: %w", name, err)
			}
			if n != answered {
				return fmt.Errorf("PocketBase acknowledged %d and has %d %s", answered, n, name)
			}
		}
		return nil
	})
}

// pocketID returns the identifier of stored response number i. As those that
// PocketBase makes, they are in no order.
func pocketID(i int) string { return fmt.Sprintf("r%014x", fixture.Scatter(i)>>8) }

// fill stores n responses of one campaign, in the order in which PocketBase would
// have made them.
func (s *pocketScene) fill(ctx context.Context, n int) error {
	return s.use(func(db *sql.DB) (err error) {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()                                       // after a commit it does nothing
		insert, err := tx.PrepareContext(ctx, "INSERT INTO "+pocketbase.Responses+ //nolint:gosec // a constant
			" (id, reference, status, user, responses, campaign, created, updated) VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, insert.Close()) }()
		for i := range n {
			r := pocketResponse(i)
			user, err := json.Marshal(r.User)
			if err != nil {
				return err
			}
			answers, err := json.Marshal(r.Responses)
			if err != nil {
				return err
			}
			at := fixture.StoredAt(i).Format("2006-01-02 15:04:05.000Z")
			if _, err := insert.ExecContext(ctx, pocketID(i), fixture.StoredReference(i), r.Status, string(user), string(answers),
				r.Campaign, at, at); err != nil {
				return fmt.Errorf("fill PocketBase: %w", err)
			}
		}
		return tx.Commit()
	})
}

// fill makes the databases that are only read and started, once for all rounds.
func (p *runner) fill(ctx context.Context) (err error) {
	if p.full != "" {
		return nil
	}
	begin := time.Now()
	if p.ours, err = database.New(ctx, bench.SQLiteStore, p.Dir); err != nil {
		return err
	}
	account, err := p.ours.NewAccount(ctx)
	if err != nil {
		return err
	}
	if p.world, err = p.ours.WithResponses(ctx, account, 0, p.PeerFill); err != nil {
		return err
	}
	s, err := p.newPocket(ctx)
	if err != nil {
		return err
	}
	p.full = s.dir
	_, _ = fmt.Fprintf(p.Log, "stored %d responses in %.1f s\n", p.PeerFill, time.Since(begin).Seconds())
	begin = time.Now()
	if err := s.fill(ctx, p.PeerFill); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(p.Log, "stored %d responses in the file of PocketBase in %.1f s\n", p.PeerFill, time.Since(begin).Seconds())
	return nil
}

// freshLog has PocketBase begin a new log of requests, which slows it down as it
// grows.
func (p *runner) freshLog() error {
	const name = "auxiliary.db"
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.RemoveAll(filepath.Join(p.full, name+suffix)); err != nil {
			return err
		}
	}
	log, err := os.ReadFile(filepath.Join(p.template, name))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.full, name), log, 0o600) //nolint:gosec // a directory of ours
}
