package intake

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"time"
)

// Limits of the campaigns that are kept for posts: how long, how many, and how large.
const (
	campaignAge   = time.Second
	campaignsMost = 1_000
	campaignSize  = 32 << 10 // bytes
)

// How many requests use the service at once, and how long others wait for a slot.
const (
	slots    = 64
	slotWait = time.Second
)

// acquire takes a slot. The caller must release it.
func (h *Handler) acquire(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, slotWait)
	defer cancel()
	if h.slots.Acquire(waiting, 1) == nil {
		return nil
	}
	return cmp.Or(ctx.Err(), errBusy)
}

// A body may pause for patience in all, and a second for every slowest bytes, as uploads to the API may.
const (
	patience = 60 * time.Second
	slowest  = 16 << 10
)

// A pacedBody extends the deadlines of a request while its body arrives fast enough.
type pacedBody struct {
	io.ReadCloser

	control *http.ResponseController
	began   time.Time
	moved   int64
}

// Read implements io.Reader.
func (b *pacedBody) Read(p []byte) (int, error) {
	deadline := b.began.Add(patience + time.Duration(b.moved/slowest)*time.Second)
	_ = b.control.SetReadDeadline(deadline)                    // not every server has deadlines
	_ = b.control.SetWriteDeadline(deadline.Add(2 * patience)) // for storing and the reply
	n, err := b.ReadCloser.Read(p)
	b.moved += int64(n)
	return n, err
}
