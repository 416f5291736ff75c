package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

// ResponseInput is what a new response needs.
type ResponseInput struct {
	User     formsvc.User      `json:"user,omitzero"` // zero: without one, if the campaign allows that
	Answers  formsvc.Answers   `json:"responses"`     // see [formsvc.NewAnswers] and [formsvc.Encode]
	Metadata map[string]string `json:"metadata,omitempty"`
}

// A Response is what somebody submitted to a campaign.
type Response struct {
	UUID         string            `json:"uuid"`
	CampaignUUID string            `json:"campaignUuid"`
	Reference    string            `json:"reference"` // for people, unique in the account
	Status       string            `json:"status"`
	User         formsvc.User      `json:"user"`
	Answers      formsvc.Answers   `json:"responses"` // see [formsvc.Decode]
	Metadata     map[string]string `json:"metadata"`
	CreatedAt    time.Time         `json:"createdAt"`
	UpdatedAt    time.Time         `json:"updatedAt"`
	CompletedAt  time.Time         `json:"completedAt"` // zero unless its status is final
	ETag         string            `json:"-"`           // its version, for [IfMatch]; "" in lists
}

func (r *Response) setETag(etag string) { r.ETag = etag }

// A ResponsePatch says what to change in a response. Zero and absent fields stay.
type ResponsePatch struct {
	Status   string                     `json:"status,omitzero"`
	User     UserPatch                  `json:"user,omitzero"`
	Answers  map[string]*webhook.Answer `json:"responses,omitempty"` // nil removes the answer
	Metadata map[string]*string         `json:"metadata,omitempty"`  // nil removes the name
}

// A UserPatch changes the person of a response.
type UserPatch struct {
	Email     *string `json:"email,omitzero"`
	FirstName *string `json:"firstName,omitzero"`
	LastName  *string `json:"lastName,omitzero"`
}

// A ResponseFilter chooses responses of a campaign. Zero fields match every response.
type ResponseFilter struct {
	Status        []string          // any of these
	Email         string            // exactly this address
	Reference     string            // exactly this reference
	CreatedAfter  time.Time         // created later than this
	CreatedBefore time.Time         // created earlier than this
	UpdatedAfter  time.Time         // changed later than this
	Metadata      map[string]string // these values under these names
}

func (f *ResponseFilter) addTo(v url.Values) url.Values {
	set(v, "status", f.Status...)
	set(v, "email", f.Email)
	set(v, "reference", f.Reference)
	setTime(v, "createdAfter", f.CreatedAfter)
	setTime(v, "createdBefore", f.CreatedBefore)
	setTime(v, "updatedAfter", f.UpdatedAfter)
	for name, value := range f.Metadata {
		v.Set("metadata["+name+"]", value)
	}
	return v
}

// ResponseQuery chooses responses of a campaign.
type ResponseQuery struct {
	PageQuery
	ResponseFilter
}

func (q *ResponseQuery) values() url.Values { return q.addTo(q.PageQuery.values()) }

// Responses submits, reads and changes responses.
type Responses struct{ c *Client }

func responses(campaign string) string { return campaigns + segment(campaign) + "/responses" }

func response(campaign, id string) string { return responses(campaign) + segment(id) }

// List returns a page of responses, newest first. nil means the first page of all.
func (s Responses) List(ctx context.Context, campaign string, q *ResponseQuery, opts ...CallOption) (Page[Response], error) {
	return get[Page[Response]](ctx, s.c, responses(campaign), or(q).values(), opts)
}

// All returns all responses that q chooses, page after page. An error ends them.
func (s Responses) All(ctx context.Context, campaign string, q *ResponseQuery, opts ...CallOption) iter.Seq2[Response, error] {
	return all[Response](ctx, s.c, responses(campaign), or(q).values(), opts)
}

// Get returns a response.
func (s Responses) Get(ctx context.Context, campaign, id string, opts ...CallOption) (Response, error) {
	return get[Response](ctx, s.c, response(campaign, id), nil, opts)
}

// Create submits a response.
func (s Responses) Create(ctx context.Context, campaign string, in ResponseInput, opts ...CallOption) (Response, error) {
	return send[Response](ctx, s.c, s.c.newCall(http.MethodPost, responses(campaign), in, opts))
}

// Update changes a response. For a key without responses:read the result has only the identifier, the reference, the
// status, the time and what was sent.
func (s Responses) Update(ctx context.Context, campaign, id string, patch ResponsePatch, opts ...CallOption) (Response, error) {
	return send[Response](ctx, s.c, s.c.newCall(http.MethodPatch, response(campaign, id), patch, opts))
}

// Delete deletes a response with its files.
func (s Responses) Delete(ctx context.Context, campaign, id string, opts ...CallOption) error {
	_, err := s.c.do(ctx, s.c.newCall(http.MethodDelete, response(campaign, id), nil, opts))
	return err
}

// A Comment is a note on a response.
type Comment struct {
	UUID      string    `json:"uuid"`
	Body      string    `json:"body"`
	Author    string    `json:"author"` // the name of the key or person, or ""
	CreatedAt time.Time `json:"createdAt"`
}

// Comments adds and lists the comments on responses.
type Comments struct{ c *Client }

// All returns all comments, page after page. An error ends them.
func (s Comments) All(ctx context.Context, campaign, id string, q *PageQuery, opts ...CallOption) iter.Seq2[Comment, error] {
	return all[Comment](ctx, s.c, response(campaign, id)+"/comments", or(q).values(), opts)
}

// Create adds a comment of 1 to 10,000 characters. Its author is the key.
func (s Comments) Create(ctx context.Context, campaign, id, body string, opts ...CallOption) (Comment, error) {
	in := map[string]string{"body": body}
	return send[Comment](ctx, s.c, s.c.newCall(http.MethodPost, response(campaign, id)+"/comments", in, opts))
}

// SignatureInput is what a new signature needs.
type SignatureInput struct {
	Signer   formsvc.User `json:"signer"`
	FileUUID string       `json:"fileUuid,omitzero"` // the signed file of the response; "" means its answers
	Provider string       `json:"provider,omitzero"` // the signing service
	SignedAt time.Time    `json:"signedAt,omitzero"` // zero: now
}

// Signatures adds and lists the signatures of responses.
type Signatures struct{ c *Client }

// All returns all signatures, page after page. An error ends them.
func (s Signatures) All(ctx context.Context, campaign, id string, q *PageQuery, opts ...CallOption) iter.Seq2[webhook.DocumentSignature, error] {
	return all[webhook.DocumentSignature](ctx, s.c, response(campaign, id)+"/signatures", or(q).values(), opts)
}

// Create records a signature.
func (s Signatures) Create(ctx context.Context, campaign, id string, in SignatureInput, opts ...CallOption) (webhook.DocumentSignature, error) {
	return send[webhook.DocumentSignature](ctx, s.c, s.c.newCall(http.MethodPost, response(campaign, id)+"/signatures", in, opts))
}
