package formsvc

import "time"

// Internals for the tests in package formsvc_test.
var (
	AppendTime    = appendTime
	CleanFileName = cleanFileName
	BlobOwner     = blobOwner
	EncodeID      = encodeID
	NewReference  = newReference
	ValidEmail    = validEmail
)

// Hashing returns the channel that is held while a password is hashed.
func (s *Service) Hashing() chan struct{} { return s.core.hashing }

// Retries is the largest number of attempts to write a new response.
const Retries = retries

// LargestCached is the largest size of a cached campaign.
const LargestCached = largestRemembered

// NewIDGenerator returns the default of [Options.NewID].
func NewIDGenerator() func(time.Time) ID { return new(idGenerator).next }
