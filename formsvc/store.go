package formsvc

import (
	"context"
	"crypto/sha256"
	"time"
)

// A Store keeps everything but the bytes of files.
//
// Every method that writes is one atomic unit: what it names, what is in its
// [Change] and one delivery of each event for every webhook that listens
// ([Webhook.Listens]) are durable together when it returns nil, and none of
// them exists when it returns an error, [ErrUnknownOutcome] apart. A change with
// an [IdempotencyRecord] whose key is taken fails its unit, also when both are under
// way at once: with [ErrRepeated] unless something else is wrong with it, too. There is no
// transaction in the contract, so a store may carry many units in one physical
// commit; a unit that fails never fails its neighbours.
//
// Every method that touches an account's data takes the account. A record of
// another account is [ErrNotFound], like one that doesn't exist.
//
// Text that is not UTF-8 or has a NUL character is [ErrInvalid] ([CheckText]).
// Times are cut to microseconds and come back in UTC. What is no canonical ID
// names no record.
//
// A function that decides a unit is given what is written or read, may run more
// than once, and must not call the store: the store may have one writer, which is
// waiting for it. Its error ends the unit and is returned.
//
// Methods are safe for concurrent use. One whose context ends while its unit
// waits returns the context's error and has changed nothing; once the unit is
// under way the method returns what became of it. After Close every method
// fails with [ErrStoreClosed]. A store that can't answer fails with
// [ErrUnavailable], one whose disk is full with [ErrNoSpace].
//
// Package storagetest holds every store to this.
type Store interface {
	AccountStore
	KeyStore
	CampaignStore
	ResponseStore
	ReviewStore
	FileStore
	WebhookStore
	DeliveryStore
	EventStore
	JournalStore
	QuotaStore
	SessionStore
	MaintenanceStore
}

// An AccountStore keeps accounts.
type AccountStore interface {
	// CreateAccount adds an account with its first keys. ErrConflict: the name, or
	// a key's hash, is taken.
	CreateAccount(ctx context.Context, account Account, keys []Key, change Change) error
	// UpdateAccount reads an account, has decide change it, and writes it: one
	// unit. decide may run more than once; its error ends the unit and is
	// returned. It must not touch ID or CreatedAt. The result is the account as
	// stored. ErrNotFound. ErrConflict: the name is taken.
	UpdateAccount(ctx context.Context, id ID, decide func(*Account) error) (Account, error)
	// Account returns an account. ErrNotFound.
	Account(ctx context.Context, id ID) (Account, error)
	// AccountByName returns the account of that exact name. ErrNotFound.
	AccountByName(ctx context.Context, name string) (Account, error)
	// Accounts returns all accounts by ID.
	Accounts(ctx context.Context) ([]Account, error)
}

// A KeyStore keeps API keys.
type KeyStore interface {
	// CreateKey adds a key. ErrNotFound: no such account. ErrConflict: the hash is taken.
	CreateKey(ctx context.Context, key Key, change Change) error
	// KeyByHash returns the key whose value has this SHA-256. ErrNotFound.
	KeyByHash(ctx context.Context, hash [sha256.Size]byte) (Key, error)
	// Keys returns the account's keys by ID. An unknown account has none.
	Keys(ctx context.Context, account ID) ([]Key, error)
	// RevokeKey sets RevokedAt, with the change, unless it is set. ErrNotFound.
	RevokeKey(ctx context.Context, account, id ID, at time.Time, change Change) error
	// UseKeys sets LastUsedAt of keys to the time of the use where that is later than
	// what is stored: one unit. Keys that the account doesn't have are left out.
	UseKeys(ctx context.Context, uses []KeyUse) error
}

// A CampaignStore keeps campaigns.
type CampaignStore interface {
	// CreateCampaign adds a campaign. ErrNotFound: no such account.
	CreateCampaign(ctx context.Context, campaign Campaign, change Change) error
	// UpdateCampaign reads a campaign, has decide change it, and writes it: one
	// unit. decide may run more than once; its error ends the unit and is
	// returned. When it leaves Version as it was, nothing is written. It must
	// not touch ID, AccountID, ResponseCount or CreatedAt. The result is the
	// campaign as stored. ErrNotFound.
	UpdateCampaign(ctx context.Context, key CampaignKey, decide func(*Campaign) error) (Campaign, error)
	// Campaign returns a campaign. ErrNotFound.
	Campaign(ctx context.Context, key CampaignKey) (Campaign, error)
	// Campaigns returns a page of an account's campaigns, of those that
	// [CampaignQuery.Finds] lets through. An unknown account has none.
	Campaigns(ctx context.Context, q CampaignQuery) (Page[Campaign], error)
}

// A ResponseStore keeps responses. It is also where events come from.
type ResponseStore interface {
	// CreateResponse adds a response to a campaign of that version and counts it
	// there. The response's ID must not be older than its CreatedAt (to the
	// millisecond): lists by time rely on it. ErrNotFound: no such campaign. ErrStale: the campaign has another
	// version. ErrConflict: the reference is taken in the account.
	CreateResponse(ctx context.Context, r Response, campaignVersion int64, change Change) error
	// UpdateResponse reads a response, has decide change it, and writes it with
	// the change: one unit. decide may run more than once; its error ends the
	// unit and is returned. When it leaves Version as it was, nothing is
	// written. It must not touch the identifiers, Reference or CreatedAt. The
	// result is the response as stored. ErrNotFound.
	UpdateResponse(ctx context.Context, key ResponseKey, decide func(*Response) (Change, error)) (Response, error)
	// Response returns a response. ErrNotFound.
	Response(ctx context.Context, key ResponseKey) (Response, error)
	// Responses returns a page of a campaign's responses. ErrNotFound: no such
	// campaign. The total without a filter costs the same for any number of
	// responses; so does a page chosen by PageQuery.After.
	Responses(ctx context.Context, q ResponseQuery) (Page[Response], error)
	// DeleteResponse removes a response with its comments, signatures and files, of
	// which it returns the identifiers, and counts it no more in its campaign: one
	// unit. Its reference may be given again. Events about it stay. ErrNotFound.
	DeleteResponse(ctx context.Context, key ResponseKey) (files []ID, err error)
}

// A FileStore keeps what is known of files; their bytes are in a blob store.
type FileStore interface {
	// CreateFile adds a file to its response, with the change that decide returns
	// for the response as it is then: one unit. decide may run more than once; its
	// error ends the unit and is returned. The response is not changed. ErrNotFound:
	// no such response. ErrConflict: the identifier is taken or barred.
	CreateFile(ctx context.Context, f File, decide func(*Response) (Change, error)) error
	// File returns a file. ErrNotFound.
	File(ctx context.Context, key FileKey) (File, error)
	// Files returns a page of the files of a response, without Blocks.
	// ErrNotFound: no such response. With AllAccounts it returns the files of all
	// accounts, oldest first, with Blocks and without a total.
	Files(ctx context.Context, q FileQuery) (Page[File], error)
	// UnknownFiles returns those of the identifiers that name no file of any
	// account, in their order; also those that are barred.
	UnknownFiles(ctx context.Context, ids []ID) ([]ID, error)
	// BarFiles makes sure that those of the identifiers that name no file of any
	// account never will, and returns them, in their order; also those that were
	// barred before. A CreateFile of one of them that is not finished yet either
	// fails or has its identifier left out here.
	BarFiles(ctx context.Context, ids []ID) ([]ID, error)
}

// A ReviewStore keeps comments on responses, and signatures of them.
type ReviewStore interface {
	// CreateComment adds a comment to its response, with the change. ErrNotFound:
	// no such response. ErrConflict: the identifier is taken.
	CreateComment(ctx context.Context, c Comment, change Change) error
	// Comments returns a page of the comments on a response. ErrNotFound: no such
	// response.
	Comments(ctx context.Context, q CommentQuery) (Page[Comment], error)
	// CreateSignature adds a signature to its response, with the change that decide
	// returns for the response as it is then: one unit. decide may set
	// DocumentSHA256; what else it changes is not kept. It may run more than once; its
	// error ends the unit and is returned. The response is not changed. The result is
	// the signature as stored. ErrNotFound: no such response. ErrConflict: the
	// identifier is taken.
	CreateSignature(
		ctx context.Context, sig Signature, decide func(*Response, *Signature) (Change, error),
	) (Signature, error)
	// Signatures returns a page of the signatures of a response. ErrNotFound: no
	// such response. With an Email it returns those of an account whose signer has
	// that address ([SameEmail]), on all its responses and without a total; an unknown
	// account has none.
	Signatures(ctx context.Context, q SignatureQuery) (Page[Signature], error)
}

// A WebhookStore keeps webhooks. A store that keeps data on a disk should keep
// their secrets and the values of their headers encrypted there.
type WebhookStore interface {
	// CreateWebhook adds a webhook and returns it with created true. When the
	// account has one with the same URL, events and campaign it changes nothing
	// and returns that one, the oldest, with created false, also when both are
	// made at once. decide is given what it returns and says what else is in the
	// unit. ErrNotFound: no such account. ErrLimit: the account has limit
	// webhooks already, also when several are made at once.
	CreateWebhook(
		ctx context.Context, webhook Webhook, limit int, decide func(stored *Webhook, created bool) (Change, error),
	) (stored Webhook, created bool, err error)
	// UpdateWebhook reads a webhook, has decide change it, and writes it with the
	// change: one unit. When decide leaves Version as it was, only the change is
	// written. It must not touch the identifiers or CreatedAt. The result is the
	// webhook as stored. ErrNotFound.
	UpdateWebhook(ctx context.Context, key WebhookKey, decide func(*Webhook) (Change, error)) (Webhook, error)
	// Webhook returns a webhook. ErrNotFound.
	Webhook(ctx context.Context, key WebhookKey) (Webhook, error)
	// Webhooks returns the account's webhooks by ID. An unknown account has none.
	Webhooks(ctx context.Context, account ID) ([]Webhook, error)
	// DeleteWebhook removes a webhook; nothing is claimed for it afterwards, so
	// that at most the attempts already claimed are made. ErrNotFound.
	DeleteWebhook(ctx context.Context, key WebhookKey, change Change) error
}

// A DeliveryStore keeps what was sent to webhooks and is to be sent again. A delivery
// that is claimed has the time of the claim as SendingSince until the claim is finished,
// also when its lease has ended; [Deliveries] takes that back.
type DeliveryStore interface {
	// Deliveries returns a page of a webhook's deliveries with their attempts.
	// An unknown webhook has none.
	Deliveries(ctx context.Context, q DeliveryQuery) (Page[Delivery], error)
	// Delivery returns a delivery with its attempts. ErrNotFound, also when its
	// webhook was deleted.
	Delivery(ctx context.Context, key DeliveryKey) (Delivery, error)
	// Redeliver makes a delivery due at the time at: one that is done as a replay,
	// which has one attempt and goes out although the webhook may be disabled;
	// one that waits for an attempt keeps what it was. ErrConflict: an attempt
	// is under way. ErrNotFound: also when its event was pruned.
	Redeliver(ctx context.Context, key DeliveryKey, at time.Time, decide func(*Delivery) (Change, error)) (Delivery, error)
	// RedeliverFailed does the same to failed deliveries of a webhook, and
	// returns to how many. ErrNotFound.
	RedeliverFailed(ctx context.Context, q RedeliverQuery, decide func(n int) (Change, error)) (int, error)
	// CreateTest keeps a test event and one delivery of it to that webhook, as a
	// replay that is due at the event's time: one unit. The event's AccountID is
	// that of the key. ErrNotFound.
	CreateTest(ctx context.Context, key WebhookKey, event Event, decide func(*Delivery) (Change, error)) (Delivery, error)
	// QueueStats returns how much is waiting, at a bounded cost: for all accounts
	// together or, without OldestDue, for one webhook. An unknown webhook has nothing.
	QueueStats(ctx context.Context, q QueueQuery) (QueueStats, error)
}

// An EventStore keeps the events of the last weeks, and the notices of final
// failures, which the delivery queue writes in the same unit as the failure.
type EventStore interface {
	// Events returns events of an account, test events apart, in the order in which
	// they were committed. Events about one response are in the order of its changes.
	// Of two changes that overlap in time and are about different responses, either may
	// be first, but events that become visible later always come later: a reader that
	// goes on from [EventPage.Next] misses none, however late its transaction
	// committed. An unknown account has none. With AllAccounts it returns the events of
	// all accounts in the same way, and positions that are good for such queries only.
	Events(ctx context.Context, q EventQuery) (EventPage, error)
	// Event returns an event; it may be a test. ErrNotFound.
	Event(ctx context.Context, account, id ID) (Event, error)
	// RecentEvents returns the newest events that are asked for, test events apart, at
	// most as many as the limit and DefaultEventBytes allow (EventQuery.MaxBytes), in
	// the reverse of the order of Events, without waiting for any that may still come
	// before. Its cost doesn't depend on how many events there are: where thousands of
	// others or of test events are newer it may find fewer than there are. An unknown
	// account or campaign has none.
	RecentEvents(ctx context.Context, q RecentQuery) ([]Event, error)
	// EventsAbout returns the oldest events about a response, test events apart, in
	// the order of Events and under the same bounds as RecentEvents. ErrNotFound: no
	// such response.
	EventsAbout(ctx context.Context, key ResponseKey, limit int) ([]Event, error)
	// Notices returns a page of an account's notices. An unknown account or
	// webhook has none.
	Notices(ctx context.Context, q NoticeQuery) (Page[Notice], error)
	// ClaimDigests leases, until now+lease, at most limit digests of webhooks
	// that have failures which no digest told of and whose last digest was
	// finished at now-every or earlier, or never.
	ClaimDigests(ctx context.Context, now time.Time, every, lease time.Duration, limit int) ([]Digest, error)
	// FinishDigest tells that a digest was sent at that time. A lease that passed
	// on, or a digest that was finished already, is ErrStale.
	FinishDigest(ctx context.Context, d Digest, at time.Time) error
}

// A JournalStore keeps who did what, which nothing changes or removes, and the answers
// to calls that may be repeated.
type JournalStore interface {
	// Note commits a change that belongs to no other unit. ErrNotFound: the audit entry
	// is of no account. ErrConflict: its identifier is taken. ErrRepeated: the key of the
	// idempotency record is. ErrInvalid: there are events.
	Note(ctx context.Context, change Change) error
	// Recall returns the idempotency record of a key of an account if it was made at
	// since or later. An older one is removed. ErrNotFound.
	Recall(ctx context.Context, account ID, key string, since time.Time) (IdempotencyRecord, error)
	// Audit returns a page of an account's audit entries. An unknown account has none.
	Audit(ctx context.Context, q AuditQuery) (Page[AuditEntry], error)
}

// A QuotaStore counts requests in windows of time, which are aligned to the UTC
// clock: they begin at multiples of their length since 1970.
type QuotaStore interface {
	// TakeQuota counts requests in advance in the window of the subject that is
	// now. It grants q.Need requests, or as many as the window has left, and then
	// at most q.Spare more, but of what is left no more than a sixteenth, so that
	// several who take come to the end together. Whoever takes at the same time
	// can't be granted the same requests. Stores that several machines share use
	// their own clock instead of q.Now.
	TakeQuota(ctx context.Context, q QuotaQuery) (QuotaGrant, error)
	// ReturnQuota uncounts requests that were granted and not used.
	ReturnQuota(ctx context.Context, list []QuotaReturn) error
	// QuotaUse returns the windows of a subject that began at since or later and
	// have a request, oldest first.
	QuotaUse(ctx context.Context, subject ID, since time.Time) ([]QuotaUse, error)
}

// A SessionStore keeps who is signed in to the settings of accounts, and the links
// that people sign in with. It returns what is over as well, until that is pruned:
// the caller has the clock.
type SessionStore interface {
	// CreateLink adds a link, with the change. ErrNotFound: no such account.
	// ErrConflict: the identifier or the hash is taken.
	CreateLink(ctx context.Context, link Link, change Change) error
	// RedeemLink removes the link whose token has this SHA-256 and adds the session
	// that decide makes of it, with the change: one unit, so that a link that is
	// redeemed twice at once gives one session. decide may run more than once; its
	// error ends the unit, which keeps the link, and is returned. The session is of
	// the link's account, whatever decide says. The result is the session as stored.
	// ErrNotFound. ErrConflict: the session's identifier or hash is taken.
	RedeemLink(
		ctx context.Context, hash [sha256.Size]byte, decide func(*Link) (Session, Change, error),
	) (Session, error)
	// SessionByHash returns the session whose value has this SHA-256. ErrNotFound.
	SessionByHash(ctx context.Context, hash [sha256.Size]byte) (Session, error)
	// EndSessions removes the session with that hash, or without one all links and
	// sessions of the account, with the change: one unit; a link that is redeemed at the
	// same time gives no session that stays. ErrNotFound: the account has no such
	// session, or there is no such account.
	EndSessions(ctx context.Context, q SessionQuery, change Change) error
}

// A MaintenanceStore removes what is old or what has to go, and knows which data it
// keeps.
type MaintenanceStore interface {
	// Prune deletes what is older than the time: about limit rows of each table in one
	// unit. It returns how many rows it deleted; 0 means that nothing is left to delete.
	Prune(ctx context.Context, what Prunable, before time.Time, limit int) (int, error)
	// Erase removes what e says, with the change, in one unit, so it is given few
	// records at a time. It returns what was there to remove. With DryRun it changes
	// nothing. ErrInvalid: AnswersWith is no text.
	Erase(ctx context.Context, e Erasing, change Change) (Erased, error)
	// Scrub overwrites what was removed and may still be readable in a log of the
	// database. It doesn't wait long for a reader. Stores without such a log do nothing.
	Scrub(ctx context.Context) error
	// Identity returns what tells this data from all other: an ID that was made with the
	// store, never changes, and goes with the data into its backups and copies. Two stores
	// over the same data have the same one, and so has a store that is bound to a
	// transaction. ErrNotFound: the store has none yet, since it was not set up by this
	// release.
	Identity(ctx context.Context) (ID, error)
	// Notify wakes all that wait for deliveries to send, as a commit with new ones does.
	// A store that is bound to a transaction can't do so when it commits; its host does.
	Notify()
}

// Prunable says what [MaintenanceStore.Prune] deletes.
type Prunable int

// What Prune deletes.
const (
	// PruneEvents are events, the deliveries of such events, their attempts and
	// notices, and what is left of deleted webhooks.
	PruneEvents      Prunable = iota + 1
	PruneIdempotency          // idempotency records, oldest first
	PruneQuota                // windows of quotas, by when they began
	PruneSessions             // links and sessions, by when they expired
)

// A Change is what commits together with a record. Nothing else makes events, and
// what is written beside records is written by it.
type Change struct {
	Events []Event
	// Audit says who did it. Nil for what is not audited.
	Audit *AuditEntry
	// Idempotency keeps the answer to the call for when it is repeated. Nil unless
	// the caller asked for it ([Service.Once]).
	Idempotency *IdempotencyRecord
}

func (c *Change) add(e Event) { c.Events = append(c.Events, e) }
