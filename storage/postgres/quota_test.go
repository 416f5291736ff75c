package postgres_test

import (
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

// Nodes whose clocks differ by years share one quota: they use the window that is current
// by the server's clock.
func TestQuotaByTheServersClock(t *testing.T) {
	t.Parallel()
	dsn := postgrestest.DSN(t)
	s, db := open(t, dsn, nil), raw(t, dsn)
	var now int64
	if err := db.NewSelect().ColumnExpr("(extract(epoch FROM clock_timestamp()) * 1000000)::bigint").Scan(t.Context(), &now); err != nil {
		t.Fatal(err)
	}
	// So long that a window practically never ends during the test.
	const window = 10_007 * time.Hour
	server := time.UnixMicro(now).UTC()
	subject := formsvc.FloorID(server)
	granted := 0
	for _, off := range []time.Duration{0, 2 * window, -2 * window, window, -window} {
		g, err := s.TakeQuota(t.Context(), formsvc.QuotaQuery{
			Subject: subject, Limit: 10, Window: window, Need: 3, Now: server.Add(off),
		})
		if err != nil {
			t.Fatal(err)
		}
		if want := formsvc.QuotaStart(server, window); !g.Start.Equal(want) {
			t.Errorf("a node whose clock is %v off took of the window of %v, want that of %v", off, g.Start, want)
		}
		if want := formsvc.QuotaStart(server, window).Add(window).Sub(server); g.Ends > want || g.Ends < want-time.Hour {
			t.Errorf("a node whose clock is %v off is told that the window ends in %v, want %v", off, g.Ends, want)
		}
		granted += g.Granted
	}
	if granted != 10 {
		t.Errorf("%d requests granted of a quota of 10", granted)
	}
}
