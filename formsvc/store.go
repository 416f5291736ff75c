package formsvc

import (
	"context"
	"crypto/sha256"
	"slices"
	"time"
)

// A Store keeps all data except the bytes of files, which are in a blob store.
//
// Every method that writes is one atomic write. When it returns nil, these are durable together: what it names, what is
// in its [Change], and one delivery of each event for every webhook that listens ([Webhook.Listens]). When it returns
// an error, none of them exists, except with [ErrUnknownOutcome]. If the key of the change's [IdempotencyRecord] is
// taken, also by a concurrent write, the method fails with [ErrRepeated], or with whatever else is wrong. The contract
// has no transactions, so a store may commit many atomic writes together; one that fails must not fail the others.
//
// Every method that touches an account's data takes the account. A record of another account is
// [ErrNotFound], the same as one that doesn't exist.
//
// A method fails with [ErrNotFound] if the record that it reads or changes doesn't exist, and so does
// one that adds a record if there is no such account, or no such record for it to belong to. It fails
// with [ErrConflict] if the identifier of the new record, or another unique value, is taken. A list of
// an unknown account is empty. Limits and unique values also hold for concurrent calls.
//
// Text that is not UTF-8 or has a NUL character is [ErrInvalid] ([CheckText]). Times are truncated
// to microseconds and returned in UTC. An ID that isn't canonical names no record.
//
// A decide function is given the record that is read or written. It may run more than once, and
// must not call the store, whose only writer may be waiting for it. If it returns an error, nothing
// is written and the method returns that error. In an Update method it may change the record, but not
// identifiers, Reference, ResponseCount or CreatedAt; if it doesn't change the Version, the record is
// not written. A method that returns a record which it wrote returns it as stored.
//
// Methods are safe for concurrent use. If the context ends before the write has started, the method
// returns the context's error and has changed nothing. After that it returns the outcome of the
// write. After Close every method fails with [ErrStoreClosed]. A store that can't be used now fails
// with [ErrUnavailable], one whose disk is full with [ErrNoSpace].
//
// Package storagetest tests all of this.
type Store interface {
	AccountStore
	SessionStore
	MemberStore
	CampaignStore
	ResponseStore
	FileStore
	WebhookStore
	EventStore
	QuotaStore
	MaintenanceStore
}

// An AccountStore keeps accounts and their API keys.
type AccountStore interface {
	// CreateAccount adds an account, whose name is unique, with its first keys.
	CreateAccount(ctx context.Context, account Account, keys []Key, change Change) error
	// UpdateAccount changes an account, which has no version and is always written.
	UpdateAccount(ctx context.Context, id ID, decide func(*Account) error) (Account, error)
	// Account returns an account.
	Account(ctx context.Context, id ID) (Account, error)
	// AccountByName returns the account with that exact name.
	AccountByName(ctx context.Context, name string) (Account, error)
	// Accounts returns all accounts by ID.
	Accounts(ctx context.Context) ([]Account, error)
	// CreateKey adds a key, whose hash is unique. It fails with ErrLimit if the account already has
	// change.Limit keys that are neither revoked nor expired at the key's CreatedAt.
	CreateKey(ctx context.Context, key Key, change Change) error
	// KeyByHash returns the key whose value has this SHA-256.
	KeyByHash(ctx context.Context, hash [sha256.Size]byte) (Key, error)
	// Keys returns the account's keys, ordered by ID.
	Keys(ctx context.Context, account ID) ([]Key, error)
	// RevokeKey sets RevokedAt unless it is set already.
	RevokeKey(ctx context.Context, account, id ID, at time.Time, change Change) error
	// UseKeys sets LastUsedAt of keys where the use is later than the stored time. It skips keys that
	// the account doesn't have.
	UseKeys(ctx context.Context, uses []KeyUse) error
}

// A SessionStore keeps the sessions of people who are signed in to the console of accounts, and their sign-in links.
// They are also returned after they have expired, until they are pruned; the caller compares the times.
type SessionStore interface {
	// CreateLink adds a link, whose hash is unique, and so is its code unless that is zero.
	CreateLink(ctx context.Context, link Link, change Change) error
	// RedeemLink removes the link whose token or code has this SHA-256 and adds the session that decide
	// returns for it, whose hash is unique. Two concurrent calls for one link create one session. The
	// session always belongs to the link's account and member.
	RedeemLink(
		ctx context.Context, hash [sha256.Size]byte, decide func(*Link) (Session, Change, error),
	) (Session, error)
	// CreateSession adds a session, whose hash is unique.
	CreateSession(ctx context.Context, session Session, change Change) error
	// UseSession sets LastUsedAt and ExpiresAt of the session whose value has this SHA-256.
	UseSession(ctx context.Context, hash [sha256.Size]byte, used, expires time.Time) error
	// Sessions returns the sessions of a member, ordered by ID. An unknown member has none.
	Sessions(ctx context.Context, key MemberKey) ([]Session, error)
	// SessionByHash returns the session whose value has this SHA-256.
	SessionByHash(ctx context.Context, hash [sha256.Size]byte) (Session, error)
	// EndSession removes the account's session whose value has this SHA-256.
	EndSession(ctx context.Context, account ID, hash [sha256.Size]byte, change Change) error
	// EndAllSessions removes all links and sessions of the account. A link that is redeemed at the same
	// time leaves no session.
	EndAllSessions(ctx context.Context, account ID, change Change) error
}

// A MemberStore keeps the people who sign in to the console of accounts. Their record stays when they are removed.
type MemberStore interface {
	// CreateMember adds a member, if [CheckMember] allows it with change.Limit.
	CreateMember(ctx context.Context, member Member, change Change) error
	// UpdateMember changes a member, if [CheckMember] allows it. It changes removed members, too.
	UpdateMember(ctx context.Context, key MemberKey, decide func(*Member) (Change, error)) (Member, error)
	// Members returns the members that q finds ([MemberQuery.Finds]), ordered by ID, of any account unless q has one.
	Members(ctx context.Context, q MemberQuery) ([]Member, error)
}

// A CampaignStore keeps campaigns.
type CampaignStore interface {
	// CreateCampaign adds a campaign, whose FormToken is unique unless it is "". It fails with ErrLimit if the account already has change.Limit campaigns.
	CreateCampaign(ctx context.Context, campaign Campaign, change Change) error
	// UpdateCampaign changes a campaign. If decide doesn't change the Version, only Views are written.
	UpdateCampaign(ctx context.Context, key CampaignKey, decide func(*Campaign) (Change, error)) (Campaign, error)
	// DeleteCampaign removes a campaign, or fails with ErrCampaignNotEmpty if it has responses. It never leaves a
	// response that is created at the same time without a campaign. A nil decide means no change.
	DeleteCampaign(ctx context.Context, key CampaignKey, decide func(*Campaign) (Change, error)) error
	// Campaign returns a campaign.
	Campaign(ctx context.Context, key CampaignKey) (Campaign, error)
	// CampaignByForm returns the campaign of any account that has this FormToken, which isn't "".
	CampaignByForm(ctx context.Context, token string) (Campaign, error)
	// Campaigns returns a page of an account's campaigns, filtered by [CampaignQuery.Finds].
	Campaigns(ctx context.Context, q CampaignQuery) (Page[Campaign], error)
}

// A ResponseStore keeps responses with their comments and signatures, and the results of idempotent calls.
type ResponseStore interface {
	// CreateResponse adds a response to a campaign and increments the campaign's ResponseCount. The response's ID must
	// not be older than its CreatedAt (to the millisecond): lists by time rely on it. Its reference is unique in the
	// account. It fails with ErrStale if the campaign's version isn't campaignVersion, and with ErrLimit if the account
	// already has change.Limit responses. The result of change.Idempotency is the response, so its Result is nil, and its
	// CreatedAt that of the response. The record stays until the response changes: PruneIdempotency and RepliesOf leave it.
	// If a call of another method with the same key commits at the same time, both may succeed.
	CreateResponse(ctx context.Context, r Response, campaignVersion int64, change Change) error
	// ImportResponses adds the responses to a campaign as CreateResponse does, all in one atomic write, and returns their
	// number. It skips those whose reference is taken in the account, or whose ID is in the campaign. It fails with ErrLimit
	// if the account would have more than limit responses, unless that is 0.
	ImportResponses(ctx context.Context, key CampaignKey, campaignVersion int64, list []NewResponse, limit int) (int, error)
	// UpdateResponse changes a response. If decide doesn't change the Version, the change isn't written either.
	UpdateResponse(ctx context.Context, key ResponseKey, decide func(*Response) (Change, error)) (Response, error)
	// Response returns a response.
	Response(ctx context.Context, key ResponseKey) (Response, error)
	// Responses returns a page of a campaign's responses, or ErrNotFound for an unknown campaign. The
	// total without a filter takes constant time; so does a page chosen by PageQuery.After.
	Responses(ctx context.Context, q ResponseQuery) (Page[Response], error)
	// ResponseCounts returns how many responses of a campaign have each status, without zeros, in constant time.
	ResponseCounts(ctx context.Context, key CampaignKey) (map[string]int64, error)
	// Taken returns how many places with each of the keys are taken in a campaign, without zeros, and with the key "" always. It
	// fails with ErrNotFound for an unknown campaign.
	Taken(ctx context.Context, key CampaignKey, keys []string) (map[string]int64, error)
	// DeleteResponse removes a response with its comments, signatures and files, whose identifiers it
	// returns, and decrements the campaign's ResponseCount. A nil decide means no change. The reference
	// becomes free, and the results of idempotent calls about the response become empty. Events about
	// it stay.
	DeleteResponse(ctx context.Context, key ResponseKey, decide func(*Response) (Change, error)) (files []ID, err error)
	// CreateComment adds a comment to its response.
	CreateComment(ctx context.Context, c Comment, change Change) error
	// Comments returns a page of the comments on a response, or ErrNotFound for an unknown response.
	Comments(ctx context.Context, key ResponseKey, page PageQuery) (Page[Comment], error)
	// CreateSignature adds a signature to its response, which is not changed. decide may set
	// DocumentSHA256; other changes that it makes are not kept.
	CreateSignature(
		ctx context.Context, sig Signature, decide func(*Response, *Signature) (Change, error),
	) (Signature, error)
	// Signatures returns a page of the signatures of a response, or ErrNotFound for an unknown response.
	Signatures(ctx context.Context, key ResponseKey, page PageQuery) (Page[Signature], error)
	// SignaturesBy returns a page of the account's signatures by the signer with that e-mail address
	// ([FoldEmail]), across all responses and without a total.
	SignaturesBy(ctx context.Context, account ID, email string, page PageQuery) (Page[Signature], error)
	// Recall returns the idempotency record of a key of an account if it was created at since or
	// later, with its Response if CreateResponse got it without a Result. It removes an older one.
	Recall(ctx context.Context, account ID, key string, since time.Time) (IdempotencyRecord, error)
}

// A FileStore keeps the metadata of files; their bytes are in a blob store.
type FileStore interface {
	// CreateFile adds a file to its response, which is not changed. It fails with ErrConflict also if
	// the identifier is barred, and with ErrLimit if the files of the account would have more than change.Limit bytes.
	CreateFile(ctx context.Context, f File, decide func(*Response) (Change, error)) error
	// File returns a file.
	File(ctx context.Context, key FileKey) (File, error)
	// Files returns a page of the files of a response, without Blocks, or ErrNotFound for an unknown response.
	Files(ctx context.Context, key ResponseKey, page PageQuery) (Page[File], error)
	// AllFiles returns a page of the files of all accounts, with Blocks and without a total.
	AllFiles(ctx context.Context, page PageQuery) (Page[File], error)
	// UnknownFiles returns the given identifiers that name no file of any account, in the given
	// order. It includes barred identifiers.
	UnknownFiles(ctx context.Context, ids []ID) ([]ID, error)
	// BarFiles bars the given identifiers that name no file of any account: no file can be created with them. It
	// returns them in the given order, including those that were barred before. If a concurrent CreateFile uses one of
	// them, either that call fails or BarFiles doesn't return the identifier.
	BarFiles(ctx context.Context, ids []ID) ([]ID, error)
}

// A WebhookStore keeps webhooks and their deliveries. One that writes to a disk should encrypt secrets and the values of
// headers. SendingSince of a claimed delivery is the time of the claim until the claim is finished, even after its lease
// ended; [Deliveries] clears it then.
type WebhookStore interface {
	// CreateWebhook adds a webhook and returns it with created true. If the account already has webhooks with the same
	// URL, events and campaign, it adds none and returns the oldest of them with created false. decide is given what
	// CreateWebhook returns. It fails with ErrLimit if the account already has limit webhooks.
	CreateWebhook(
		ctx context.Context, webhook Webhook, limit int, decide func(stored *Webhook, created bool) (Change, error),
	) (stored Webhook, created bool, err error)
	// UpdateWebhook changes a webhook. If decide doesn't change the Version, only the change is written.
	UpdateWebhook(ctx context.Context, key WebhookKey, decide func(*Webhook) (Change, error)) (Webhook, error)
	// Webhook returns a webhook.
	Webhook(ctx context.Context, key WebhookKey) (Webhook, error)
	// Webhooks returns the account's webhooks, ordered by ID.
	Webhooks(ctx context.Context, account ID) ([]Webhook, error)
	// DeleteWebhook removes a webhook. Nothing is claimed for it afterwards: only attempts that are
	// already claimed may still be made.
	DeleteWebhook(ctx context.Context, key WebhookKey, change Change) error
	// Deliveries returns a page of a webhook's deliveries with their attempts. An unknown webhook has none.
	Deliveries(ctx context.Context, q DeliveryQuery) (Page[Delivery], error)
	// Delivery returns a delivery with its attempts, or ErrNotFound also if the webhook was deleted.
	Delivery(ctx context.Context, key DeliveryKey) (Delivery, error)
	// Redeliver makes a delivery due at the time at. A finished delivery becomes a replay, which has one attempt and is
	// sent even if the webhook is disabled. A delivery that waits for an attempt stays what it was. It fails with
	// ErrConflict if an attempt is under way, and with ErrNotFound also if the event was pruned.
	Redeliver(ctx context.Context, key DeliveryKey, at time.Time, decide func(*Delivery) (Change, error)) (Delivery, error)
	// RedeliverFailed does the same for failed deliveries of a webhook, and returns their number. It skips those of events with
	// answers of a response that was deleted: all but response.deleted and tests.
	RedeliverFailed(ctx context.Context, q RedeliverQuery, decide func(n int) (Change, error)) (int, error)
	// DueSummaries returns up to limit webhooks of all accounts that aren't disabled and whose [Mailing].NextAt isn't zero and not later than now.
	DueSummaries(ctx context.Context, now time.Time, limit int) ([]Webhook, error)
	// QueueStats returns the backlog of all accounts together at a time. It counts up to limit
	// deliveries, which bounds its cost.
	QueueStats(ctx context.Context, now time.Time, limit int64) (QueueStats, error)
	// Waiting returns how many deliveries of a webhook wait for an attempt or are in one, up to
	// limit, which bounds its cost. An unknown webhook has none.
	Waiting(ctx context.Context, key WebhookKey, limit int64) (int64, error)
}

// An EventStore keeps events, until they are pruned, the notices of permanently failed deliveries, and the audit trail.
// The delivery queue writes a notice in the same atomic write as the failure.
type EventStore interface {
	// Events returns events of an account in commit order, without test events. Events about one
	// response are in the order of its changes. Concurrent changes of different responses may come
	// in either order, but an event never becomes visible before a position that was already
	// returned. A reader that continues from [EventPage.Next] therefore misses none, however late a
	// transaction commits. Events fails with ErrInvalid if q.After isn't such a position.
	Events(ctx context.Context, q EventQuery) (EventPage, error)
	// AllEvents returns the events of all accounts in one order, in the same way. q has no AccountID.
	// The positions are valid for AllEvents only.
	AllEvents(ctx context.Context, q EventQuery) (EventPage, error)
	// Event returns an event, which may be a test event.
	Event(ctx context.Context, account, id ID) (Event, error)
	// RecentEvents returns the newest matching events, without test events, newest first: at most as many as the limit
	// and DefaultEventBytes allow (EventQuery.MaxBytes). It doesn't wait for running transactions whose events will
	// come before. Its cost doesn't depend on the number of events: if thousands of other events or test events are
	// newer, it may return fewer events than match. An unknown campaign has none.
	RecentEvents(ctx context.Context, q RecentQuery) ([]Event, error)
	// EventsAbout returns the oldest events about a response, without test events, in the order of
	// Events and with the limits of RecentEvents, or ErrNotFound for an unknown response.
	EventsAbout(ctx context.Context, key ResponseKey, limit int) ([]Event, error)
	// Notices returns a page of an account's notices. An unknown webhook has none.
	Notices(ctx context.Context, q NoticeQuery) (Page[Notice], error)
	// ClaimDigests leases up to limit digests until now+lease. A webhook has a digest if it has failures that no digest
	// has reported, and if its last digest was finished at now-every or earlier, or never.
	ClaimDigests(ctx context.Context, now time.Time, every, lease time.Duration, limit int) ([]Digest, error)
	// FinishDigest records that a digest was sent at that time. It fails with ErrStale if another
	// claim has the lease now, or if the digest was finished already.
	FinishDigest(ctx context.Context, d Digest, at time.Time) error
	// Commit writes a change by itself, without a record. Audit entries are never changed, and only removed with their account. It
	// fails with ErrInvalid if the change has events.
	Commit(ctx context.Context, change Change) error
	// Audit returns a page of an account's audit entries.
	Audit(ctx context.Context, q AuditQuery) (Page[AuditEntry], error)
}

// A QuotaStore counts requests in windows of time, which begin at multiples of their length since 1970 in UTC.
type QuotaStore interface {
	// AddQuota adds requests to windows, and returns what each of them has counted then, in the order of the list. The
	// list has each window at most once. It fails with ErrNotFound if a subject isn't a valid ID.
	AddQuota(ctx context.Context, list []QuotaCount) ([]int, error)
	// QuotaUse returns the subject's windows that began at since or later and have requests, oldest first.
	QuotaUse(ctx context.Context, subject ID, since time.Time) ([]QuotaUse, error)
}

// A MaintenanceStore removes data, and has an identity. The Prune methods delete about limit rows of each table in one
// atomic write. They return the number of deleted rows; 0 means that nothing is left to delete.
type MaintenanceStore interface {
	// PruneEvents deletes events created before that time with their deliveries, attempts and
	// notices, and the remains of deleted webhooks.
	PruneEvents(ctx context.Context, before time.Time, limit int) (int, error)
	// PruneIdempotency deletes idempotency records created before that time, oldest first.
	PruneIdempotency(ctx context.Context, before time.Time, limit int) (int, error)
	// PruneQuota deletes windows of quotas that began before that time.
	PruneQuota(ctx context.Context, before time.Time, limit int) (int, error)
	// PruneSessions deletes links and sessions that expired before that time.
	PruneSessions(ctx context.Context, before time.Time, limit int) (int, error)
	// Erase removes what q names, of which callers name few records at a time. It returns what it
	// removed: nothing for an unknown account.
	Erase(ctx context.Context, q EraseQuery) (Erased, error)
	// DeleteAccount removes an account's keys, quotas, links, sessions, members and webhooks. Unless it has campaigns, it then
	// removes about limit of its other records, and at last the account, which it reports. What others create meanwhile
	// is removed by the next call, or fails with ErrNotFound. It leaves the remains of webhooks to PruneEvents.
	DeleteAccount(ctx context.Context, account ID, limit int) (Erased, error)
	// Scrub overwrites removed data that may still be readable in a log of the database. It doesn't
	// wait long for readers. Stores without such a log do nothing.
	Scrub(ctx context.Context) error
	// Identity returns the ID of this data. It is created with the store, never changes, and is part of backups and
	// copies. Two stores over the same data return the same ID; so does a store that is bound to a transaction.
	Identity(ctx context.Context) (ID, error)
	// Notify wakes everything that waits for deliveries, as a commit with new deliveries does. A store that is bound to
	// a transaction doesn't see the commit, so the host application calls Notify.
	Notify()
}

// A Change is what commits together with a record. Events, audit entries and
// idempotency records are written only as part of a Change.
type Change struct {
	Events []Event
	// PerFile returns one more event for each file of the response, which come after the first of Events, oldest file first.
	// Only UpdateResponse calls it, within its atomic write, with a file without Blocks. It is nil for no such events.
	PerFile func(*File) Event
	// Audit says who did it. It is nil for operations that aren't audited.
	Audit *AuditEntry
	// Idempotency keeps the result of the call for an idempotent retry. It is nil unless the caller
	// asked for it ([Call]).
	Idempotency *IdempotencyRecord
	// Limit is how many campaigns, responses, usable keys, members or bytes of files the account may have with the new one. It is 0 for
	// no limit, and for all calls but CreateKey, CreateCampaign, CreateMember, CreateResponse and CreateFile.
	Limit int
	// Places are those that a new or changed response takes, in place of the ones that it has. If one is full, the method
	// fails with its error. nil leaves them as they are, which costs nothing. Only CreateResponse and UpdateResponse have it.
	Places []Place
	// CampaignVersion is the version of the campaign that a changed response was checked against, or 0 for any. UpdateResponse
	// fails with ErrStale if the campaign has another one.
	CampaignVersion int64
	// Recount replaces the places that are stored of all responses of a campaign. nil leaves them. Only UpdateCampaign has it.
	Recount *Recount
}

// AddPerFile adds the events of PerFile for the files of the response.
func (c *Change) AddPerFile(files []File) {
	events := make([]Event, len(files))
	for i := range files {
		events[i] = c.PerFile(&files[i])
	}
	c.Events = slices.Insert(slices.Clone(c.Events), min(1, len(c.Events)), events...)
}

func (c *Change) add(e Event) { c.Events = append(c.Events, e) }

// unlessHeld adds an event about a response that isn't held.
func (c *Change) unlessHeld(r *Response, e Event) {
	if r.Held == NotHeld {
		c.add(e)
	}
}
