package bunstore

import (
	"context"
	"errors"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

const (
	// readLimit is how many responses are read together at most.
	readLimit = 64
	// readLeaders is how many such queries are under way at once: with fewer the
	// groups are larger and cost less, but one that waits for the disk, or for a
	// server far away, holds up more of the others.
	readLeaders = 4
)

// A Read is the reading of one response, in a group of them.
type Read struct {
	Key formsvc.ResponseKey

	response formsvc.Response
	err      error
	member
}

// ResponseColumns are the columns of a response r that ScanRead reads.
const ResponseColumns = responseColumns

// ScanRead reads a row into the Read it is for: ResponseColumns, and then the
// Read's place in the group, from 0 on.
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
	return r.response, r.err
}

// readAlone reads one response. A point read ends sooner than a driver could
// cancel it, and a driver that watches a context starts a goroutine for it.
func (s responses) readAlone(ctx context.Context, key formsvc.ResponseKey) (formsvc.Response, error) {
	return s.response(context.WithoutCancel(ctx), s.read, key, selectResponse)
}

// errUnread is what the others of a group get whose leader panics.
var errUnread = Classified(formsvc.ErrUnavailable, errors.New("bunstore: a panic in a group of reads"))

// readGroup reads a group of responses. They share a failure too, which can only
// be the database's: a key that names nothing is none.
func (s responses) readGroup(together func(context.Context, bun.IConn, []*Read) error, group []*Read) {
	ctx := context.Background()
	if len(group) == 1 {
		r := group[0]
		r.response, r.err = s.readAlone(ctx, r.Key)
		return
	}
	for _, r := range group {
		r.err = errUnread
	}
	if err := together(ctx, s.read, group); err != nil {
		err = s.backend.Classify(err)
		for _, r := range group {
			r.response, r.err = formsvc.Response{}, err
		}
		return
	}
	for _, r := range group {
		if errors.Is(r.err, errUnread) { // by no row
			r.err = formsvc.ErrNotFound
		}
	}
}
