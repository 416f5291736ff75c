package intake

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"
)

// Limits of the campaigns that are kept for posts: how long, how many, and how large.
const (
	campaignAge   = time.Second
	campaignsMost = 1_000
	campaignSize  = 32 << 10 // bytes
)

// How many requests use the service at once, how many of them store what is held, and how long others wait for a slot.
const (
	slots     = 64
	heldSlots = 2 // so that bots share few commits with others
	slotWait  = time.Second
)

// botPause delays what looks like a bot, which commonly sends the next form when it has a reply.
const botPause = 200 * time.Millisecond

// slow waits for botPause.
func (v *visit) slow() {
	select {
	case <-v.r.Context().Done():
	case <-time.After(botPause):
	}
}

// acquire takes a slot. The caller must release it.
func acquire(ctx context.Context, from *semaphore.Weighted) error {
	waiting, cancel := context.WithTimeout(ctx, slotWait)
	defer cancel()
	if from.Acquire(waiting, 1) == nil {
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
