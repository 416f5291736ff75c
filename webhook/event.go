package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// An EventType names what happened. The service may add types: a receiver should reply with 200 to
// unknown ones and ignore them.
type EventType string

// The event types that the service's documentation lists, under Events.
const (
	// ResponseCreated means that a new response was submitted.
	ResponseCreated EventType = "response.created"
	// ResponseUpdated means that a response was modified; [Data.Changes] says
	// where.
	ResponseUpdated EventType = "response.updated"
	// ResponseStatusChanged means that the status of a response changed, from
	// [Data.PreviousStatus] to the one in [Data.Response].
	ResponseStatusChanged EventType = "response.status_changed"
	// ResponseCompleted means that a response was finalized.
	ResponseCompleted EventType = "response.completed"
	// SignatureCompleted means that a document was signed; [Data.Signature]
	// says which and by whom.
	SignatureCompleted EventType = "signature.completed"
	// FileUploaded means that a file was uploaded; it is [Data.File].
	FileUploaded EventType = "file.uploaded"
)

// ResponseDeleted means that a response was deleted. It is opt-in: a webhook gets it only if its
// events name it. It carries identifiers alone: the UUID of the campaign, and the UUID and
// reference of the response.
const ResponseDeleted EventType = "response.deleted"

// EventTypes returns the event types of the service's documentation, in its order. They are what
// "all" means when a webhook is created.
func EventTypes() []EventType {
	return []EventType{
		ResponseCreated, ResponseUpdated, ResponseStatusChanged, ResponseCompleted, SignatureCompleted, FileUploaded,
	}
}

// KnownEventTypes returns all event types: those of [EventTypes], then the opt-in ones.
func KnownEventTypes() []EventType {
	return append(EventTypes(), ResponseDeleted)
}

// An Event is the payload of a delivery. Every attempt of every delivery of an event has the same
// bytes, so it shows the state when the event happened, not the current state.
//
// Times are in UTC with milliseconds. Marshaling an Event as JSON gives a valid payload for tests,
// but not the bytes that it was parsed from.
type Event struct {
	// ID identifies the event (a UUID).
	ID string `json:"id,omitempty"`
	// Type is what happened.
	Type EventType `json:"event"`
	// Timestamp is when it happened.
	Timestamp time.Time `json:"timestamp,omitzero"`
	// Data describes what the event happened to.
	Data Data `json:"data"`
	// Test is true for a test event: nothing happened, and its response doesn't exist.
	Test bool `json:"test,omitempty"`
}

// Data is what an [Event] happened to. Campaign and Response are set for every type, the other
// fields as they say. With [ResponseDeleted], Campaign has only its UUID, and Response only its UUID
// and Reference.
type Data struct {
	// Campaign is the campaign of the response.
	Campaign Campaign `json:"campaign"`
	// Response is the response after the event.
	Response Response `json:"response"`
	// PreviousStatus is the status before the event. It is set for [ResponseStatusChanged] and
	// [ResponseCompleted].
	PreviousStatus string `json:"previousStatus,omitempty"`
	// Changes are the fields of the response that changed, as JSON Pointers (RFC 6901). They are
	// set for [ResponseUpdated].
	Changes []string `json:"changes,omitempty"`
	// File is the file of [FileUploaded], otherwise nil.
	File *File `json:"file,omitempty"`
	// Signature is the signature of [SignatureCompleted], otherwise nil.
	Signature *DocumentSignature `json:"signature,omitempty"`
	// Truncated is true if the payload would have exceeded 1 MB. Then the response has no
	// Responses: read them over the API.
	Truncated bool `json:"truncated,omitempty"`
}

// A Campaign describes a form campaign in a payload.
type Campaign struct {
	// UUID identifies the campaign.
	UUID string `json:"uuid"`
	// Title is its title.
	Title string `json:"title,omitempty"`
}

// A Response is what was submitted to a campaign.
type Response struct {
	// UUID identifies the response.
	UUID string `json:"uuid"`
	// Reference identifies the response for people, within the account.
	Reference string `json:"reference"`
	// CampaignUUID identifies its campaign.
	CampaignUUID string `json:"campaignUuid,omitempty"`
	// Status is its status, for example "pending". Other statuses may exist.
	Status string `json:"status,omitempty"`
	// User is the person who submitted it.
	User User `json:"user,omitzero"`
	// Responses are the answers by module name. It is nil if the payload leaves them out: see
	// [Data.Truncated].
	Responses map[string]Answer `json:"responses,omitzero"`
	// CreatedAt is when it was submitted.
	CreatedAt time.Time `json:"createdAt,omitzero"`
	// UpdatedAt is when it last changed.
	UpdatedAt time.Time `json:"updatedAt,omitzero"`
	// CompletedAt is when it was finalized, or the zero time.
	CompletedAt time.Time `json:"completedAt,omitzero"`
}

// Value returns the first value of a module's answer, or "" if there is none. Responses has all
// values, and distinguishes an empty answer from none.
func (r Response) Value(module string) string {
	if values := r.Responses[module].Value; len(values) > 0 {
		return values[0]
	}
	return ""
}

// A User is the person who submitted a response.
type User struct {
	// Email is the e-mail address.
	Email string `json:"email"`
	// FirstName may be empty.
	FirstName string `json:"firstName"`
	// LastName may be empty.
	LastName string `json:"lastName"`
}

// An Answer is the answer to one module of a form.
type Answer struct {
	// Value has the values in order. It is empty if the module was left empty.
	Value []string `json:"value"`
}

// A File is a file that was attached to a response. Its bytes are read over the
// API.
type File struct {
	// UUID identifies the file.
	UUID string `json:"uuid"`
	// Name is the file name that the uploader gave. Don't use it as a path.
	Name string `json:"name"`
	// ContentType is the media type that the uploader gave.
	ContentType string `json:"contentType"`
	// Size is the length in bytes.
	Size int64 `json:"size"`
	// SHA256 is the SHA-256 of the bytes in hexadecimal.
	SHA256 string `json:"sha256"`
	// Module is the name of the module that the file belongs to, or empty.
	Module string `json:"module,omitempty"`
	// ResponseUUID identifies the response it is attached to.
	ResponseUUID string `json:"responseUuid"`
	// CampaignUUID identifies the response's campaign.
	CampaignUUID string `json:"campaignUuid"`
	// CreatedAt is when it was uploaded.
	CreatedAt time.Time `json:"createdAt,omitzero"`
}

// A DocumentSignature is the record of a signed document. It isn't the signature of the request.
type DocumentSignature struct {
	// UUID identifies the record.
	UUID string `json:"uuid"`
	// Signer is the person who signed.
	Signer User `json:"signer"`
	// FileUUID identifies the signed file. It is empty if the answers of the response were signed.
	FileUUID string `json:"fileUuid,omitempty"`
	// Provider names the signing service, or is empty.
	Provider string `json:"provider,omitempty"`
	// DocumentSHA256 is the SHA-256 in hexadecimal of what was signed.
	DocumentSHA256 string `json:"documentSha256"`
	// SignedAt is when it was signed.
	SignedAt time.Time `json:"signedAt,omitzero"`
	// CreatedAt is when the record was created.
	CreatedAt time.Time `json:"createdAt,omitzero"`
}

// ParseEvent parses an event from the body of a delivery. Verify the body first: ParseEvent
// doesn't.
//
// It ignores unknown fields and accepts unknown types, so that additions don't break a receiver.
// Missing fields stay empty, but the event's type is required. It fails with [ErrMalformedEvent],
// whose text says where the body is wrong but contains nothing of it.
func ParseEvent(body []byte) (Event, error) {
	var e Event
	if err := json.Unmarshal(body, &e); err != nil {
		return Event{}, fmt.Errorf("%w: %s", ErrMalformedEvent, describe(err))
	}
	if e.Type == "" {
		return Event{}, fmt.Errorf("%w: it has no event type", ErrMalformedEvent)
	}
	return e, nil
}

// describe says what is wrong with a body without its values, which can be respondents' data and
// occur in the text of err.
func describe(err error) string {
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("not JSON at byte %d", e.Offset)
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Sprintf("wrong type at byte %d", e.Offset)
	}
	return "malformed time"
}

// identify returns the type and the identifier of the event in body, or empty ones if it isn't an
// event.
func identify(body []byte) (EventType, string) {
	var e struct {
		ID   string    `json:"id"`
		Type EventType `json:"event"`
	}
	if json.Unmarshal(body, &e) != nil || e.Type == "" {
		return "", ""
	}
	return e.Type, e.ID
}
