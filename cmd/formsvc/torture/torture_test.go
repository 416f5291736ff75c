// Package torture_test injects faults into the real binary and checks with the ledgers of clients and receivers that
// nothing acknowledged is lost and nothing is invented. RELIABILITY.md lists the guarantees; "make torture" runs the tests
// for ten minutes.
//
// Each test injects one kind of fault, in rounds. By default there are few rounds, so that all tests fit into "make test".
// -rounds sets their number, and -for spreads a time evenly over all kinds instead. -report appends the results to a file.
package torture_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/formsvc/toolkit/blobstore/s3blob/s3test"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/service"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/world"
)

var (
	roundsFlag = flag.Int("rounds", 0, "how many rounds each fault has; 0 for few")
	forFlag    = flag.Duration("for", 0, "how long to go on, over all faults together; 0 for a number of rounds")
	reportFlag = flag.String("report", "", "a file to append a line of JSON for each fault to")
)

func TestMain(m *testing.M) {
	flag.Parse()
	zerolog.SetGlobalLevel(zerolog.Disabled) // toxiproxy logs every step
	code := m.Run()
	if dir, err := buildDir(); err == nil {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

var buildDir = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "formsvc-torture-") })

// build builds the release binary.
var build = sync.OnceValues(func() (service.Program, error) {
	dir, err := buildDir()
	if err != nil {
		return service.Program{}, err
	}
	return service.Build(dir)
})

// buildTagged builds the binary with failpoints.
var buildTagged = sync.OnceValues(func() (service.Program, error) {
	dir, err := buildDir()
	if err != nil {
		return service.Program{}, err
	}
	return service.Build(dir, "failpoints")
})

func program(t testing.TB) service.Program {
	t.Helper()
	p, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const (
	// kinds is the number of kinds of faults that share the time of -for: tests, and databases in them.
	kinds = 20
	// settling is about how long the end of each test takes, when leases end and all records are compared.
	settling = 10 * time.Second
)

// rounds counts the rounds of one test, which are few unless flags set more.
type rounds struct {
	done, want, extra int
	until             time.Time
}

func newRounds(few int) *rounds {
	r := &rounds{want: few}
	switch {
	case *forFlag > 0:
		r.until = time.Now().Add(max(*forFlag/kinds-settling, settling/2))
	case *roundsFlag > 0:
		r.want = *roundsFlag
	}
	return r
}

// next reports whether there is another round, and counts it.
func (r *rounds) next() bool {
	if !r.until.IsZero() {
		if r.done > 0 && time.Now().After(r.until) {
			return false
		}
	} else if r.done == r.want {
		return false
	}
	r.done++
	return true
}

// nextUntil is next with some more rounds until shown is true: on a busy machine, few rounds may not reach the fault.
func (r *rounds) nextUntil(shown bool) bool {
	if r.next() {
		return true
	}
	if shown || r.extra == 30 {
		return false
	}
	r.extra++
	r.done++
	return true
}

// report logs the result of a test and appends it to the file of -report. unit names a round.
func report(t testing.TB, r *rounds, unit string, began time.Time, s *world.Summary) {
	t.Helper()
	share := 0.0
	if s.Delivered > 0 {
		share = 100 * float64(s.Again) / float64(s.Delivered)
	}
	t.Logf("%d %s in %v: %d writes acknowledged (%.0f/s), %d failed %v, of %d without a clear answer %d had happened; "+
		"%d responses, %d files, %d comments, %d signatures, %d events, %d deliveries, %d of them again (%.2f %%); "+
		"longest gap %v, slowest start %v, last event %v after the end; %d faults",
		r.done, unit, time.Since(began).Round(time.Second), s.Acked, s.PerSecond, s.Failed, s.Why, s.Unknown, s.Happened,
		s.Responses, s.Files, s.Comments, s.Signatures, s.Events, s.Delivered, s.Again, share,
		s.Gap.Round(time.Millisecond), s.SlowestStart.Round(time.Millisecond), s.Waited.Round(100*time.Millisecond), len(s.Faults))
	if s.Acked == 0 || s.Events == 0 {
		t.Error("INVALID: nothing was written, which proves nothing")
	}
	if *reportFlag == "" {
		return
	}
	line, err := json.Marshal(map[string]any{
		"test": t.Name(), "unit": unit, "rounds": r.done, "seconds": int(time.Since(began).Seconds()), "acknowledged": s.Acked,
		"perSecond": int(s.PerSecond), "unanswered": s.Unknown, "happened": s.Happened, "events": s.Events, "deliveries": s.Delivered,
		"again": s.Again, "files": s.Files, "gapMillis": s.Gap.Milliseconds(), "slowestStartMillis": s.SlowestStart.Milliseconds(),
		"faults": len(s.Faults),
	})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(*reportFlag, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := fmt.Fprintf(f, "%s\n", line); err != nil {
		t.Fatal(err)
	}
}

// sqliteDSN returns the data source name of a new database in a directory of the test.
func sqliteDSN(t testing.TB) string {
	t.Helper()
	return "sqlite:" + filepath.Join(t.TempDir(), "formsvc.db")
}

// bucket starts an S3 server and returns the value of --blobs and the environment.
func bucket(t testing.TB) (server *s3test.Server, blobs string, env []string) {
	t.Helper()
	s := s3test.Start(t)
	return s, fmt.Sprintf("s3://%s?endpoint=%s&region=%s", s.Bucket, s.Endpoint, s.Region),
		[]string{"AWS_ACCESS_KEY_ID=" + s.AccessKey, "AWS_SECRET_ACCESS_KEY=" + s.SecretKey}
}
