package formsvc

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
)

// Bounds of what an [Export] holds at a time.
const (
	exportBytes = 256 << 10 // see ResponseQuery.MaxBytes
	exportBegin = 16        // responses asked for before it is known how large they are
	exportNames = 1 << 20   // bytes of names of modules
)

// An Export reads all the responses that a query chooses, in pages by ID: each is
// one short read, and between two of them nothing is held open in the store,
// however long the caller takes. In memory it has 256 KiB of responses, and one
// more. It is safe for concurrent use, and may be read more than once.
type Export struct {
	s       *core
	query   ResponseQuery
	modules []Module
	newest  ID // what was there when it began
}

// Export begins to read a campaign's responses: those that the filter lets
// through, in the order of q.Page and after its After; Limit and Offset don't
// count. Responses that are made from then on are left out, so that it ends also
// when they come faster than they are read; one that changes or is deleted is
// seen as it is when its turn comes. It fails with [ErrNotFound].
func (s Responses) Export(ctx context.Context, q ResponseQuery) (_ *Export, err error) {
	defer s.s.span(&ctx, "Responses.Export").end(&err)
	c, err := s.s.store.Campaign(ctx, CampaignKey{AccountID: q.AccountID, ID: q.CampaignID})
	if err != nil {
		return nil, fmt.Errorf("formsvc: export responses: %w", err)
	}
	newest, err := s.s.store.Responses(ctx, ResponseQuery{
		AccountID: q.AccountID, CampaignID: q.CampaignID, NoTotal: true, Page: PageQuery{Limit: 1},
	})
	if err != nil {
		return nil, fmt.Errorf("formsvc: export responses: %w", err)
	}
	e := &Export{s: s.s, query: q, modules: c.Modules}
	e.query.NoTotal, e.query.MaxBytes, e.query.Page.Offset = true, exportBytes, 0
	if len(newest.Items) > 0 {
		e.newest = newest.Items[0].ID
	}
	return e, nil
}

// All returns the responses one by one. A response is the caller's until the
// next. After an error there is nothing more.
func (e *Export) All(ctx context.Context) iter.Seq2[*Response, error] {
	return func(yield func(*Response, error) bool) {
		ctx := ctx // each reading has a span of its own
		var err error
		defer e.s.span(&ctx, "Export.All").end(&err)
		for r, failed := range e.read(ctx, e.query) {
			if err = failed; !yield(r, failed) {
				return
			}
		}
	}
}

func (e *Export) read(ctx context.Context, q ResponseQuery) iter.Seq2[*Response, error] {
	return func(yield func(*Response, error) bool) {
		q.Page.Limit = exportBegin
		for more := e.newest != ""; more; {
			page, err := e.s.store.Responses(ctx, q)
			if err != nil {
				yield(nil, fmt.Errorf("formsvc: export responses: %w", err))
				return
			}
			size := 0
			for i := range page.Items {
				r := &page.Items[i]
				size += r.Size()
				switch {
				case r.ID <= e.newest:
					if !yield(r, nil) {
						return
					}
				case q.Page.Ascending:
					return
				}
			}
			n := len(page.Items)
			if more = page.More && n > 0; more {
				q.Page.After = page.Items[n-1].ID
				// The store stops at MaxBytes by itself; this keeps it from preparing rows in vain.
				q.Page.Limit = min(max(exportBytes*n/size, 1), 8*q.Page.Limit, MaxLimit)
			}
		}
	}
}

// Columns returns the names under which there may be answers, for a table with a
// column for each: those of the campaign's modules in their order, then what else
// is answered, sorted. For that it reads every response that the filter lets
// through, not only those after Page.After, so that what is read in parts has the
// same columns. ok is false when there are more than limit, or their names come to
// more than 1 MiB.
//
// A response that is changed afterwards may have an answer under another name.
func (e *Export) Columns(ctx context.Context, limit int) (names []string, ok bool, err error) {
	defer e.s.span(&ctx, "Export.Columns").end(&err)
	known, others := make(map[string]bool), make(map[string]bool)
	bytes := 0
	for _, m := range e.modules {
		names = append(names, m.Name)
		known[m.Name] = true
		bytes += len(m.Name)
	}
	q := e.query
	q.Page.After = ""
	fits := func() bool { return len(known)+len(others) <= limit && bytes <= exportNames }
	for r, err := range e.read(ctx, q) {
		if err == nil {
			err = r.Answers.Each(func(name string, _ []string) error {
				if !known[name] && !others[name] {
					others[name] = true
					bytes += len(name)
				}
				return nil
			})
		}
		if err != nil {
			return nil, false, err
		}
		if !fits() {
			break
		}
	}
	return append(names, slices.Sorted(maps.Keys(others))...), fits(), nil
}
