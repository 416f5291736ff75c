package formsvc

import (
	"crypto/sha256"
	"time"
)

// A Signature says that somebody signed a response, or a file of it. It never
// changes.
type Signature struct {
	ID         ID
	AccountID  ID
	CampaignID ID
	ResponseID ID
	Signer     User
	FileID     ID     // the file that was signed; "" when it was the answers
	Provider   string // who took the signature, at most 200 characters; "" for nobody in particular
	// DocumentSHA256 is the hash of what was signed: of the file's content, or of
	// [CanonicalAnswers].
	DocumentSHA256 [sha256.Size]byte
	SignedAt       time.Time
	CreatedAt      time.Time
}

// SignatureQuery chooses signatures of one response.
type SignatureQuery struct {
	AccountID  ID
	CampaignID ID
	ResponseID ID
	Page       PageQuery
}

// Signatures takes and lists signatures. It is safe for concurrent use.
type Signatures struct{ s *core }
