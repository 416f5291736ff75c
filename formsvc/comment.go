package formsvc

import "time"

// A Comment is what somebody noted about a response. It never changes.
type Comment struct {
	ID         ID
	AccountID  ID
	CampaignID ID
	ResponseID ID
	Body       string // 1 to MaxComment characters
	Author     string // who wrote it, for people; "" when nobody said
	CreatedAt  time.Time
}

// MaxComment is how many characters a comment may have.
const MaxComment = 10_000

// CommentQuery chooses comments on one response.
type CommentQuery struct {
	AccountID  ID
	CampaignID ID
	ResponseID ID
	Page       PageQuery
}

// Comments takes and lists comments. It is safe for concurrent use.
type Comments struct{ s *core }
