//go:build linux

package lossyfs_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/lossyfs"
)

const (
	// sqliteRounds is the number of power losses.
	sqliteRounds = 20
	// roundsEach is the number of power losses for each database.
	roundsEach = 5
	// rowSize is the maximum number of bytes in a row.
	rowSize = 9000
)

// openRows opens a database with frequent checkpoints.
func openRows(dir, synchronous string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "rows.db")+
		"?_pragma=journal_mode(WAL)&_pragma=wal_autocheckpoint(20)&_pragma=synchronous("+synchronous+")")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	_, err = db.Exec(`CREATE TABLE IF NOT EXISTS row (id INTEGER PRIMARY KEY, content BLOB NOT NULL);
		CREATE TABLE IF NOT EXISTS total (id INTEGER PRIMARY KEY, n INTEGER NOT NULL);
		INSERT OR IGNORE INTO total VALUES (1, 0)`)
	return db, err
}

// writeRows writes rows until it is killed, and prints the number of each when it is committed.
func writeRows(dir, synchronous string) error {
	db, err := openRows(dir, synchronous)
	if err != nil {
		return err
	}
	var id uint64
	if err := db.QueryRow(`SELECT n FROM total`).Scan(&id); err != nil {
		return err
	}
	for {
		id++
		tx, err := db.Begin()
		if err != nil {
			return err
		}
		_, err = tx.Exec(`INSERT INTO row VALUES (?, ?)`, id, content(id, rowSize))
		if err == nil {
			_, err = tx.Exec(`UPDATE total SET n = n + 1`)
		}
		if err = errors.Join(err, tx.Commit()); err != nil {
			return err
		}
		fmt.Println(id)
	}
}

// checkRows fails unless the rows up to a number exist, at most one more, and the database is intact.
func checkRows(dir, acknowledged string) error {
	want, err := strconv.ParseUint(acknowledged, 10, 64)
	if err != nil {
		return err
	}
	db, err := openRows(dir, "FULL")
	if err != nil {
		return err
	}
	var verdict string
	if err := db.QueryRow(`PRAGMA integrity_check`).Scan(&verdict); err != nil || verdict != "ok" {
		return fmt.Errorf("integrity_check: %q, error %w", verdict, err)
	}
	rows, err := db.Query(`SELECT id, content FROM row ORDER BY id`)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	var n uint64
	for rows.Next() {
		var id uint64
		var got []byte
		if err := rows.Scan(&id, &got); err != nil {
			return err
		}
		if n++; id != n || !bytes.Equal(got, content(n, rowSize)) {
			return fmt.Errorf("row %d has the number %d and %d bytes", n, id, len(got))
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	var total uint64
	if err := db.QueryRow(`SELECT n FROM total`).Scan(&total); err != nil {
		return err
	}
	if n != total || n < want || n > want+1 {
		return fmt.Errorf("%d rows, a total of %d, and %d acknowledged", n, total, want)
	}
	fmt.Println(n)
	return db.Close()
}

// loseRows loses power while rows are written, several times for each of several databases, and returns the faults. Every
// other database has another power loss after the check.
func loseRows(t *testing.T, f *lossyfs.FS, synchronous string) (wrong []string) {
	t.Helper()
	acknowledged, dir, was := 0, "", uint64(0)
	for round := range sqliteRounds {
		if round%roundsEach == 0 {
			dir, was = durableDir(t, f.Dir, fmt.Sprint(round)), 0
		}
		// The first process may be killed while it creates the database.
		var said []string
		if synchronous == "FULL" && round%3 != 0 {
			said = killAt(t, f.Cut(round*round%40), "rows", dir, synchronous)
		} else {
			said = killAfter(t, round%roundsEach*7, 60*time.Millisecond, "rows", dir, synchronous)
		}
		acknowledged += len(said)
		if len(said) > 0 {
			var err error
			was, err = strconv.ParseUint(said[len(said)-1], 10, 64)
			must(t, err)
		}
		f.PowerLoss(t)
		out, err := run(t, "check", dir, fmt.Sprint(was))
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("round %d: %s", round, out))
			dir, was = durableDir(t, f.Dir, fmt.Sprintf("%d-again", round)), 0
			continue
		}
		was, err = strconv.ParseUint(strings.TrimSpace(out), 10, 64)
		must(t, err)
		if round%2 == 1 {
			f.PowerLoss(t)
		}
	}
	t.Logf("synchronous %s: %d rows acknowledged, %d of %d losses noticed, dropped %+v",
		synchronous, acknowledged, len(wrong), sqliteRounds, f.Dropped())
	return wrong
}

// Everything that SQLite has committed in WAL mode with synchronous=FULL survives.
func TestSQLite(t *testing.T) {
	t.Parallel()
	f := lossyfs.Mount(t, 11)
	for _, wrong := range loseRows(t, f, "FULL") {
		t.Error(wrong)
	}
	if lost := f.Dropped(); lost.Pages < sqliteRounds/4 || lost.Names == 0 {
		t.Fatalf("INVALID: only %+v was lost, which proves nothing", lost)
	}
}

// Without fsync SQLite loses what it has committed, so the test above can fail.
func TestSQLiteWithoutSync(t *testing.T) {
	t.Parallel()
	f := lossyfs.Mount(t, 12)
	if wrong := loseRows(t, f, "OFF"); len(wrong) == 0 {
		t.Error("nothing is lost with synchronous=OFF")
	}
}
