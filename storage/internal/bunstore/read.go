package bunstore

import (
	"context"
	"errors"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

const (
	// readLimit is up to how many responses one query reads.
	readLimit = 64
	// readLeaders is up to how many such queries run at once. With fewer, groups are
	// larger and cost less; but a query that waits for a disk or a distant server delays
	// more reads.
	readLeaders = 4
)

// A Read is one read of a response, in a group of reads.
type Read struct {
	Key formsvc.ResponseKey

	response formsvc.Response
	err      error
	member
}

// ResponseColumns are the columns of a response r that ScanRead reads.
const ResponseColumns = responseColumns

// ScanRead scans a row, ResponseColumns and the Read's index in the group (from 0), into
// that Read.
func ScanRead(row scanner, group []*Read) error {
	var (
		at       int
		response formsvc.Response
	)
	if err := scanResponse(row, &response, &at); err != nil {
		return err
	}
	r := group[at]
	response.AccountID, response.CampaignID = r.Key.AccountID, r.Key.CampaignID
	r.response, r.err = response, nil
	return nil
}

// Response implements formsvc.ResponseStore.
func (s responses) Response(ctx context.Context, key formsvc.ResponseKey) (formsvc.Response, error) {
	if err := s.ready(ctx, key.AccountID, key.CampaignID, key.ID); err != nil {
		return formsvc.Response{}, err
	}
	if s.readers == nil {
		return s.readAlone(ctx, key)
	}
	r := &Read{Key: key}
	if err := s.readers.do(ctx, r); err != nil {
		return formsvc.Response{}, err
	}
	return r.response, raise(r.err)
}

// readAlone reads one response. In the pool of a store it ignores cancellation: the read
// ends sooner than a driver could cancel it, and a driver that watches a context starts a
// goroutine for it.
func (s responses) readAlone(ctx context.Context, key formsvc.ResponseKey) (formsvc.Response, error) {
	if !s.bound && s.groupLimit == 0 {
		ctx = context.WithoutCancel(ctx)
	}
	return s.response(ctx, s.read, key, selectResponse)
}

// errUnread is what the others of a group get if reading it panics.
var errUnread = Classified(formsvc.ErrUnavailable, errors.New("bunstore: a panic in a group of reads"))

// readGroup reads a group of responses. They share a failure, which can only be the
// database's: a key that doesn't exist isn't one. A panic is raised for the first of them.
func (s responses) readGroup(together func(context.Context, bun.IConn, []*Read) error, group []*Read) {
	for _, r := range group {
		r.err = errUnread
	}
	// A context that can't end saves the driver a goroutine. Calls are abandoned when their
	// contexts end.
	ctx := context.Background()
	if s.groupLimit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.groupLimit)
		defer cancel()
	}
	err := attempt(func() error {
		if len(group) > 1 {
			return together(ctx, s.read, group)
		}
		r := group[0]
		r.response, r.err = s.readAlone(ctx, r.Key)
		return nil
	})
	if isPanic(err) {
		group[0].err = err
		return
	}
	if err != nil {
		err = s.backend.Classify(err)
		for _, r := range group {
			r.response, r.err = formsvc.Response{}, err
		}
		return
	}
	for _, r := range group {
		if errors.Is(r.err, errUnread) { // no row was for it
			r.err = formsvc.ErrNotFound
		}
	}
}
