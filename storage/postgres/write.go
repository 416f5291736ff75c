package postgres

import (
	"context"
	"database/sql"
	"errors"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

// backend is what is specific to Postgres: whole groups are sent as arrays, one statement
// each.
type backend struct {
	shard int // the counter row that it updates
}

func (*backend) ForUpdate() string { return "UPDATE" }

// eventArgs returns the columns of events, in the order of eventColumns.
func eventArgs(events []*formsvc.Event) []any {
	var (
		ids, accounts, campaigns, responses = texts(len(events)), texts(len(events)), texts(len(events)), texts(len(events))
		types, created                      = make([]int64, len(events)), make([]int64, len(events))
		payloads                            = make([][]byte, len(events))
		traces                              []string // the server takes missing elements for NULL
	)
	for i, e := range events {
		ids[i], accounts[i], campaigns[i] = string(e.ID), string(e.AccountID), string(e.CampaignID)
		responses[i], types[i] = string(e.ResponseID), bunstore.TypeOf(e)
		payloads[i], created[i] = append([]byte{}, e.Payload...), e.CreatedAt.UnixMicro()
		if e.TraceParent != "" {
			if traces == nil {
				traces = texts(len(events))
			}
			traces[i] = e.TraceParent
		}
	}
	return []any{ids, accounts, campaigns, responses, types, payloads, created, traces}
}

func texts(n int) []string { return make([]string, n) }

// InsertEvents implements bunstore.Backend.
func (*backend) InsertEvents(ctx context.Context, c bun.IConn, events []formsvc.Event) (wake bool, err error) {
	if len(events) == 0 {
		return false, nil
	}
	list := make([]*formsvc.Event, len(events))
	for i := range events {
		list[i] = &events[i]
	}
	return wake, c.QueryRowContext(ctx, insertEvents, eventArgs(list)...).Scan(&wake)
}

// InsertEvent implements bunstore.Backend.
func (*backend) InsertEvent(ctx context.Context, c bun.IConn, event *formsvc.Event) error {
	_, err := c.ExecContext(ctx, insertOnlyEvents, eventArgs([]*formsvc.Event{event})...)
	return err
}

// AddCount implements bunstore.Backend. A row of the counter may fall below zero;
// their sum does not.
func (b *backend) AddCount(ctx context.Context, c bun.IConn, campaign formsvc.ID, n int) error {
	_, err := c.ExecContext(ctx, addCount, string(campaign), b.shard, n)
	return err
}

// CreateResponses implements bunstore.Backend. It needs no transaction, because it is one
// statement.
func (b *backend) CreateResponses(ctx context.Context, c bun.IConn, group []*bunstore.Unit) error {
	inserted, err := b.insertResponses(ctx, c, group)
	if err != nil || len(inserted) == len(group) {
		return err
	}
	for _, u := range group {
		if !inserted[string(u.Creation.Response.ID)] {
			u.Wake = false
			if u.Err, err = refusal(ctx, c, u.Creation); err != nil {
				return err
			}
		}
	}
	return nil
}

// insertResponses writes the group and returns the identifiers of the responses written.
func (b *backend) insertResponses(
	ctx context.Context, c bun.IConn, group []*bunstore.Unit,
) (inserted map[string]bool, err error) {
	statement, args := createResponses, b.creationArgs(group)
	if bunstore.Keyed(group) {
		statement, args = createKeyedResponses, append(args, recordArgs(group)...)
	}
	rows, err := c.QueryContext(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	inserted = make(map[string]bool, len(group))
	wake := false
	for rows.Next() {
		var id string
		if err := rows.Scan(&id, &wake); err != nil {
			return nil, err
		}
		inserted[id] = true
	}
	for _, u := range group {
		u.Wake = wake
	}
	return inserted, rows.Err()
}

// refusal returns why a response was left out.
func refusal(ctx context.Context, c bun.IConn, n *bunstore.Creation) (reason, err error) {
	if r := n.Change.Idempotency; r != nil {
		var taken bool
		if err := c.QueryRowContext(ctx, selectRecord, bunstore.RecordHash(r.AccountID, r.Key)).Scan(&taken); err != nil {
			return nil, err
		}
		if taken {
			return formsvc.ErrRepeated, nil
		}
	}
	var version int64
	err = c.QueryRowContext(ctx, selectVersion, string(n.Response.CampaignID), string(n.Response.AccountID)).Scan(&version)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return formsvc.ErrNotFound, nil
	case err != nil:
		return nil, err
	case version != n.CampaignVersion:
		return formsvc.ErrStale, nil
	}
	return formsvc.ErrConflict, nil
}

func (b *backend) creationArgs(group []*bunstore.Unit) []any {
	n := len(group)
	var (
		events                         = make([]*formsvc.Event, 0, n)
		ids, accounts, campaigns, refs = texts(n), texts(n), texts(n), texts(n)
		statuses, emails, firsts       = texts(n), texts(n), texts(n)
		lasts, answers, with           = texts(n), texts(n), texts(n)
		seen, versions                 = make([]int64, n), make([]int64, n)
		created, updated, completed    = make([]int64, n), make([]int64, n), make([]int64, n)
	)
	for i, u := range group {
		r := &u.Creation.Response
		ids[i], accounts[i], campaigns[i] = string(r.ID), string(r.AccountID), string(r.CampaignID)
		seen[i], refs[i], statuses[i] = u.Creation.CampaignVersion, r.Reference, r.Status
		emails[i], firsts[i], lasts[i] = r.User.Email, r.User.FirstName, r.User.LastName
		answers[i], versions[i], with[i] = r.Answers.JSON(), r.Version, bunstore.EventIDs(&u.Creation.Change)
		created[i], updated[i], completed[i] = r.CreatedAt.UnixMicro(), r.UpdatedAt.UnixMicro(), r.CompletedAt.UnixMicro()
		for j := range u.Creation.Change.Events {
			events = append(events, &u.Creation.Change.Events[j])
		}
	}
	return append(eventArgs(events), ids, accounts, campaigns, seen, refs, statuses, emails, firsts, lasts, answers,
		versions, created, updated, completed, with, b.shard)
}

// recordArgs returns the columns of the idempotency records of a group, NULL where there
// is none.
func recordArgs(group []*bunstore.Unit) []any {
	n := len(group)
	var (
		ids, requests, results = make([][]byte, n), make([][]byte, n), make([][]byte, n)
		refused, created       = make([]bool, n), make([]int64, n)
		about                  = make([]*string, n)
	)
	for i, u := range group {
		r := u.Creation.Change.Idempotency
		if r == nil {
			continue
		}
		ids[i], requests[i], results[i] = bunstore.RecordHash(r.AccountID, r.Key), r.Request[:], append([]byte{}, r.Result...)
		refused[i], created[i] = r.Refused, r.CreatedAt.UnixMicro()
		if r.ResponseID != "" {
			about[i] = (*string)(&r.ResponseID)
		}
	}
	return []any{ids, requests, refused, results, about, created}
}
