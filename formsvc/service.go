package formsvc

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/webhook"
)

// A Service is the entry point of the domain; each field is the service of one kind of record. It
// caches keys for [KeyCacheTTL], and campaigns: a new response is accepted only if the store finds the
// cached campaign unchanged when it writes, and refused only after a check against the stored one.
type Service struct {
	Accounts   Accounts
	Keys       Keys
	Campaigns  Campaigns
	Responses  Responses
	Files      Files
	Comments   Comments
	Signatures Signatures
	Webhooks   Webhooks
	Deliveries Deliveries
	Events     Events
	Notices    Notices
	Quotas     Quotas
	Audits     Audits
	Sessions   Sessions
	Members    Members

	core *core
}

// Options configures a Service. The zero value is ready for use.
type Options struct {
	// Blobs keeps the bytes of files. It must belong to this store alone, since [Files.Sweep] removes blobs that the
	// store doesn't know; [Files.Claim] checks that. Defaults to none: then [Files] isn't supported.
	Blobs blobstore.Store
	// MaxFile is the largest size of a file in bytes. Defaults to [DefaultMaxFile].
	MaxFile int64
	// HashDownloads also compares a file's SHA-256 when the whole file is read. This detects tampering by anyone who
	// can write to the blob store; it takes most of a download's processor time. [Files.Verify] always compares it.
	// Defaults to comparing checksums only, which detects accidental damage.
	HashDownloads bool
	// Formats are kinds of answers of the host's own, by the name that a [Module] has as its Format: 1 to 40 lower-case letters,
	// digits, - and _. Defaults to none.
	Formats map[string]Format
	// Languages are those that a [Form] may have beside [FormLanguages]: those of the [Theme] of its page. Defaults to none.
	Languages []string
	// Workflows are those that a campaign can name as its Workflow. Defaults to none.
	Workflows map[string]*Workflow
	// Workflow says which statuses responses may have. Defaults to any status after any, with "completed" final.
	Workflow *Workflow
	// Now is the clock. Times are truncated to milliseconds. Defaults to time.Now.
	Now func() time.Time
	// NewID returns an identifier for a record that is created at that time. It must return canonical UUIDs of version
	// 7 whose time is at most an hour ahead, since lists are ordered by them. Defaults to a generator whose identifiers
	// decrease only if the clock is set back by more than an hour.
	NewID func(time.Time) ID
	// NewReference returns a reference for a response; if the reference is taken, it is called again. It must return 1
	// to 64 characters of UTF-8 without NUL. Defaults to ten characters that aren't confused when read aloud.
	NewReference func() string
	// CheckResponse is the host's rule for responses, after those of the campaign: before is nil for a new one, and after is
	// what will be written, also if it has faults already. A *[ValidationError] adds faults to those, which forms show at their
	// fields; a *[Refusal] is for everything else; other errors are internal. It runs for the API, forms, the console, imports,
	// [Responses.Check] and [Service.With] alike: concurrently, outside of the store's transactions, and again if the record
	// changed meanwhile. It must change neither campaign nor before. Defaults to none.
	CheckResponse func(ctx context.Context, campaign *Campaign, before, after *Response) error
	// CheckURL refuses URLs that webhooks must not have, for example those in the internal network;
	// the text of its error is shown to the client. It only gives early feedback: the sender must
	// check the address it connects to as well. Defaults to allowing every http or https URL.
	CheckURL func(ctx context.Context, url string) error
	// Retention is how long events, with their deliveries and notices, are kept before [Service.Run] deletes them: at
	// least an hour, and longer than the webhook retries take. Negative means forever. Defaults to [DefaultRetention].
	Retention time.Duration
	// MaxKeys is how many keys an account may have that are neither revoked nor expired: each has a
	// quota of its own. Negative means no limit. Defaults to [DefaultMaxKeys].
	MaxKeys int
	// MaxCampaigns is how many campaigns an account may have. Negative means no limit. Defaults to
	// [DefaultMaxCampaigns].
	MaxCampaigns int
	// MaxStored is how many bytes the files of an account may have together. Negative means no limit. Defaults to no limit.
	MaxStored int
	// MaxResponses is how many responses an account may have, with any status. Negative means no limit. Defaults to no limit.
	MaxResponses int
	// Limits returns the limits of an account, instead of those in these Options. It is called for every request that counts,
	// and for every write that has a limit, concurrently and outside of transactions; an error fails the call. Defaults to none.
	Limits func(ctx context.Context, account ID) (Limits, error)
	// Quota is how many requests a key may make in a window, and likewise each user whom a host application has signed
	// in ([Principal.Subject]). Negative means no limit. Defaults to [DefaultQuota].
	Quota int
	// QuotaWindow is the length of a window, in whole seconds, at most 100 years. Windows begin at
	// multiples of it since 1970 in UTC. Defaults to [DefaultQuotaWindow].
	QuotaWindow time.Duration
	// QuotaPerAccount counts the requests of all keys and users of an account together. Defaults to
	// counting each separately.
	QuotaPerAccount bool
	// MailsPerAddress is how many mails an address gets on a day (UTC) from all forms of an account, unless it confirmed that
	// it wants them. Negative means no limit. Defaults to [DefaultMailsPerAddress].
	MailsPerAddress int
	// MailsPerHour is how many such mails an account sends in an hour, and how many questions whether to get mails; more wait for
	// the next. Negative means no limit. Defaults to [DefaultMailsPerHour].
	MailsPerHour int
	// Logger gets the errors of [Service.Run]. Defaults to [slog.Default].
	Logger *slog.Logger
	// TraceParent returns the span in a context as the header traceparent of W3C Trace Context
	// (version 00) has it, or "". Events keep it. It is called concurrently and must not block;
	// texts in another form are ignored. Defaults to none. Package otelformsvc has one for OpenTelemetry.
	TraceParent func(context.Context) string

	drawing chan struct{} // held while a picture is decoded, which takes megabytes
}

// core is what the services share.
type core struct {
	*Options // with defaults; a limit of 0 means none

	store        Store
	bound        bool         // whether the store is bound to a transaction, which may be rolled back
	owned        *atomic.Bool // whether the blob store was claimed
	now          func() time.Time
	newReference func(time.Time) string
	quota        *quotaCounter
	once         *oneCall                                   // nil unless the call is idempotent
	actor        Actor                                      // of changes
	byMember     bool                                       // whether it is a member
	hashing      chan struct{}                              // held while a password is hashed
	refused      []FieldError                               // faults of the input, see Call
	keys         *boundedMap[[sha256.Size]byte, *cachedKey] // cached, by the hash of their value
	uses         *boundedMap[ID, KeyUse]                    // not written yet
	campaigns    *boundedMap[CampaignKey, *Campaign]        // cached, perhaps outdated: see campaignFor
	asking       chan struct{}                              // held while the blob store is asked whether it is ready
	inFlight     *sync.Map                                  // of inFlightKey
	followers    *sync.Map                                  // of *follower
	ids          *boundedMap[string, cachedID]              // of accounts, by name
}

// New returns a Service over the store. It fails if an option is invalid.
func New(store Store, opts *Options) (*Service, error) {
	if store == nil {
		return nil, errors.New("formsvc: a store is required")
	}
	var o Options
	if opts != nil {
		o = *opts
	}
	o.drawing = make(chan struct{}, 1)
	o.Workflow, o.Logger = cmp.Or(o.Workflow, &Workflow{}), cmp.Or(o.Logger, slog.Default())
	if err := cmp.Or(o.Workflow.Check(), o.checkWorkflows(), o.checkFormats()); err != nil {
		return nil, fmt.Errorf("formsvc: options: %w", err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = new(idGenerator).next
	}
	if o.MaxFile = cmp.Or(o.MaxFile, DefaultMaxFile); o.MaxFile < 0 {
		return nil, errors.New("formsvc: options: MaxFile must not be negative")
	}
	o.Retention, o.Quota = limit(o.Retention, DefaultRetention), limit(o.Quota, DefaultQuota)
	o.MaxKeys, o.MaxCampaigns, o.MaxStored = limit(o.MaxKeys, DefaultMaxKeys), limit(o.MaxCampaigns, DefaultMaxCampaigns), max(o.MaxStored, 0)
	o.MailsPerAddress, o.MailsPerHour = limit(o.MailsPerAddress, DefaultMailsPerAddress), limit(o.MailsPerHour, DefaultMailsPerHour)
	if o.Retention != 0 && o.Retention < time.Hour {
		return nil, errors.New("formsvc: options: Retention must be at least an hour, or negative for none")
	}
	reference := newReference
	if o.NewReference != nil {
		reference = func(time.Time) string { return o.NewReference() }
	}
	quota, err := newQuotaCounter(store, &o)
	if err != nil {
		return nil, fmt.Errorf("formsvc: options: %w", err)
	}
	c := &core{
		Options: &o, store: store, owned: new(atomic.Bool), newReference: reference,
		now: func() time.Time { return milliseconds(o.Now()) }, quota: quota,
		uses: newBoundedMap[ID, KeyUse](keysRemembered), asking: make(chan struct{}, 1), inFlight: new(sync.Map), followers: new(sync.Map),
		hashing: make(chan struct{}, max(1, min(runtime.GOMAXPROCS(0)/2, 4))), // a processor stays for others
	}
	c.forget()
	return assemble(c), nil
}

// Sizes of the caches. Campaigns of more than largestRemembered bytes are not cached, so that those
// of one account don't replace everybody else's.
const (
	keysRemembered      = 10_000
	accountsRemembered  = 10_000
	campaignsRemembered = 16 << 20 // bytes
	largestRemembered   = 64 << 10
)

// forget empties the caches of the store's records.
func (c *core) forget() {
	c.keys = newBoundedMap[[sha256.Size]byte, *cachedKey](keysRemembered)
	c.campaigns = newBoundedMap[CampaignKey, *Campaign](campaignsRemembered)
	c.ids = newBoundedMap[string, cachedID](accountsRemembered)
}

// limit returns the limit that an option sets, or 0 for none.
func limit[T int | time.Duration](option, byDefault T) T { return max(cmp.Or(option, byDefault), 0) }

// Now returns the time by [Options].Now.
func (s *Service) Now() time.Time { return s.core.now() }

// With returns the same Service over another store, usually one that is bound to a transaction of
// the caller: what the result writes commits with that transaction. After the commit, call
// [Service.Notify] on s, so that followers and the delivery engine don't wait for their next poll.
func (s *Service) With(store Store) *Service {
	return s.view(func(c *core) {
		c.store, c.bound = store, true
		// What a transaction reads must not be cached beyond it.
		c.forget()
	})
}

// An Actor is who makes a change. It is [webhook.Actor], since receivers need it too.
type Actor = webhook.Actor

// As returns the same Service for changes by that actor, who is named in the audit trail and in events (data.actor). A host
// application names the signed-in user. Without it, and without a type, the actor is [webhook.ActorSystem]. Of each text, what is
// invalid or exceeds 200 bytes is left out.
func (s *Service) As(actor Actor) *Service {
	actor.Type = cmp.Or(actor.Type, webhook.ActorSystem)
	actor.ID, actor.Name = actorText(actor.ID), actorText(actor.Name)
	return s.view(func(c *core) { c.actor, c.byMember = actor, false })
}

// AsMember does the same for a member. In the audit trail they have no name, but "person " and their identifier.
func (s *Service) AsMember(m *Member) *Service {
	actor := Actor{Type: webhook.ActorPerson, ID: string(m.ID), Name: m.Name}
	return s.view(func(c *core) { c.actor, c.byMember = actor, true })
}

// maxActor is the largest length of the texts of an actor in bytes.
const maxActor = 200

func actorText(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s[:min(len(s), maxActor)], "\x00", ""), "")
}

// faults returns the faults that were found in an input before the rules are checked.
func (c *core) faults() ValidationError {
	return ValidationError{Fields: slices.Clip(c.refused), host: c.Options}
}

// view returns a copy of s to which change has been applied.
func (s *Service) view(change func(*core)) *Service {
	c := *s.core
	change(&c)
	return assemble(&c)
}

func assemble(c *core) *Service {
	return &Service{
		Accounts: Accounts{c}, Keys: Keys{c}, Campaigns: Campaigns{c}, Responses: Responses{c}, Files: Files{c},
		Comments: Comments{c}, Signatures: Signatures{c},
		Webhooks: Webhooks{c}, Deliveries: Deliveries{c}, Events: Events{c}, Notices: Notices{c},
		Quotas: Quotas{c.quota}, Audits: Audits{c}, Sessions: Sessions{c}, Members: Members{c}, core: c,
	}
}

// milliseconds truncates a time to the precision that clients see, so that a time from an HTTP
// response equals the record's own.
func milliseconds(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Millisecond)
}

// referenceAlphabet leaves out characters that look or sound alike: 0/O, 1/I, 5/9, 8/A/H,
// B/C/D/E/G/P/T/V/Z, F/S, J/K, M/N, Q/U. Sixteen remain, four bits each.
const referenceAlphabet = "23467FHKLMQRTWXY"

// referenceCycle is how long it takes until the time in references repeats.
const referenceCycle = (1 << 20) * time.Millisecond

// newReference returns ten characters: 20 bits of the time in milliseconds, which repeat every 17
// minutes, then 20 random bits. In the long run all 40 bits are as good as random: in an account
// with a million responses, one new reference in a million must be drawn again. References of the
// same time are adjacent in the index, which would otherwise write another page for every response.
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
