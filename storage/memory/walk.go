package memory

import (
	"slices"

	"github.com/formsvc/toolkit/formsvc"
)

// walk is page without the total. It reads only the rows to skip and those of the page.
func walk[R, T any](t *table[R], q formsvc.PageQuery, match func(R) bool, out func(R) T) formsvc.Page[T] {
	q = q.Clamped()
	at, step := len(t.ids)-1, -1
	if q.Ascending {
		at, step = 0, 1
	}
	if q.After != "" {
		var found bool
		at, found = slices.BinarySearch(t.ids, q.After)
		switch {
		case !q.Ascending:
			at--
		case found:
			at++
		}
	}
	var list formsvc.Page[T]
	list.Items = make([]T, 0, min(q.Limit, 64))
	for skip := q.Offset; at >= 0 && at < len(t.ids); at += step {
		row := t.rows[t.ids[at]]
		switch {
		case match != nil && !match(row):
		case skip > 0:
			skip--
		case len(list.Items) == q.Limit:
			list.More = true
			return list
		default:
			list.Items = append(list.Items, out(row))
		}
	}
	return list
}
