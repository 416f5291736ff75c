package formsvc

// A PageQuery chooses a part of a list. Lists are ordered by ID, which is the
// order of creation.
type PageQuery struct {
	Limit     int  // 1 to MaxLimit; 0 means DefaultLimit, values above MaxLimit are clamped
	Offset    int  // rows to skip; the cost grows with it
	After     ID   // continue after this record, at a constant cost; overrides Offset
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

// A Page is a part of a list.
type Page[T any] struct {
	Items []T
	Total int64 // records on all pages
	More  bool  // whether there is a next page
}
