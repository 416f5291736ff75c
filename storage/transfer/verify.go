package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"sync"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

// Verify compares all rows of two databases and, if both blob stores are set, all bytes of the
// files. It changes nothing. It fails with [ErrDiffers], naming the tables. It also does so if
// the databases are in use, or were after the copy.
func Verify(ctx context.Context, from, to Store, opts *Options) (Report, error) {
	j := newJob(from, to, opts)
	err := j.verify(ctx)
	return j.report, j.classify(err)
}

func (j *job) verify(ctx context.Context) error {
	for _, d := range []bunstore.Portable{j.from, j.to} {
		if err := j.checkSchema(ctx, d, "it can't be compared"); err != nil {
			return err
		}
	}
	return errors.Join(j.compare(ctx), j.compareFiles(ctx))
}

// A sum is a checksum of the rows of a table, in any order.
type sum struct {
	rows int64
	hash [4]uint64 // the sum of the SHA-256 of all rows, as four numbers
}

func (s *sum) add(row []any, buf []byte) []byte {
	buf = appendRow(buf[:0], row)
	digest := sha256.Sum256(buf)
	s.rows++
	var carry uint64
	for i := range s.hash {
		s.hash[i], carry = bits.Add64(s.hash[i], binary.LittleEndian.Uint64(digest[i*8:]), carry)
	}
	return buf
}

// appendRow appends the values of a row. Different rows give different bytes.
func appendRow(b []byte, row []any) []byte {
	for _, v := range row {
		switch v := v.(type) {
		case nil:
			b = append(b, 'n')
		case int64:
			b = binary.BigEndian.AppendUint64(append(b, 'i'), uint64(v)) //nolint:gosec // keeps all 64 bits
		case string:
			b = append(binary.BigEndian.AppendUint64(append(b, 's'), uint64(len(v))), v...)
		case []byte:
			b = append(binary.BigEndian.AppendUint64(append(b, 'b'), uint64(len(v))), v...)
		}
	}
	return b
}

// compare reads all rows of both databases concurrently, and checks the counters.
func (j *job) compare(ctx context.Context) error {
	from, to := j.tables()
	all, err := count(ctx, j.from, from)
	if err != nil {
		return err
	}
	var whole, done int64
	for _, n := range all {
		whole += 2 * n
	}
	var mu sync.Mutex
	tell := func(n int64) {
		mu.Lock()
		done += n
		now := done
		mu.Unlock()
		j.Progress(Progress{"checking", now, max(whole, now)})
	}
	var (
		sums   [2][]sum
		failed [2]error
		work   sync.WaitGroup
	)
	work.Go(func() { sums[0], failed[0] = sumAll(ctx, j.from, from, tell) })
	work.Go(func() { sums[1], failed[1] = sumAll(ctx, j.to, to, tell) })
	work.Wait()
	if err := errors.Join(failed[:]...); err != nil {
		return err
	}
	var bad []string
	j.report.Tables = nil
	for i := range from {
		a, b := &sums[0][i], &sums[1][i]
		j.report.Tables = append(j.report.Tables, Count{from[i].Name, b.rows})
		switch {
		case a.rows != b.rows:
			bad = append(bad, fmt.Sprintf("%s has %d rows there and %d here", from[i].Name, a.rows, b.rows))
		case a.hash != b.hash:
			bad = append(bad, from[i].Name+" has other values")
		}
	}
	wrong, err := j.miscounted(ctx)
	if err != nil {
		return err
	}
	if bad = append(bad, wrong...); len(bad) > 0 {
		return fmt.Errorf("%w: %s", ErrDiffers, strings.Join(bad, "; "))
	}
	return nil
}

func sumAll(ctx context.Context, d bunstore.Portable, tables []bunstore.Table, tell func(int64)) ([]sum, error) {
	sums := make([]sum, len(tables))
	err := d.Read(ctx, func(c bun.IConn) error {
		for i := range tables {
			var buf []byte
			s, told := &sums[i], int64(0)
			err := each(ctx, c, &tables[i], tables[i].All(), nil, func(row []any) error {
				if buf = s.add(row, buf); s.rows-told == batchRows {
					told = s.rows
					tell(batchRows)
				}
				return nil
			})
			if err != nil {
				return fmt.Errorf("%s: %w", tables[i].Name, err)
			}
			tell(s.rows - told)
		}
		return nil
	})
	return sums, err
}

// miscounted compares the counters in the new database with its responses.
func (j *job) miscounted(ctx context.Context) (bad []string, err error) {
	err = j.to.Read(ctx, func(c bun.IConn) error {
		for _, q := range []struct{ table, by, where string }{
			{"formsvc_counters", "campaign_id", ""}, {"formsvc_statuses", "campaign_id, status", " WHERE status <> 'pending'"},
		} {
			var n int
			err := c.QueryRowContext(ctx, "SELECT count(*) FROM (SELECT 1 AS one FROM ("+
				"SELECT "+q.by+", responses FROM "+q.table+" UNION ALL "+
				"SELECT "+q.by+", -count(*) FROM formsvc_responses"+q.where+" GROUP BY "+q.by+
				") AS x GROUP BY "+q.by+" HAVING sum(responses) <> 0) AS y").Scan(&n)
			if err != nil {
				return err
			}
			if n > 0 {
				bad = append(bad, fmt.Sprintf("%s is wrong for %d campaigns", q.table, n))
			}
		}
		return nil
	})
	return bad, err
}
