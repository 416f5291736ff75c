package formsvc

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/formsvc/toolkit/blobstore"
)

// A Service is the whole of the domain: its fields are the services by noun.
// It is safe for concurrent use, by any number of processes on one store. It runs
// nothing by itself, and starts no goroutine that outlives a call, or the reader
// that [Files.Open] returned; [Service.Run] does the regular work.
//
// It goes by two things that it remembers. A campaign is remembered in order to
// judge new responses: a yes holds only if the store finds the campaign unchanged
// when it writes, and a no is judged again on a campaign that was just read, so that
// no response is taken or refused on old grounds. A key is remembered for
// [KeyCacheTTL], which is how long another node may go on accepting one that was
// revoked.
type Service struct {
	Accounts   Accounts
	Keys       Keys
	Campaigns  Campaigns
	Responses  Responses
	Files      Files
	Comments   Comments
	Signatures Signatures
	Erasure    Erasure
	Webhooks   Webhooks
	Deliveries Deliveries
	Events     Events
	Notices    Notices
	Quotas     Quotas
	Audits     Audits
	Sessions   Sessions

	core *core
}

// Options changes how a Service works. The zero value is ready for use.
type Options struct {
	// Blobs keeps the bytes of files. It must belong to this store alone, since
	// [Files.Sweep] removes what the store doesn't know; [Files.Claim] sees to that.
	// Defaults to none, so that [Files] is not supported.
	Blobs blobstore.Store
	// MaxFile is how many bytes a file may have. Defaults to [DefaultMaxFile].
	MaxFile int64
	// HashDownloads says whether a whole file that is read is also compared with its
	// SHA-256, which finds out whoever can write to the blob store and makes
	// checksums fit; it takes more processor time than all else. [Files.Verify]
	// always does. Defaults to comparing checksums, which finds every accident.
	HashDownloads bool
	// Workflow says which statuses responses may have. Defaults to any status
	// after any, with "completed" final.
	Workflow *Workflow
	// Now is the clock. Times are cut to milliseconds. Defaults to time.Now.
	Now func() time.Time
	// NewID makes an identifier for a record made at that time. It must return
	// canonical UUIDs of version 7, since lists are ordered by them. Defaults to
	// a generator that never decreases within the Service.
	NewID func(time.Time) ID
	// NewReference makes a reference for a response; when it is taken another
	// one is asked for. It must return 1 to 64 characters of UTF-8 without NUL.
	// Defaults to ten characters that can't be mistaken when read aloud.
	NewReference func() string
	// CheckURL refuses addresses that webhooks must not have, for example those
	// inside the own network; the text of its error is shown to the client. It
	// only tells early: the sender has to check what it connects to in any case.
	// Defaults to allowing every http or https URL.
	CheckURL func(ctx context.Context, url string) error
	// Retention is how long events, with their deliveries and notices, are kept
	// by [Service.Run]; at least an hour, and longer than the webhook retries
	// take. 0 means for ever. Defaults to [DefaultRetention].
	Retention *time.Duration
	// Quota is how many requests a key may make in a window, and likewise each user whom
	// an embedding program has signed in ([Principal.Subject]); 0 means any number.
	// Defaults to [DefaultQuota].
	Quota *int
	// QuotaWindow is how long a window is, in whole seconds, and at most 100 years;
	// windows begin at multiples of it since 1970 in UTC. Defaults to
	// [DefaultQuotaWindow].
	QuotaWindow time.Duration
	// QuotaPerAccount counts the requests of all keys and users of an account together.
	// Defaults to each by itself.
	QuotaPerAccount bool
	// Logger gets the errors of [Service.Run]. Defaults to [slog.Default].
	Logger *slog.Logger
	// Tracer makes a span of every call of an exported method that takes a context, but
	// for [Service.Run] and [Events.Follow], and says which trace events belong to. Defaults to none.
	Tracer Tracer
}

// core is what the services share.
type core struct {
	store   Store
	bound   bool // to a transaction that may be rolled back
	blobs   blobstore.Store
	owned   *atomic.Bool // the blob store was claimed
	maxFile int64
	blocks  *sync.Pool // of *[BlockSize]byte
	// Whether reading compares the hash too.
	hashDownloads bool
	workflow      *Workflow
	now           func() time.Time
	newID         func(time.Time) ID
	newReference  func(time.Time) string
	checkURL      func(context.Context, string) error
	retention     time.Duration
	logger        *slog.Logger
	tracer        Tracer // or nil
	quota         *quotaLedger
	once          *Once                                      // nil unless the call may be repeated
	actor         string                                     // who calls
	refused       []FieldError                               // of the input, see Refusing
	keys          *boundedMap[[sha256.Size]byte, *cachedKey] // seen lately, by the hash of their value
	uses          *boundedMap[ID, KeyUse]                    // of keys, not written yet
	campaigns     *boundedMap[CampaignKey, *Campaign]        // with responses lately; perhaps old ones, see campaignFor
	inFlight      *inFlight
	followers     *followers
	ids           *boundedMap[string, ID] // of accounts, by their names
}

// New returns a Service over the store. It fails when an option contradicts
// itself.
func New(store Store, opts *Options) (*Service, error) {
	if store == nil {
		return nil, errors.New("formsvc: a store is required")
	}
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Workflow == nil {
		o.Workflow = &Workflow{}
	}
	if err := o.Workflow.Check(); err != nil {
		return nil, fmt.Errorf("formsvc: options: %w", err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = new(idGenerator).next
	}
	if o.MaxFile < 0 {
		return nil, errors.New("formsvc: options: MaxFile must not be negative")
	}
	if o.MaxFile == 0 {
		o.MaxFile = DefaultMaxFile
	}
	retention := valueOf(o.Retention, DefaultRetention)
	if retention != 0 && retention < time.Hour {
		return nil, errors.New("formsvc: options: Retention must be at least an hour, or 0")
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	reference := newReference
	if o.NewReference != nil {
		reference = func(time.Time) string { return o.NewReference() }
	}
	quota, err := newQuotaLedger(store, &o)
	if err != nil {
		return nil, fmt.Errorf("formsvc: options: %w", err)
	}
	c := &core{
		store: store, blobs: o.Blobs, owned: new(atomic.Bool), blocks: &sync.Pool{New: newBlock}, maxFile: o.MaxFile, hashDownloads: o.HashDownloads,
		workflow: o.Workflow, newID: o.NewID, newReference: reference, now: func() time.Time { return milliseconds(o.Now()) },
		checkURL: o.CheckURL, retention: retention, logger: o.Logger, quota: quota, tracer: o.Tracer,
		uses: newBoundedMap[ID, KeyUse](keysRemembered), inFlight: new(inFlight), followers: new(followers),
	}
	c.forget()
	return assemble(c), nil
}

// How much is remembered of what was read from the store. Campaigns with more modules
// are read each time.
const (
	keysRemembered      = 10_000
	accountsRemembered  = 10_000
	campaignsRemembered = 1_000
	modulesRemembered   = 100
)

// forget empties what is remembered of the store.
func (c *core) forget() {
	c.keys = newBoundedMap[[sha256.Size]byte, *cachedKey](keysRemembered)
	c.campaigns = newBoundedMap[CampaignKey, *Campaign](campaignsRemembered)
	c.ids = newBoundedMap[string, ID](accountsRemembered)
}

// valueOf returns what an option says, or its default.
func valueOf[T any](option *T, byDefault T) T {
	if option == nil {
		return byDefault
	}
	return *option
}

// With returns the same Service over another store, usually one that is bound
// to a transaction of the caller: what the result writes commits with it. After the
// commit, [Service.Notify] on s spares who waits for events the time until the next poll.
func (s *Service) With(store Store) *Service {
	return s.view(func(c *core) {
		c.store, c.bound = store, true
		// What a transaction reads must not be remembered beyond it.
		c.forget()
	})
}

// Refusing returns a view of the Service for an input with these faults, such as
// members that can't be decoded. What creates, changes or replaces a campaign, a
// response, a comment, a signature or a webhook changes nothing then: it fails with a
// *[ValidationError] that has them first and whatever the rules find wrong besides, but
// for what only follows from them. Where the rules can't be asked it fails otherwise, as
// with [ErrNotFound]. Other methods are as always.
func (s *Service) Refusing(faults []FieldError) *Service {
	return s.view(func(c *core) { c.refused = faults })
}

// faults returns what is known to be wrong with an input before the rules are asked.
func (c *core) faults() ValidationError {
	n := len(c.refused)
	return ValidationError{Fields: c.refused[:n:n], given: n}
}

// view returns a Service that differs from s in what change changes.
func (s *Service) view(change func(*core)) *Service {
	c := *s.core
	change(&c)
	return assemble(&c)
}

// readyTimeout bounds Ready: who asks is a load balancer with little patience.
const readyTimeout = 3 * time.Second

// Ready returns nil when the store and the blob store, if there is one, answer
// within 3 seconds.
func (s *Service) Ready(ctx context.Context) (err error) {
	defer s.core.span(&ctx, "Service.Ready").end(&err)
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	// That there is none is an answer, too.
	if _, err := s.core.store.Identity(ctx); err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("formsvc: store: %w", err)
	}
	if s.core.blobs == nil {
		return nil
	}
	if _, err := s.core.blobs.Stat(ctx, "ready"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("formsvc: blobs: %w", blobError(err))
	}
	return nil
}

func assemble(c *core) *Service {
	return &Service{
		Accounts: Accounts{c}, Keys: Keys{c}, Campaigns: Campaigns{c}, Responses: Responses{c}, Files: Files{c},
		Comments: Comments{c}, Signatures: Signatures{c}, Erasure: Erasure{c},
		Webhooks: Webhooks{c}, Deliveries: Deliveries{c}, Events: Events{c}, Notices: Notices{c},
		Quotas: Quotas{c}, Audits: Audits{c}, Sessions: Sessions{c}, core: c,
	}
}

// milliseconds cuts a time to what clients see of it, so that a time read from
// an answer can be compared with the record's own.
func milliseconds(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Millisecond)
}

// referenceAlphabet leaves out every character that looks or sounds like
// another one of it: 0/O, 1/I, 5/9, 8/A/H, B/C/D/E/G/P/T/V/Z, F/S, J/K, M/N,
// Q/U. Sixteen remain, four bits each.
const referenceAlphabet = "23467FHKLMQRTWXY"

// referenceCycle is how long it takes for the time in references to come round.
const referenceCycle = (1 << 20) * time.Millisecond

// newReference returns ten characters: 20 bits of the time in milliseconds,
// which come round every 17 minutes, then 20 random bits. In the long run all
// 40 are as good as random, so that among a million responses of an account a
// new one is drawn again once in a million times; but what is made at the same
// time lies together in the index of references, which would otherwise write a
// page of its own for every response.
func newReference(now time.Time) string {
	var random [3]byte
	_, _ = rand.Read(random[:]) // never fails since Go 1.24
	bits := uint64(now.UnixMilli())&0xfffff<<20 |
		uint64(random[0])<<12 | uint64(random[1])<<4 | uint64(random[2])>>4
	var b [11]byte
	for i := len(b) - 1; i >= 0; i-- {
		if i == 5 {
			b[i] = '-'
			continue
		}
		b[i] = referenceAlphabet[bits&15]
		bits >>= 4
	}
	return string(b[:])
}
