package formsvc

import (
	"strings"
	"time"
)

// Erasing says what a store is to remove in one unit. What is not the account's,
// or not there, is passed over.
type Erasing struct {
	AccountID ID
	DryRun    bool // whether to count what is there and change nothing
	// Responses go with all that [ErasedTotals] counts, and are counted no more in
	// their campaigns. Their references may be given again.
	Responses []ResponseKey
	// Signatures go alone: the events about them stay.
	Signatures []ID
	// Events go with their deliveries, attempts and notices. Attempts under way are
	// not cut off, and leave no trace.
	Events []ID
	// AnswersOf are responses whose [IdempotencyRecord] lose their answer if it has
	// the text AnswersWith in it, whatever the case of its ASCII letters.
	AnswersOf   []ID
	AnswersWith string
}

// ErasedTotals counts what was removed.
type ErasedTotals struct {
	Responses  int
	Files      int
	Comments   int
	Signatures int
	Events     int
	Deliveries int // of the events, to whatever webhook
	Attempts   int // at these deliveries
	Notices    int // of their final failures
	// Answers are those to calls that may be repeated. Their records stay, without
	// the answer and with the status 410.
	Answers int
}

// IsZero reports whether nothing was removed.
func (t *ErasedTotals) IsZero() bool { return *t == ErasedTotals{} }

// Add adds what else was removed.
func (t *ErasedTotals) Add(more *ErasedTotals) {
	t.Responses += more.Responses
	t.Files += more.Files
	t.Comments += more.Comments
	t.Signatures += more.Signatures
	t.Events += more.Events
	t.Deliveries += more.Deliveries
	t.Attempts += more.Attempts
	t.Notices += more.Notices
	t.Answers += more.Answers
}

// Erased says what a unit removed.
type Erased struct {
	ErasedTotals

	FileIDs []ID // of the files, whose blobs are to be removed
}

// SameEmail reports whether two addresses are one person's: they differ at most in
// the case of ASCII letters. Stores that choose by query must agree with it.
func SameEmail(a, b string) bool { return FoldEmail(a) == FoldEmail(b) }

// FoldEmail returns the text with ASCII letters in lower case, for comparing as
// [SameEmail] does.
func FoldEmail(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// Erasure removes people's data, and what is old. It works in small units with
// pauses between them, so that no request waits for it. It is safe for concurrent
// use, and may be run again after it was cut off: it goes on with what is left.
//
// What can't be removed here is what already left the service: requests to
// webhooks, of which a [Receipt] has the number, and backups.
type Erasure struct{ s *core }

// ErasureOptions changes what an erasure does.
type ErasureOptions struct {
	// DryRun counts what would be removed, and changes nothing, not even the audit
	// trail. Defaults to removing it.
	DryRun bool
	// Progress is called after every unit with what was removed so far. Defaults to
	// nothing.
	Progress func(ErasedTotals)
}

// A Receipt says what was removed, and when. It names nobody.
type Receipt struct {
	ErasedTotals

	ID         ID // also the target of the entries in the audit trail, or in their details
	AccountID  ID
	CampaignID ID        // of responses removed for their age; "" for a person's data
	Before     time.Time // responses made earlier were removed; zero for a person's data
	DryRun     bool      // nothing was removed
	// BlobsLeft counts files whose bytes could not be removed and are left to
	// [Files.Sweep].
	BlobsLeft  int
	StartedAt  time.Time
	FinishedAt time.Time // zero when it did not come to its end
}
