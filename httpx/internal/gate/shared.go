package gate

import (
	"runtime"
	"time"

	"github.com/formsvc/toolkit/httpx/internal/limits"
)

// Bounds are the limits of concurrent work.
type Bounds struct {
	Requests, Waiting, Transfers int
	Wait                         time.Duration
	Body, Memory                 int64
}

// Shared has the gates and pools of one process. It is safe for concurrent use.
type Shared struct {
	Bounds

	Lookups      *Gate                   // limits look-ups of keys and quotas
	Requests     *Gate                   // limits requests that need a key, and forms, except those of the next two
	Lists        *Gate                   // limits lists and pages
	Heavy        *Gate                   // limits all requests of heavy accounts
	Exports      *Gate                   // limits exports while they read and format
	Transfers    *limits.Pool            // of slots for file transfers
	ExportWeight int64                   // how many of them an export takes
	Bytes        *limits.Pool            // of bodies
	heavy        limits.Recent[struct{}] // accounts that recently sent or got a large body
}

// NewShared returns gates and pools of those sizes.
func NewShared(b Bounds) *Shared {
	slots := func(n int) *Gate { return New(min(b.Requests, n), b.Waiting, b.Wait) }
	transfers := int64(b.Transfers)
	return &Shared{
		Bounds: b, Lookups: slots(b.Requests), Requests: slots(b.Requests), Lists: slots(listSlots()), Heavy: slots(heavySlots()),
		Exports: New(heavySlots(), b.Transfers, exportTurn), Transfers: limits.NewPool(transfers), ExportWeight: max(1, transfers/exportsAtMost),
		Bytes: limits.NewPool(max(b.Memory, 2*b.Body)), heavy: limits.NewRecent[struct{}](limits.Size),
	}
}

// exportsAtMost is how many exports take all slots of transfers: each holds records of up to 4 MiB, and works all the time.
const exportsAtMost = 32

// exportTurn is how long an export may wait for its turn. Each lasts for some milliseconds.
const exportTurn = time.Minute

// heavyAt is the size of a body from which an account counts as heavy, for heavyFor.
const (
	heavyAt  = 256 << 10
	heavyFor = time.Minute
)

// Moved tells that an account sent or got a body of that many bytes.
func (s *Shared) Moved(account string, bytes int64, now time.Time) {
	if bytes >= heavyAt {
		s.heavy.Put(account, struct{}{}, now.Add(heavyFor))
	}
}

// How many lists and how many requests of heavy accounts are served at once. Each may hold a page of 4 MiB and its records, and keeps a
// processor busy for milliseconds.
func listSlots() int  { return max(4, 2*runtime.GOMAXPROCS(0)) }
func heavySlots() int { return max(2, runtime.GOMAXPROCS(0)) }

// For returns the gate for a request of an account. Lists, and all requests of accounts whose bodies were large, have slots of their own.
// They are few, since such requests take memory and processors, of which a gate knows nothing.
func (s *Shared) For(account string, list bool, now time.Time) *Gate {
	if _, heavy := s.heavy.Get(account, now); heavy {
		return s.Heavy
	}
	if list {
		return s.Lists
	}
	return s.Requests
}
