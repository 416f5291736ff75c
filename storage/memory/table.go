package memory

import (
	"context"
	"slices"

	"github.com/formsvc/toolkit/formsvc"
)

// A table keeps rows in the order of their IDs. Its zero value is empty.
type table[R any] struct {
	rows map[formsvc.ID]R
	ids  []formsvc.ID // ascending
}

// get returns a row, or ErrNotFound.
func (t *table[R]) get(id formsvc.ID) (R, error) {
	row, ok := t.rows[id]
	if !ok {
		return row, formsvc.ErrNotFound
	}
	return row, nil
}

// first returns a row that matches, or ErrNotFound.
func (t *table[R]) first(match func(R) bool) (row R, err error) {
	for _, id := range t.ids { // oldest first
		if match(t.rows[id]) {
			return t.rows[id], nil
		}
	}
	return row, formsvc.ErrNotFound
}

// add adds a row, or returns ErrConflict if the ID is taken.
func (t *table[R]) add(id formsvc.ID, row R) error {
	at, taken := slices.BinarySearch(t.ids, id)
	if taken {
		return formsvc.ErrConflict
	}
	if t.rows == nil {
		t.rows = make(map[formsvc.ID]R)
	}
	t.rows[id] = row
	t.ids = slices.Insert(t.ids, at, id)
	return nil
}

func (t *table[R]) remove(id formsvc.ID) {
	if at, ok := slices.BinarySearch(t.ids, id); ok {
		delete(t.rows, id)
		t.ids = slices.Delete(t.ids, at, at+1)
	}
}

// count returns how many rows match.
func (t *table[R]) count(match func(R) bool) (n int) {
	for _, row := range t.rows {
		if match(row) {
			n++
		}
	}
	return n
}

// list returns copies of the rows that match, made by out, in the order of their IDs. A nil match accepts all.
func list[R, T any](t *table[R], match func(R) bool, out func(R) T) []T {
	items := []T{}
	for _, id := range t.ids {
		if row := t.rows[id]; match == nil || match(row) {
			items = append(items, out(row))
		}
	}
	return items
}

// listed is list with the lock held.
func listed[R, T any](ctx context.Context, s *Store, t *table[R], match func(R) bool, out func(R) T) ([]T, error) {
	return locked(ctx, s, func() ([]T, error) { return list(t, match, out), nil })
}

// page returns copies of the rows on the page of q, made by out. Only rows that match are
// counted, unless noTotal is set; a nil match accepts all.
func page[R, T any](t *table[R], q formsvc.PageQuery, noTotal bool, match func(R) bool, out func(R) T) formsvc.Page[T] {
	q = q.Clamped()
	ids := t.ids
	if match != nil {
		ids = nil
		for _, id := range t.ids {
			if match(t.rows[id]) {
				ids = append(ids, id)
			}
		}
	}
	start := min(q.Offset, len(ids))
	if q.After != "" {
		at, found := slices.BinarySearch(ids, q.After)
		switch {
		case !q.Ascending:
			start = len(ids) - at
		case found:
			start = at + 1
		default:
			start = at
		}
	}
	end := min(start+q.Limit, len(ids))
	items := make([]T, 0, end-start)
	for i := start; i < end; i++ {
		id := ids[i]
		if !q.Ascending {
			id = ids[len(ids)-1-i]
		}
		items = append(items, out(t.rows[id]))
	}
	total := int64(len(ids))
	if noTotal {
		total = 0
	}
	return formsvc.Page[T]{Items: items, Total: total, More: end < len(ids)}
}

// cutAt ends the page with the item that brings the sum of the sizes to q.MaxBytes.
func cutAt[T any](page formsvc.Page[T], q formsvc.PageQuery, size func(*T) int) formsvc.Page[T] {
	if q.MaxBytes <= 0 {
		return page
	}
	sum := 0
	for i := range page.Items {
		if sum >= q.MaxBytes {
			page.Items, page.More = page.Items[:i], true
			break
		}
		sum += size(&page.Items[i])
	}
	return page
}
