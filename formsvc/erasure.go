package formsvc

import (
	"strings"
	"time"
)

// Erasing says what a store removes in one atomic write. Records that don't exist in the account
// are skipped.
type Erasing struct {
	AccountID ID
	DryRun    bool // whether to count what is there and change nothing
	// Responses are removed with all that [ErasedTotals] counts, and from their campaigns'
	// ResponseCount. Their references become free.
	Responses []ResponseKey
	// Signatures are removed; the events about them stay.
	Signatures []ID
	// Events are removed with their deliveries, attempts and notices. Attempts under way continue,
	// and leave no record.
	Events []ID
	// AnswersOf are responses. Their [IdempotencyRecord]s lose the reply's body if it contains the
	// text AnswersWith, ignoring the case of ASCII letters.
	AnswersOf   []ID
	AnswersWith string
	// Refusals is whether the account's [IdempotencyRecord]s of refusals, which are about no response,
	// lose the body in the same way.
	Refusals bool
}

// ErasedTotals counts what was removed.
type ErasedTotals struct {
	Responses  int
	Files      int
	Comments   int
	Signatures int
	Events     int
	Deliveries int // of the events, to any webhook
	Attempts   int // at these deliveries
	Notices    int // of their permanent failures
	// Answers counts replies kept for idempotent retries. Their records stay, without the body and
	// with status 410.
	Answers int
}

// IsZero reports whether nothing was removed.
func (t *ErasedTotals) IsZero() bool { return *t == ErasedTotals{} }

// Add adds the counts of more.
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

// Erased says what an atomic write removed.
type Erased struct {
	ErasedTotals

	FileIDs []ID // of the files, whose blobs the caller removes
}

// SameEmail reports whether two addresses belong to one person: they are equal when the case of
// ASCII letters is ignored. Stores that filter by query must agree with it.
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

// Erasure removes people's data and old responses, and exports people's data. It removes in small
// atomic writes with pauses, so that no request waits for it. It is safe for concurrent use. If it
// was interrupted, run it again: it continues with what is left.
//
// It can't remove what has already left the service: requests to webhooks, whose number is in the
// [Receipt], and backups.
type Erasure struct{ s *core }

// ErasureOptions are the optional settings of an erasure.
type ErasureOptions struct {
	// DryRun counts what would be removed, and changes nothing, not even the audit
	// trail. Defaults to removing it.
	DryRun bool
	// Progress is called after every atomic write that removed something, with what was removed so
	// far. Defaults to nothing.
	Progress func(ErasedTotals)
}

// A Receipt says what was removed or exported, and when. It contains no personal data.
type Receipt struct {
	ErasedTotals

	ID         ID // also the target of the entries in the audit trail, or in their details
	AccountID  ID
	CampaignID ID        // of responses removed by age; "" for a person's data
	Before     time.Time // responses created earlier were removed; zero for a person's data
	DryRun     bool      // nothing was removed
	// BlobsLeft counts files whose bytes could not be removed ([Files.Sweep] removes them) or exported.
	BlobsLeft  int
	StartedAt  time.Time
	FinishedAt time.Time // zero if it did not finish
}
