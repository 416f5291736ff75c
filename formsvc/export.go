package formsvc

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
)

// Limits of what an [Export] holds in memory.
const (
	exportBytes = 256 << 10 // see PageQuery.MaxBytes
	exportBegin = 16        // size of the first page, before the size of responses is known
	exportNames = 1 << 20   // bytes of module names
)

// An Export reads all responses that a query chooses, in pages by ID. Each page is one short read; between two pages
// nothing is open in the store, however long the caller takes. It keeps up to 256 KiB of responses, plus one response,
// in memory. It is safe for concurrent use, and may be read more than once.
type Export struct {
	// Before is called before each page is read, for example to wait for a turn. Its error ends the export. Defaults to nothing.
	Before func(context.Context) error
	// Search leaves out the responses that it doesn't find. Defaults to all.
	Search *Search

	s       *core
	query   ResponseQuery
	modules []Module
	newest  ID // the newest response when it began
}

// Export starts an export of a campaign's responses that match the filter, in the order of q.Page
// and after its After; Limit and Offset are ignored. Responses created later are left out, so the
// export ends even while new ones keep arriving. A response that changes during the export is read
// in its state at that time, and a deleted one is left out. It fails with [ErrNotFound].
func (s Responses) Export(ctx context.Context, q ResponseQuery) (_ *Export, err error) {
	defer wrap(&err, "export responses")
	c, err := s.s.store.Campaign(ctx, CampaignKey{AccountID: q.AccountID, ID: q.CampaignID})
	if err != nil {
		return nil, err
	}
	newest, err := s.s.store.Responses(ctx, ResponseQuery{
		AccountID: q.AccountID, CampaignID: q.CampaignID, NoTotal: true, Page: PageQuery{Limit: 1},
	})
	if err != nil {
		return nil, err
	}
	e := &Export{s: s.s, query: q, modules: c.Questions()}
	e.query.NoTotal, e.query.Page.MaxBytes, e.query.Page.Offset = true, exportBytes, 0
	if len(newest.Items) > 0 {
		e.newest = newest.Items[0].ID
	}
	return e, nil
}

// Modules returns the modules of the campaign, without its sections. The caller must not change them.
func (e *Export) Modules() []Module { return e.modules }

// All yields the responses one by one. Each is valid until the next one. An error ends the sequence.
func (e *Export) All(ctx context.Context) iter.Seq2[*Response, error] { return e.read(ctx, e.query) }

func (e *Export) read(ctx context.Context, q ResponseQuery) iter.Seq2[*Response, error] {
	limit := exportBegin
	list := All(q.Page, func(page PageQuery) (Page[Response], error) {
		if e.Before != nil {
			if err := e.Before(ctx); err != nil {
				return Page[Response]{}, err
			}
		}
		q.Page, q.Page.Limit = page, limit
		read, err := e.s.store.Responses(ctx, q)
		size := 1
		for i := range read.Items {
			size += read.Items[i].Size()
		}
		// MaxBytes ends the page anyway; this keeps the store from preparing rows that it won't return.
		limit = min(max(exportBytes*len(read.Items)/size, 1), 8*limit, MaxLimit)
		return read, err
	})
	return func(yield func(*Response, error) bool) {
		if e.newest == "" {
			return
		}
		for r, err := range list {
			switch {
			case err != nil:
				yield(nil, fmt.Errorf("formsvc: export responses: %w", err))
				return
			case r.ID <= e.newest:
				if (e.Search == nil || e.Search.Finds(r)) && !yield(r, nil) {
					return
				}
			case q.Page.Ascending:
				return
			}
		}
	}
}

// Columns returns the column names for a table of the answers: the campaign's modules in their
// order, those for files apart, then all other answered names and those of metadata after "metadata.", sorted. It reads
// every response that matches the filter, including those before Page.After, so that an export in parts has the same columns in each part.
// ok is false if there are more than limit names, or if they exceed 1 MiB together.
//
// A response that changes afterwards may have an answer under a new name.
func (e *Export) Columns(ctx context.Context, limit int) (names []string, ok bool, err error) {
	known, others := make(map[string]bool), make(map[string]bool)
	bytes := 0
	for _, m := range e.modules {
		if m.Type == FileModule {
			continue
		}
		names = append(names, m.Name)
		known[m.Name] = true
		bytes += len(m.Name)
	}
	q := e.query
	q.Page.After = ""
	fits := func() bool { return len(known)+len(others) <= limit && bytes <= exportNames }
	for r, err := range e.read(ctx, q) {
		if err == nil {
			err = r.AllValues(func(name string, _ []string) error {
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
