package loadgen

import (
	"fmt"

	"github.com/formsvc/toolkit/cmd/formbench/internal/fixture"
)

// A Workload is the requests of a cell. Every connection sends all of them in
// turn, each beginning with another one.
type Workload struct {
	Status   int // that every answer must have
	Requests [][]byte
	Keys     []int // where each request has room for an idempotency key; nil for none
}

// SampleKey holds the place of an idempotency key, which is as long as a UUID.
const SampleKey = "00000000-0000-4000-8000-000000000000"

// Fresh returns request number i with a key that no other request has, in buf.
func (w *Workload) Fresh(buf []byte, i, conn, count int) []byte {
	if w.Keys == nil {
		return w.Requests[i]
	}
	buf = append(buf[:0], w.Requests[i]...)
	random := fixture.Scatter(conn<<40 | count)
	copy(buf[w.Keys[i]:], fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", uint32(random), uint16(random>>32), random>>48&0xfff, //nolint:gosec // parts of it
		random>>60, conn<<32|count))
	return buf
}
