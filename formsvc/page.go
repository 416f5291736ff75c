package formsvc

import (
	"fmt"
	"iter"
)

// A PageQuery chooses a part of a list. Lists are ordered by ID, which is the order of creation.
type PageQuery struct {
	Limit     int  // 1 to MaxLimit; 0 means DefaultLimit, values above MaxLimit are clamped
	Offset    int  // rows to skip; the cost grows with it
	After     ID   // continue after this record, at a constant cost; overrides Offset. Other text than an ID is ErrInvalid
	Ascending bool // oldest first; newest first otherwise
	// MaxBytes ends the page early, with the record that brings the sum of the sizes to it, so
	// that a page of the largest records fits into memory. Campaigns, responses and comments
	// have sizes; other records are small. 0 means no limit.
	MaxBytes int
}

// Clamped returns q with a valid limit and no negative offset.
func (q PageQuery) Clamped() PageQuery {
	if q.Limit <= 0 {
		q.Limit = DefaultLimit
	}
	q.Limit = min(q.Limit, MaxLimit)
	q.Offset = max(q.Offset, 0)
	if q.After != "" {
		q.Offset = 0
	}
	return q
}

// checked is Clamped for a query of a caller. It fails with [ErrInvalid] if After isn't an ID.
func (q PageQuery) checked() (PageQuery, error) {
	if q.After != "" && !q.After.Valid() {
		return q, fmt.Errorf("PageQuery.After must be an ID: %w", ErrInvalid)
	}
	return q.Clamped(), nil
}

// listed checks the query of a page, and returns the page. what is in the text of an error.
func listed[T any](what string, q *PageQuery, read func() (Page[T], error)) (page Page[T], err error) {
	defer wrap(&err, what)
	if *q, err = q.checked(); err != nil {
		return page, err
	}
	return read()
}

// A Page is a part of a list.
type Page[T any] struct {
	Items []T
	Total int64 // records on all pages
	More  bool  // whether there is a next page
}

// All yields the records of all pages that fetch returns from q on, for a loop over a whole list:
//
//	for r, err := range formsvc.All(formsvc.PageQuery{}, func(page formsvc.PageQuery) (formsvc.Page[formsvc.Response], error) {
//		return svc.Responses.List(ctx, formsvc.ResponseQuery{AccountID: account, CampaignID: campaign, NoTotal: true, Page: page})
//	}) {
//
// The caller may remove records that it got. An error ends the sequence.
func All[T any, P interface {
	*T
	id() ID
}](q PageQuery, fetch func(PageQuery) (Page[T], error)) iter.Seq2[P, error] {
	return func(yield func(P, error) bool) {
		for q := q; ; {
			page, err := fetch(q)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page.Items {
				if !yield(&page.Items[i], nil) {
					return
				}
			}
			if !page.More || len(page.Items) == 0 {
				return
			}
			q.Offset, q.After = 0, P(&page.Items[len(page.Items)-1]).id()
		}
	}
}

func (c *Campaign) id() ID   { return c.ID }
func (r *Response) id() ID   { return r.ID }
func (f *File) id() ID       { return f.ID }
func (c *Comment) id() ID    { return c.ID }
func (s *Signature) id() ID  { return s.ID }
func (d *Delivery) id() ID   { return d.ID }
func (e *AuditEntry) id() ID { return e.ID }
func (n *Notice) id() ID     { return n.DeliveryID }
