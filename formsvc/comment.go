package formsvc

import (
	"context"
	"time"
)

// A Comment is a note about a response. It never changes.
type Comment struct {
	ID         ID
	AccountID  ID
	CampaignID ID
	ResponseID ID
	Body       string // 1 to MaxComment characters
	Author     string // who wrote it, to be displayed; "" if unknown
	CreatedAt  time.Time
}

// Size returns about how many bytes of memory the comment takes.
func (c *Comment) Size() int {
	const fixed = 320 // the struct, and identifiers
	return fixed + len(c.Body) + len(c.Author)
}

// CommentInput is what a new comment needs.
type CommentInput struct {
	Body   string // not only white space, at most MaxComment characters; kept as it is
	Author string // at most MaxAuthor characters; "" if unknown
}

// Comments creates and lists comments. It is safe for concurrent use.
type Comments struct{ s *core }

// Create adds a comment to a response, whatever the status of the response or its campaign. It changes nothing else and
// raises no event. It fails with a *[ValidationError], and with [ErrNotFound] for an unknown response.
func (s Comments) Create(ctx context.Context, key ResponseKey, in CommentInput) (_ Comment, err error) {
	defer wrap(&err, "create comment")
	return once(ctx, s.s, key.AccountID, func() (Comment, error) {
		if err := in.check(s.s.faults()); err != nil {
			return Comment{}, err
		}
		now := s.s.now()
		c := Comment{
			ID: s.s.NewID(now), AccountID: key.AccountID, CampaignID: key.CampaignID, ResponseID: key.ID,
			Body: in.Body, Author: in.Author, CreatedAt: now,
		}
		return c, s.s.store.CreateComment(ctx, c, Change{Idempotency: record(s.s, key.AccountID, key.ID, &c)})
	})
}

func (in *CommentInput) check(v ValidationError) error {
	v.checkTitle("/body", in.Body, MaxComment)
	v.checkLine("/author", in.Author, MaxAuthor)
	return v.err()
}

// List returns a page of the comments on a response, or [ErrNotFound].
func (s Comments) List(ctx context.Context, key ResponseKey, q PageQuery) (Page[Comment], error) {
	return listed("comments", &q, func() (Page[Comment], error) { return s.s.store.Comments(ctx, key, q) })
}

// AppendJSON appends the comment as the JSON object that clients get.
func (c *Comment) AppendJSON(b []byte) []byte {
	b = appendText(b, `{"uuid":`, string(c.ID))
	b = appendText(b, `,"body":`, c.Body)
	b = appendOptional(b, `,"author":`, c.Author)
	return append(appendTime(b, `,"createdAt":`, c.CreatedAt), '}')
}
