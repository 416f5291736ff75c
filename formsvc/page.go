package formsvc

// A PageQuery chooses a part of a list. Lists are ordered by ID, which is the
// order of creation.
type PageQuery struct {
	Limit     int  // 1 to MaxLimit; 0 means DefaultLimit, more is cut to MaxLimit
	Offset    int  // rows to skip; its cost grows with it
	After     ID   // continue after this record, at a cost that does not grow with depth; used instead of Offset
	Ascending bool // oldest first; newest first otherwise
}

// Clamped returns q with its limit within bounds and no negative offset.
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

// A Page is a part of a list.
type Page[T any] struct {
	Items []T
	Total int64 // records that the query matches on all pages
	More  bool  // whether records follow the last item
}
