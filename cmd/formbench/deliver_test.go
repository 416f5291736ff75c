package main

import (
	"bytes"
	"context"
	"database/sql"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/worker"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
	"github.com/formsvc/toolkit/webhook"
)

// deliverSmall makes every part that delivers short.
var deliverSmall = []string{"-n", "400", "-callers", "8", "-latency", "400ms", "-idle", "300ms", "-backlog", "3000"}

func TestDeliverEveryCell(t *testing.T) {
	t.Parallel()
	args := append([]string{"-stores", "sqlite", "-rounds", "1", "-only", deliverPart}, deliverSmall...)
	table, r := benchmark(t, args...)
	for _, row := range [][]any{
		{sqliteStore, groupSystem},
		{sqliteStore, groupSystem, withinHow},
		{sqliteStore, groupSystem, tenScene + closedLoop},
		{sqliteStore, groupSystem, hostileScene + openLoop},
		{sqliteStore, groupSystem, emptyHow},
	} {
		if !hasRow(table, row...) {
			t.Errorf("no row for %v in\n%s", row, table)
		}
	}
	if want := 1 + 1 + 1 + 8 + 2 + 1; len(r.Deliveries) != want {
		t.Errorf("got %d cells, want %d", len(r.Deliveries), want)
	}
	for _, c := range r.Deliveries {
		checkDelivered(t, &c)
	}
	for _, g := range r.Goals {
		if g.Measured != (g.Store == sqliteStore && !strings.Contains(g.Text, "River")) {
			t.Errorf("goal %q of %s: measured is %v", g.Text, g.Store, g.Measured)
		}
	}
	if !hasRow(table, sqliteStore, riverSystem, "not measured") || !strings.Contains(table, "NOT MEASURED: River") {
		t.Errorf("nobody learns that River is missing in\n%s", table)
	}
	if strings.Count(table, "reached")+strings.Count(table, "MISSED") < 12 {
		t.Errorf("goals are missing in\n%s", table)
	}
}

// checkDelivered makes sure that a cell has the figures of its part.
func checkDelivered(t *testing.T, c *deliverCell) {
	t.Helper()
	ok := c.Reference > 0
	switch c.What {
	case steadyPart, drainPart:
		ok = ok && c.Events == 400 && c.PerSecond > 0 && c.OfReference > 0 && c.PeakMB > 0 && c.AcceptPerSecond > 0
	case latencyPart:
		ok = ok && c.Events == 20 && c.P99 >= c.P50 && c.CallP50 > 0 && c.CallP50 >= c.P50 && c.CallP99 >= c.P99
	case isolationPart:
		ok = ok && c.PerSecond > 0 && c.P99 >= c.P50 && c.PeakMB > 0
	case backlogPart:
		ok = ok && c.Events == 3000 && c.Claim > 0 && c.ClaimAlone > 0 && (c.Store == sqliteStore || c.Blocks > 1)
	}
	if !ok {
		t.Errorf("implausible cell %+v", c)
	}
}

func TestDeliverPostgres(t *testing.T) {
	postgrestest.DSN(t) // skips where there is none
	args := append([]string{"-stores", "postgres", "-rounds", "1", "-only", "steady,latency,backlog"}, deliverSmall...)
	table, r := benchmark(t, args...)
	if want := 1 + 2 + 2; len(r.Deliveries) != want || !strings.Contains(table, "not measured") {
		t.Errorf("got %d cells, want %d:\n%s", len(r.Deliveries), want, table)
	}
	for _, c := range r.Deliveries {
		checkDelivered(t, &c)
	}
}

// TestDelivered makes sure that a delivery counts only with the attempt that
// says so.
func TestDelivered(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	d, s, target := deliverTen(t)
	for _, c := range []struct {
		change string
		want   int
	}{
		{"SELECT 1", 10},
		{"DELETE FROM formsvc_attempts WHERE delivery_id = (SELECT min(delivery_id) FROM formsvc_attempts)", 9},
		{"UPDATE formsvc_attempts SET error = 'timeout' WHERE delivery_id = (SELECT max(delivery_id) FROM formsvc_attempts)", 8},
		{"UPDATE formsvc_deliveries SET state = 0", 0},
	} {
		err := target.use(func(db *sql.DB) error {
			_, err := db.ExecContext(ctx, c.change)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := countDelivered(ctx, target.database, target.hooks); err != nil || n != c.want {
			t.Errorf("%s: got %d, %v, want %d", c.change, n, err, c.want)
		}
	}
	cell := &deliverCell{What: steadyPart, Store: sqliteStore, System: groupSystem}
	if err := d.conclude(ctx, cell, target, s, nil); err == nil || !strings.Contains(err.Error(), "0 of 10") {
		t.Errorf("a cell without its deliveries: %v", err)
	}
}

// deliverTen has a process deliver ten responses on SQLite.
func deliverTen(t *testing.T) (*deliverBench, *process, *target) {
	t.Helper()
	ctx := t.Context()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d := &deliverBench{bench: &bench{self: self, log: io.Discard, options: options{Events: 10, dir: t.TempDir()}}}
	if d.receiver, err = d.startWorker(ctx, worker.Config{Role: receiverRole}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.receiver.stop() })
	cell := &deliverCell{What: steadyPart, Store: sqliteStore, System: groupSystem}
	target, err := d.newTarget(ctx, cell, d.receiver.ready.Addr+"/0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := target.start(ctx, d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.stop() })
	_, err = sequence(s.step(worker.Command{Do: worker.Start}), s.step(worker.Command{Do: worker.Accept, N: 10, Callers: 2}),
		d.receiver.step(worker.Command{Do: worker.Wait, N: 10, Timeout: time.Minute}), s.step(worker.Command{Do: worker.Stop}))
	if err != nil {
		t.Fatal(err)
	}
	return d, s, target
}

// TestClaims makes sure that claims that find too little are no measurement.
func TestClaims(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	d := &deliverBench{bench: &bench{options: options{dir: t.TempDir()}}}
	urls := make([]string, claimEndpoints+1)
	for i := range urls {
		urls[i] = "http://127.0.0.1/" + strconv.Itoa(i)
	}
	target, err := d.newTarget(ctx, &deliverCell{Store: sqliteStore, System: groupSystem}, urls...)
	if err != nil {
		t.Fatal(err)
	}
	if err := target.pile(ctx, neverHow, 100, 1); err != nil {
		t.Fatal(err)
	}
	for hook, want := range map[int]int{0: 8, claimEndpoints: 100} {
		if n, err := countWaiting(ctx, target.database, target.hooks[hook]); err != nil || n != want {
			t.Errorf("%d deliveries wait for webhook %d, want %d, %v", n, hook, want, err)
		}
	}
	c := worker.Command{N: 1, Databases: []worker.Database{{DSN: target.dsn}}}
	for _, id := range target.hooks[:claimEndpoints] {
		c.Databases[0].Endpoints = append(c.Databases[0].Endpoints, string(id))
	}
	if r, err := measureClaims(ctx, &c); err != nil || len(r.Took) != 1 || len(r.Took[0]) != 1 || r.Took[0][0] <= 0 {
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err := measureClaims(ctx, &c); err == nil {
		t.Error("a claim of what is left counts")
	}
}

// TestReceiver sends a good request twice and then bad ones.
func TestReceiver(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w, ready, err := newReceiver(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	body := []byte(`{"email":"respondent.0000042@example.com"}`)
	post := func(id string, body []byte, change func(http.Header)) {
		t.Helper()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, ready.Addr+"/3", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(webhook.DeliveryHeader, id)
		req.Header.Set(webhook.SignatureHeader, webhook.Sign([]byte(worker.Secret), body))
		webhook.SetStandard(req.Header, "e", time.Now(), body, []byte(worker.Secret))
		change(req.Header)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	asItIs := func(http.Header) {}
	post("a", body, asItIs)
	post("a", body, asItIs)
	post("b", body, func(h http.Header) { h.Del(webhook.StandardSignatureHeader) })
	post("c", body, func(h http.Header) { h.Set(webhook.SignatureHeader, "no") })
	post("d", body, func(h http.Header) { h.Set(webhook.StandardSignatureHeader, "v1,no") })
	post("", body, asItIs)
	post("e", []byte("no number"), asItIs)
	if _, err := w.Do(ctx, worker.Command{Do: worker.Wait, N: 2, Endpoints: 4, Timeout: time.Minute}); err != nil {
		t.Error(err)
	}
	if _, err := w.Do(ctx, worker.Command{Do: worker.Wait, N: 1, Endpoints: 3, Timeout: time.Millisecond}); err == nil {
		t.Error("deliveries to another endpoint count")
	}
	r, err := w.Do(ctx, worker.Command{Do: worker.Arrivals})
	if err != nil || r.N != 2 || r.Requests != 7 || r.Bad != 4 {
		t.Errorf("got %+v, %v", r, err)
	}
	for _, a := range r.Arrivals {
		if a.Number != 42 || a.Endpoint != 3 || time.Since(time.Unix(0, a.At)) > time.Minute {
			t.Errorf("got %+v", a)
		}
	}
	was, err := w.Do(ctx, worker.Command{Do: worker.Reset})
	if after, _ := w.Do(ctx, worker.Command{Do: worker.Arrivals}); err != nil || was.N != 2 || after.N != 0 || after.Bad != 0 {
		t.Errorf("got %+v, then %+v, %v", was, after, err)
	}
}

func TestPassage(t *testing.T) {
	t.Parallel()
	second := int64(time.Second)
	r := &worker.Reply{N: 3, Arrivals: []worker.Arrival{
		{At: 12 * second, Number: 1}, {At: 10 * second, Number: 0, Endpoint: 1}, {At: 99 * second, Number: 2, Endpoint: 2},
	}}
	stamps := []worker.Stamp{{Begin: 8 * second, Done: 11 * second}, {Begin: 9 * second, Done: 11 * second}, {}}
	p, err := passage(r, 2, stamps)
	if err != nil || p.seconds != 2 || len(p.commits) != 2 {
		t.Fatalf("got %+v, %v", p, err)
	}
	var c deliverCell
	c.take(&p, 2)
	if c.PerSecond != 1 || c.P50 != 0 || c.P99 != 1000 || c.CallP50 != 2000 || c.CallP99 != 3000 {
		t.Errorf("got %+v", c)
	}
	if _, err := passage(r, 0, stamps[:1]); err == nil {
		t.Error("an event that was not accepted is none")
	}
	if _, err := passage(&worker.Reply{Bad: 1}, 0, nil); err == nil {
		t.Error("a wrong signature is none")
	}
}

func TestCharge(t *testing.T) {
	t.Parallel()
	at := time.Now()
	before := processTimes{at: at, each: []time.Duration{1, 2, 3}, self: 5, machine: 100}
	after := processTimes{
		at: at.Add(2 * time.Second), each: []time.Duration{1 + time.Second, 2 + time.Second, 3 + 2*time.Second},
		self: 5 + time.Second/2, machine: 100 + 8*time.Second,
	}
	for store, want := range map[string]float64{sqliteStore: 2, postgresStore: 3.75} {
		c := deliverCell{Store: store}
		c.charge(before, after, 20_000)
		if c.CPU != want || c.ReceiverCPU != 0.5 || c.SenderCPU != 1.5 || c.OtherCPU != 1.75 || c.OtherCores != 1.75 {
			t.Errorf("%s: got %+v", store, c)
		}
	}
}

func TestInTurn(t *testing.T) {
	t.Parallel()
	for n := range 50 {
		for first := range 11 {
			want := 0
			for i := range n {
				if i%10 < first {
					want++
				}
			}
			if got := inTurn(n, 10, first); got != want {
				t.Errorf("%d of %d events: got %d, want %d", first, n, got, want)
			}
		}
	}
}

func TestDeliverPlan(t *testing.T) {
	t.Parallel()
	b := &bench{options: options{
		Rounds: 3, Stores: []string{sqliteStore, postgresStore}, Only: []string{drainPart, latencyPart, idlePart}, River: "x",
	}}
	got := map[string]int{}
	var systems []string
	for _, c := range deliverPlan(b) {
		got[c.What]++
		if c.What == drainPart && c.Store == postgresStore {
			systems = append(systems, c.System)
		}
	}
	if got[drainPart] != 12 || got[latencyPart] != 6 || got[idlePart] != 2 || len(got) != 3 {
		t.Errorf("got %v", got)
	}
	want := []string{groupSystem, riverSystem, riverSystem, groupSystem, groupSystem, riverSystem}
	if !slices.Equal(systems, want) {
		t.Errorf("got %v, want %v", systems, want)
	}
}

// TestDeliverGoals judges three rounds in which the engine is 2.2 times as fast as
// River on Postgres and 6 times as fast as on SQLite, where everything is half as
// fast.
func TestDeliverGoals(t *testing.T) {
	t.Parallel()
	var cells []deliverCell
	for i, rate := range []float64{100, 300, 200} {
		for _, what := range []string{steadyPart, drainPart} {
			for key, times := range map[[2]string]float64{
				{postgresStore, riverSystem}: 1, {postgresStore, groupSystem}: 2.2,
				{sqliteStore, riverSystem}: 0.5, {sqliteStore, groupSystem}: 3,
			} {
				c := deliverCell{What: what, Store: key[0], System: key[1], Round: i + 1}
				c.PerSecond, c.OfReference, c.CPU, c.PeakMB = rate*times, 0.2, 5, 33
				cells = append(cells, c)
			}
		}
	}
	list := deliverGoals(&options{Only: []string{steadyPart, drainPart}}, cells)
	for _, want := range []struct {
		store, text, verdict string
	}{
		{postgresStore, "steady: deliveries/s over River's on postgres ≥ 1.5, aim 2.1", "aim reached"},
		{postgresStore, "steady: deliveries/s over the reference's", "reached"},
		{postgresStore, "steady: CPU", "MISSED"},
		{postgresStore, "steady: memory of the process, MiB ≤ 40, aim 30", "reached"},
		{postgresStore, "drain: deliveries/s over River's on postgres ≥ 1.8, aim 2.5", "reached"},
		{sqliteStore, "steady: deliveries/s over River's on sqlite ≥ 5, aim 8", "reached"},
		{sqliteStore, "steady: deliveries/s over the reference's", "MISSED"},
		{sqliteStore, "drain: deliveries/s over River's on postgres ≥ 1.8, aim 2.5", "aim reached"},
	} {
		i := slices.IndexFunc(list, func(g goal) bool { return g.Store == want.store && strings.HasPrefix(g.Text, want.text) })
		if i < 0 || !list[i].Measured || len(list[i].Value.Rounds) != 3 || list[i].verdict() != want.verdict {
			t.Errorf("%+v is not in %+v", want, list)
		}
	}
	if len(list) != 2*(4+3) {
		t.Errorf("got %d goals", len(list))
	}
	if list := deliverGoals(&options{Only: []string{createPart}}, cells); list != nil {
		t.Errorf("got %+v", list)
	}
}

// TestHarm makes sure that the hostile ones do what their names say.
func TestHarm(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w, ready, err := newHostile(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	// How much comes, at least, and what is in it.
	kinds := map[string]struct {
		bytes int
		text  string
	}{
		"trickle": {60, "HTTP/1.1 200 OK"}, "endless": {1 << 20, "junkjunk"}, "gzip bomb": {64 << 10, "gzip"},
		"headers": {100 << 10, "X-Long"}, "1xx storm": {100 << 10, "103 Early"}, "reset": {0, ""}, hangKind: {0, ""},
	}
	if len(ready.Addrs) != len(kinds) || len(kinds) != len(hostileKinds()) {
		t.Fatalf("got %v", ready.Addrs)
	}
	for kind, want := range kinds {
		deadline := time.Now().Add(time.Minute)
		if kind == hangKind {
			deadline = time.Now().Add(50 * time.Millisecond)
		}
		conn, err := dial(ctx, strings.TrimPrefix(ready.Addrs[kind], "http://"), deadline)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte("POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\nx"))
		got := make([]byte, max(want.bytes, 1))
		n, err := io.ReadFull(conn, got)
		_ = conn.Close()
		if n < want.bytes || !strings.Contains(string(got[:n]), want.text) {
			t.Errorf("%s: got %d bytes, %.80q, %v", kind, n, got[:n], err)
		}
		if silent := want.bytes == 0; silent && (n > 0 || os.IsTimeout(err) != (kind == hangKind)) {
			t.Errorf("%s: got %q, %v", kind, got[:n], err)
		}
	}
}
