package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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
	return slices.DeleteFunc(KnownEventTypes(), func(t EventType) bool { return t == ResponseDeleted })
}

// KnownEventTypes returns all event types: those of [EventTypes] and the opt-in ones. New ones are added at the end, since
// stores keep an event type by its place here.
func KnownEventTypes() []EventType {
	return []EventType{
		ResponseCreated, ResponseUpdated, ResponseStatusChanged, ResponseCompleted, SignatureCompleted, FileUploaded, ResponseDeleted,
	}
}

// An Event is the payload of a delivery. Every attempt of every delivery of an event has the same
// bytes, so it shows the state when the event happened, not the current state.
//
// Times are in UTC with milliseconds. Marshaling an Event as JSON gives a valid payload for tests,
// but not the bytes that it was parsed from.
type Event struct {
	ID        string    `json:"id,omitempty"`       // identifies the event (a UUID)
	Type      EventType `json:"event"`              // what happened
	Timestamp time.Time `json:"timestamp,omitzero"` // when
	Data      Data      `json:"data"`               // what it happened to
	Test      bool      `json:"test,omitempty"`     // a test event: nothing happened, and its response doesn't exist
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
	// Actor is who did it.
	Actor Actor `json:"actor,omitzero"`
	// Truncated is true if the payload would have exceeded 1 MB. Then the response has no
	// Responses: read them over the API.
	Truncated bool `json:"truncated,omitempty"`
}

// An Actor is who made a change.
type Actor struct {
	Type ActorType `json:"type"`
	ID   string    `json:"id,omitempty"`   // of the API key, or of the person at the host application
	Name string    `json:"name,omitempty"` // of the API key, person or program
}

// ActorType says what kind of actor made a change.
type ActorType string

// The types of actors.
const (
	ActorKey     ActorType = "key"     // a program with an API key
	ActorPerson  ActorType = "person"  // somebody who is signed in
	ActorVisitor ActorType = "visitor" // somebody who submitted a public form
	ActorSystem  ActorType = "system"  // the service, or a program that embeds it
)

// A Campaign describes a form campaign in a payload.
type Campaign struct {
	UUID  string `json:"uuid"`
	Title string `json:"title,omitempty"`
}

// A Response is what was submitted to a campaign.
type Response struct {
	UUID         string `json:"uuid"`
	Reference    string `json:"reference"` // identifies the response for people, within the account
	CampaignUUID string `json:"campaignUuid,omitempty"`
	Status       string `json:"status,omitempty"` // for example "pending"; other statuses may exist
	User         User   `json:"user,omitzero"`    // the person who submitted it
	// Responses are the answers by module name. It is nil if the payload leaves them out: see
	// [Data.Truncated].
	Responses   map[string]Answer `json:"responses,omitzero"`
	CreatedAt   time.Time         `json:"createdAt,omitzero"`   // when it was submitted
	UpdatedAt   time.Time         `json:"updatedAt,omitzero"`   // when it last changed
	CompletedAt time.Time         `json:"completedAt,omitzero"` // when it was finalized, or the zero time
	Metadata    map[string]string `json:"metadata,omitzero"`    // what programs keep with it
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
	Email     string `json:"email"`
	FirstName string `json:"firstName"` // may be empty, as may LastName
	LastName  string `json:"lastName"`
}

// An Answer is the answer to one module of a form.
type Answer struct {
	Value []string `json:"value"` // in order; empty if the module was left empty
}

// A File is a file that was attached to a response. Its bytes are read over the
// API.
type File struct {
	UUID         string    `json:"uuid"`
	Name         string    `json:"name"`             // given by the uploader: don't use it as a path
	ContentType  string    `json:"contentType"`      // the media type that the uploader gave
	Size         int64     `json:"size"`             // in bytes
	SHA256       string    `json:"sha256"`           // of the bytes, in hexadecimal
	Module       string    `json:"module,omitempty"` // the module that the file belongs to, or empty
	ResponseUUID string    `json:"responseUuid"`     // of the response it is attached to
	CampaignUUID string    `json:"campaignUuid"`     // of the response's campaign
	CreatedAt    time.Time `json:"createdAt,omitzero"`
}

// A DocumentSignature is the record of a signed document. It isn't the signature of the request.
type DocumentSignature struct {
	UUID           string    `json:"uuid"`
	Signer         User      `json:"signer"`             // the person who signed
	FileUUID       string    `json:"fileUuid,omitempty"` // of the signed file; empty if the response's answers were signed
	Provider       string    `json:"provider,omitempty"` // the signing service, or empty
	DocumentSHA256 string    `json:"documentSha256"`     // of what was signed, in hexadecimal
	SignedAt       time.Time `json:"signedAt,omitzero"`
	CreatedAt      time.Time `json:"createdAt,omitzero"` // when the record was created
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
