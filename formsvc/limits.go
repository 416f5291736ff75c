package formsvc

import (
	"context"
	"time"
)

// Limits of requests and payloads.
const (
	DefaultMaxKeys      = 100         // keys of an account, unless [Options.MaxKeys] says otherwise
	DefaultMaxCampaigns = 10_000      // campaigns of an account, unless [Options.MaxCampaigns] says otherwise
	DefaultMaxFile      = 100_000_000 // bytes of a file, unless [Options.MaxFile] says otherwise
	MaxAnswersSize      = 4 << 20     // bytes of a response's answers, as [Answers.JSON]
	MaxComment          = 10_000      // characters of a comment
	MaxAuthor           = 200         // characters of its author
	MaxWebhooks         = 50          // webhooks of an account
	MaxMembers          = 1000        // members of an account
	MaxHeaders          = 10          // custom headers of a webhook
	MaxPayload          = 1_000_000   // bytes of the body that a webhook gets
	MaxIdempotencyKey   = 255         // bytes of an idempotency key
)

// Limits of a single read.
const (
	DefaultLimit = 50   // records on a page
	MaxLimit     = 1000 // upper limit
	// DefaultEventBytes limits the payloads of a page of events, in bytes, so that a page of large
	// events fits into memory. A single payload may be larger.
	DefaultEventBytes = 4 << 20
	MaxRecent         = 100       // events of [Events.Recent]
	MaxSampleParts    = 96        // parts of [Deliveries.Sample]
	MaxSampleEach     = 50        // deliveries in each part
	MaxWaiting        = 10_000    // [Deliveries.Waiting] counts up to here
	MaxCounted        = 1_000_000 // [QueueStats.Pending] counts up to here, which limits its cost
)

// Limits are those of an account. In each, 0 means that of the [Options], and a negative number means no limit.
type Limits struct {
	Campaigns int // as in [Options].MaxCampaigns
	Keys      int // as in [Options].MaxKeys
	Stored    int // bytes, as in [Options].MaxStored
	Responses int // as in [Options].MaxResponses
	Quota     int // as in [Options].Quota
}

// limits returns the limits of an account, in which 0 means none.
func (o *Options) limits(ctx context.Context, account ID) (l Limits, err error) {
	if o.Limits != nil {
		l, err = o.Limits(ctx, account)
	}
	return Limits{
		limit(l.Campaigns, o.MaxCampaigns), limit(l.Keys, o.MaxKeys), limit(l.Stored, o.MaxStored), limit(l.Responses, o.MaxResponses),
		limit(l.Quota, o.Quota),
	}, err
}

// How long things last.
const (
	DefaultRetention = 30 * 24 * time.Hour // events, unless [Options.Retention] says otherwise
	DefaultGrace     = 24 * time.Hour      // how long the old secret signs after [Webhooks.Rotate]
	MaxGrace         = 30 * 24 * time.Hour // upper limit
	LinkTTL          = 15 * time.Minute    // a [Link]
	InvitationTTL    = 7 * 24 * time.Hour  // the [Link] of a person who is invited
	SessionTTL       = 12 * time.Hour      // a [Session] of an account's operator, from its start; using it doesn't extend it
	SessionIdleTTL   = 24 * time.Hour      // a [Session] of a member, from its last use
	SessionMaxTTL    = 30 * 24 * time.Hour // a [Session] of a member, from its start
	// IdempotencyTTL is how long the reply to a call is stored. Afterwards its key can be used again.
	IdempotencyTTL = 24 * time.Hour
	// KeyCacheTTL is how long a node may go on accepting a key that was revoked on another node or
	// by another process. Clients are promised 2 seconds.
	KeyCacheTTL = time.Second
	// SweepAge is the age from which [Files.Sweep] removes a blob: a day is longer than any upload.
	SweepAge       = 24 * time.Hour
	DigestInterval = time.Hour // shortest time between two digests of a webhook
)

// BlockSize is how many bytes of a file have a common checksum ([File.Blocks]).
const BlockSize = 256 << 10
