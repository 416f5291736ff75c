package bunstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

// TestBit marks the type of a test event, in events and in deliveries.
const TestBit int64 = 1 << 16

// confirmBit is the only one in the set of the webhook that sends confirmations ([formsvc.Webhook.ToSubmitters]).
const confirmBit int64 = 1 << 17

// ListenBits returns the bits of which a webhook has one if it listens to an event.
func ListenBits(e *formsvc.Event) int64 {
	bits := TypeOf(e)
	if e.Confirm {
		bits |= confirmBit
	}
	return bits
}

// EventBit returns the bit of an event type in a webhook's set of types, by its place in
// [webhook.KnownEventTypes]; 0 for an unknown type.
func EventBit(t formsvc.EventType) int64 {
	if i := slices.Index(webhook.KnownEventTypes(), t); i >= 0 {
		return 1 << i
	}
	return 0
}

// TypeOf returns the stored type of an event.
func TypeOf(e *formsvc.Event) int64 {
	if e.Test {
		return EventBit(e.Type) | TestBit
	}
	return EventBit(e.Type)
}

// eventOf is the inverse of TypeOf.
func eventOf(stored int64) (t formsvc.EventType, test bool) {
	for i, t := range webhook.KnownEventTypes() {
		if stored&^TestBit == 1<<i {
			return t, stored&TestBit != 0
		}
	}
	return "", stored&TestBit != 0
}

// eventBits returns the stored set of event types.
func eventBits(types []formsvc.EventType) (bits int64) {
	for _, t := range types {
		bits |= EventBit(t)
	}
	return bits
}

// checkTypes rejects event types that have no bit.
func checkTypes(types ...formsvc.EventType) error {
	for _, t := range types {
		if EventBit(t) == 0 {
			return fmt.Errorf("bunstore: unknown event type: %w", formsvc.ErrInvalid)
		}
	}
	return nil
}

// An EventRow is an event to write. About is its response, or "" if that is created with the event and names it.
type EventRow struct {
	*formsvc.Event

	About formsvc.ID
}

// EventColumns are the columns of an event, without its place in the feed.
func EventColumns() []Column[EventRow] {
	return []Column[EventRow]{
		{"id", "uuid", func(e EventRow) any { return e.ID }},
		{"account_id", "uuid", func(e EventRow) any { return e.AccountID }},
		{"campaign_id", "uuid", func(e EventRow) any { return e.CampaignID }},
		{"response_id", "uuid", func(e EventRow) any { return e.ResponseID }},
		{"type", "bigint", func(e EventRow) any { return TypeOf(e.Event) }},
		{"created_at", "bigint", func(e EventRow) any { return micros(e.CreatedAt) }},
		{"about", "uuid", func(e EventRow) any { return e.About }},
		{"payload", "bytea", func(e EventRow) any { return NotNull(e.Payload) }},
		{"traceparent", "text", func(e EventRow) any {
			if e.TraceParent == "" {
				return nil
			}
			return e.TraceParent
		}},
	}
}

func checkEvent(e *formsvc.Event) error {
	return errors.Join(checkIDs(e.ID, e.AccountID, e.CampaignID, e.ResponseID, cmp.Or(e.To, e.ID)), checkTypes(e.Type), formsvc.CheckText(e.TraceParent))
}

// Event implements formsvc.EventStore.
func (s *Store) Event(ctx context.Context, account, id formsvc.ID) (formsvc.Event, error) {
	if err := s.ready(ctx, account, id); err != nil {
		return formsvc.Event{}, err
	}
	events, err := s.eventsByID(ctx, account, []ID{ID(id)})
	if err != nil {
		return formsvc.Event{}, s.backend.Classify(err)
	}
	if len(events) == 0 {
		return formsvc.Event{}, formsvc.ErrNotFound
	}
	return events[0], nil
}

// RecentEvents implements formsvc.EventStore. It first looks at the newest events without
// their payloads, and then reads as many as fit.
func (s *Store) RecentEvents(ctx context.Context, q formsvc.RecentQuery) ([]formsvc.Event, error) {
	if err := s.ready(ctx, q.AccountID); err != nil || q.Limit <= 0 {
		return nil, noneWhenNotFound(err)
	}
	if err := checkTypes(q.Types...); err != nil {
		return nil, err
	}
	const last = 1<<63 - 1
	p := picked{
		limit: q.Limit, maxBytes: formsvc.DefaultEventBytes, bits: eventBits(q.Types), campaign: ID(q.CampaignID),
		last: Position{last, last},
	}
	// The first step asks for some more than the limit, as a few may be tests.
	if _, err := s.pickAll(ctx, &p, q.Limit+10, &FeedQuery{Account: ID(q.AccountID), Back: true}); err != nil {
		return nil, s.backend.Classify(err)
	}
	events, err := s.eventsByID(ctx, q.AccountID, p.ids)
	return events, s.backend.Classify(err)
}

const selectMadeWith = "SELECT r.events FROM formsvc_responses AS r WHERE r.campaign_id = $1 AND r.id = $2 AND r.account_id = $3"

// EventsAbout implements formsvc.EventStore. The response names the events it was created
// with; all later events name the response.
func (s *Store) EventsAbout(ctx context.Context, key formsvc.ResponseKey, limit int) ([]formsvc.Event, error) {
	if err := s.ready(ctx, key.AccountID, key.CampaignID, key.ID); err != nil {
		return nil, err
	}
	var made IDs
	row := s.read.QueryRowContext(ctx, selectMadeWith, s.keyArgs(key)...)
	if err := row.Scan(&made); err != nil {
		return nil, s.notFound(err)
	}
	ids := []ID(made)
	p := picked{limit: limit, maxBytes: formsvc.DefaultEventBytes}
	for _, where := range []string{"e.id IN (?)", "e.about IN (?)"} {
		list, err := s.eventMetas(ctx, key, where, ids)
		if err != nil {
			return nil, s.backend.Classify(err)
		}
		p.pick(list)
		ids = []ID{ID(key.ID)}
	}
	events, err := s.eventsByID(ctx, key.AccountID, p.ids)
	return events, s.backend.Classify(err)
}

// eventMetas looks at the events about a response that match a condition. The condition is all of the
// query, so that the database chooses its index.
func (s *Store) eventMetas(ctx context.Context, key formsvc.ResponseKey, where string, ids []ID) (list []EventMeta, err error) {
	var rows []struct {
		EventMeta

		AccountID, ResponseID ID
	}
	err = s.build.NewSelect().Conn(s.read).TableExpr("formsvc_events AS e").
		Column("e.id", "e.account_id", "e.campaign_id", "e.response_id", "e.type").ColumnExpr("length(e.payload) AS size").
		Where(where, bun.List(ids)).OrderExpr(s.dialect.FeedOrder).Scan(ctx, &rows)
	for _, r := range rows {
		if r.AccountID == ID(key.AccountID) && r.CampaignID == ID(key.CampaignID) && r.ResponseID == ID(key.ID) {
			list = append(list, r.EventMeta)
		}
	}
	return list, err
}

// eventsByID returns the account's events with those identifiers, those of all accounts if
// account is "", in the order of the list. Events deleted meanwhile are left out. Neither the account nor
// the order is part of the query, so that the database doesn't choose an index for them.
func (s *Store) eventsByID(ctx context.Context, account formsvc.ID, ids []ID) ([]formsvc.Event, error) {
	events := make([]formsvc.Event, 0, len(ids))
	for some := range slices.Chunk(ids, eventBatch) {
		var rows []struct {
			ID, AccountID, CampaignID, ResponseID ID
			Type, CreatedAt                       int64
			Payload                               []byte
			Traceparent                           string
		}
		q := s.build.NewSelect().Conn(s.read).TableExpr("formsvc_events").
			Column("id", "account_id", "campaign_id", "response_id", "type", "created_at", "payload").
			ColumnExpr("coalesce(traceparent, '') AS traceparent")
		if err := q.Where("id IN (?)", bun.List(some)).Scan(ctx, &rows); err != nil {
			return nil, err
		}
		for i := range rows {
			r := &rows[i]
			if account != "" && r.AccountID != ID(account) {
				continue
			}
			e := formsvc.Event{
				ID: formsvc.ID(r.ID), AccountID: formsvc.ID(r.AccountID), CampaignID: formsvc.ID(r.CampaignID),
				ResponseID: formsvc.ID(r.ResponseID), Payload: r.Payload, CreatedAt: fromMicros(r.CreatedAt),
				TraceParent: r.Traceparent,
			}
			e.Type, e.Test = eventOf(r.Type)
			events = append(events, e)
		}
	}
	place := make(map[formsvc.ID]int, len(ids))
	for i, id := range ids {
		place[formsvc.ID(id)] = i
	}
	slices.SortFunc(events, func(a, b formsvc.Event) int { return place[a.ID] - place[b.ID] })
	return events, nil
}

// eventBatch is how many events one statement reads by their identifiers.
const eventBatch = 200
