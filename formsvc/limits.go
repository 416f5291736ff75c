package formsvc

import "time"

// Limits of what clients send and receive.
const (
	DefaultMaxFile    = 100_000_000 // bytes of a file, unless [Options.MaxFile] says otherwise
	MaxComment        = 10_000      // characters of a comment
	MaxAuthor         = 200         // characters of its author
	MaxWebhooks       = 50          // webhooks of an account
	MaxHeaders        = 10          // request headers of a webhook's own
	MaxPayload        = 1_000_000   // bytes of the body that a webhook gets
	MaxIdempotencyKey = 255         // bytes of an idempotency key
)

// Limits of what is read at once.
const (
	DefaultLimit = 50   // records on a page
	MaxLimit     = 1000 // and at most
	// DefaultEventBytes is how many bytes of payloads a page of events has at most,
	// so that a page of the largest ones fits into memory. A single payload may be
	// larger.
	DefaultEventBytes = 4 << 20
	MaxRecent         = 100       // events of [Events.Recent]
	MaxSampleParts    = 96        // parts of [Deliveries.Sample]
	MaxSampleEach     = 50        // and deliveries in each
	MaxWaiting        = 10_000    // where [Deliveries.Waiting] ends counting
	MaxCounted        = 1_000_000 // where [QueueStats.Pending] does, so that it never costs more
)

// How long things last.
const (
	DefaultRetention = 30 * 24 * time.Hour // events, unless [Options.Retention] says otherwise
	DefaultGrace     = 24 * time.Hour      // an old secret after [Webhooks.Rotate], as is usual
	MaxGrace         = 30 * 24 * time.Hour // and at most
	LinkTTL          = 15 * time.Minute    // a [Link]
	SessionTTL       = 12 * time.Hour      // a [Session], from when it began, whatever is done in it
	// IdempotencyTTL is for how long the answer to a call is remembered. Afterwards
	// its key is new.
	IdempotencyTTL = 24 * time.Hour
	// KeyCacheTTL is how long a node may go on accepting a key that was revoked on
	// another node or by another process. 2 seconds are promised to clients.
	KeyCacheTTL = time.Second
	// SweepAge is how old a blob must be before [Files.Sweep] removes it: a day is
	// more than any upload takes.
	SweepAge       = 24 * time.Hour
	DigestInterval = time.Hour // between two digests of one webhook's failures, at least
)

// How nodes and stores share the work.
const (
	// BlockSize is how many bytes of a file are checked together ([File.Blocks]).
	BlockSize = 256 << 10
	// QuotaShare bounds what a store grants for requests to come: of what a window
	// has left, one part in so many.
	QuotaShare = 16
	QuotaBlock = 1024            // requests of a key that a node holds at most beyond those that are being made
	QuotaIdle  = 2 * time.Second // how long a key rests before a node returns what it holds for it
)
