package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-isatty"
)

const (
	meterEvery = 200 * time.Millisecond
	meterAfter = 400 * time.Millisecond // shorter work shows no meter
	meterCells = 24
)

// A meter shows the progress of a long command on a terminal, with an estimate of the remaining time. All methods of a nil
// meter do nothing; it is safe for concurrent use.
type meter struct {
	out   io.Writer
	count func(n int64) string // formats amounts

	mu        sync.Mutex
	what      string
	done, all int64 // all is 0 while it is unknown
	began     time.Time
	shown     bool

	stop context.CancelFunc
	work sync.WaitGroup
}

// meter returns a running meter, or nil if standard error is not a terminal or the output is JSON. The caller calls end.
func (s streams) meter(o output, what string, count func(n int64) string) *meter {
	f, ok := s.err.(*os.File)
	if !ok || o.JSON || os.Getenv("TERM") == "dumb" || !isatty.IsTerminal(f.Fd()) {
		return nil
	}
	return newMeter(f, what, count)
}

func newMeter(out io.Writer, what string, count func(n int64) string) *meter {
	ctx, stop := context.WithCancel(context.Background())
	m := &meter{out: out, count: count, what: what, began: time.Now(), stop: stop}
	m.work.Go(func() { m.run(ctx) })
	return m
}

func (m *meter) run(ctx context.Context) {
	tick := time.NewTicker(meterEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			m.mu.Lock()
			if now.Sub(m.began) >= meterAfter {
				_, _ = io.WriteString(m.out, clearLine+m.line(now))
				m.shown = true
			}
			m.mu.Unlock()
		}
	}
}

// clearLine returns to the beginning of the line and clears it.
const clearLine = "\r\x1b[K"

// line returns the text to show, which is shorter than 80 characters.
func (m *meter) line(now time.Time) string {
	took := now.Sub(m.began)
	if m.all <= 0 {
		return fmt.Sprintf("%-10s %s  %s", m.what, m.count(m.done), clock(took))
	}
	part := min(float64(m.done)/float64(m.all), 1)
	cells := int(part * meterCells)
	done, all := m.count(m.done), m.count(m.all)
	if n, unit, _ := strings.Cut(done, " "); strings.HasSuffix(all, " "+unit) {
		done = n
	}
	text := fmt.Sprintf("%-10s [%s%s] %3d%%  %s of %s", m.what,
		strings.Repeat("#", cells), strings.Repeat("-", meterCells-cells), int(part*100), done, all)
	if part > 0 {
		text += "  " + clock(time.Duration(float64(took)*(1-part)/part)) + " left"
	}
	return text
}

// clock formats a duration as 1:05 or 2:00:09.
func clock(d time.Duration) string {
	s := int(d.Round(time.Second).Seconds())
	if s < 3600 {
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}

// begin starts a new stage with this total.
func (m *meter) begin(what string, all int64) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.what, m.done, m.all, m.began = what, 0, all, time.Now()
}

// beginCounting is begin with another format of amounts.
func (m *meter) beginCounting(what string, all int64, count func(n int64) string) {
	m.mu.Lock()
	m.count = count
	m.mu.Unlock()
	m.begin(what, all)
}

// set sets how much is done.
func (m *meter) set(done int64) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done = done
}

// add increases how much is done.
func (m *meter) add(n int64) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done += n
}

// clear removes the line to make room for output. The next tick shows it again.
func (m *meter) clear() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.shown {
		_, _ = io.WriteString(m.out, clearLine)
		m.shown = false
	}
}

// end removes the meter. It may be called again.
func (m *meter) end() {
	if m == nil {
		return
	}
	m.stop()
	m.work.Wait()
	m.clear()
}

// inBytes formats a number of bytes for people.
func inBytes(n int64) string {
	const units = "kMGTP"
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	v, unit := float64(n)/1000, 0
	for v >= 999.5 && unit < len(units)-1 {
		v, unit = v/1000, unit+1
	}
	if v < 9.95 {
		return fmt.Sprintf("%.1f %cB", v, units[unit])
	}
	return fmt.Sprintf("%.0f %cB", v, units[unit])
}

// inPieces returns a format for a number of things.
func inPieces(things string) func(int64) string {
	return func(n int64) string { return fmt.Sprintf("%d %s", n, things) }
}
