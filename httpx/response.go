package httpx

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/wire"
)

func (c *call) responseKey() formsvc.ResponseKey {
	return formsvc.ResponseKey{AccountID: c.who.AccountID, CampaignID: c.ids[0], ID: c.ids[1]}
}

// responseTag returns the ETag of a response.
func responseTag(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }

func (h *Handler) listResponses(c *call) error {
	return serveList(c, pageParams+" "+filterParams, func(q *listQuery) (formsvc.Page[formsvc.Response], error) {
		return h.svc.Responses.List(c.ctx(), formsvc.ResponseQuery{
			AccountID: c.who.AccountID, CampaignID: c.ids[0], Filter: q.filter, Page: q.page,
		})
	}, func(b []byte, x *formsvc.Response) ([]byte, formsvc.ID) {
		return x.AppendJSON(b), x.ID
	})
}

func (h *Handler) createResponse(c *call) error {
	in, err := c.body.ResponseInput(false)
	if err != nil {
		return err
	}
	r, err := once(c, func(svc *formsvc.Service) (formsvc.Response, error) {
		return svc.Responses.Create(c.ctx(), formsvc.CampaignKey{AccountID: c.who.AccountID, ID: c.ids[0]}, in)
	})
	if err != nil {
		return c.body.WithoutPerson(err)
	}
	c.setHeader("Etag", responseTag(r.Version))
	c.setHeader("Location", h.location(c, r.ID))
	c.out = r.AppendJSON(c.out)
	return c.sendDone(http.StatusCreated)
}

func (h *Handler) getResponse(c *call) error {
	r, err := h.svc.Responses.Get(c.ctx(), c.responseKey())
	if err != nil {
		return err
	}
	c.out = r.AppendJSON(c.out)
	return c.sendRecord(responseTag(r.Version))
}

func (h *Handler) updateResponse(c *call) error {
	patch, err := c.body.ResponsePatch()
	if err != nil {
		return err
	}
	patch.IfVersion, err = c.ifVersion(false, (*Handler).responseVersion)
	if err != nil {
		return err
	}
	r, err := once(c, func(svc *formsvc.Service) (formsvc.Response, error) {
		return svc.Responses.Update(c.ctx(), c.responseKey(), patch)
	})
	if err != nil {
		return c.unreadable(err, &patch)
	}
	c.acceptPatch()
	if c.who.May(formsvc.ResponsesRead) {
		c.out = r.AppendJSON(c.out)
	} else {
		c.out = appendUpdated(c.out, &r, &patch)
	}
	return c.sendRecord(responseTag(r.Version))
}

func (h *Handler) deleteResponse(c *call) error {
	version, err := c.ifVersion(false, (*Handler).responseVersion)
	if err != nil {
		return err
	}
	return c.sendNoContent(h.service(c).Responses.Delete(c.ctx(), c.responseKey(), &formsvc.DeleteOptions{IfVersion: version}))
}

func (h *Handler) responseVersion(c *call) (int64, error) {
	r, err := h.svc.Responses.Get(c.ctx(), c.responseKey())
	return r.Version, err
}

// appendUpdated appends what a client without responses:read gets of the response that it changed: what tells it apart,
// its status and version, and of its content what the client sent.
func appendUpdated(b []byte, r *formsvc.Response, patch *formsvc.ResponsePatch) []byte {
	var shown struct {
		ID        formsvc.ID        `json:"uuid"`
		Reference string            `json:"reference"`
		Status    string            `json:"status"`
		User      map[string]string `json:"user,omitempty"`
		Answers   jsontext.Value    `json:"responses,omitzero"`
		Metadata  map[string]string `json:"metadata,omitzero"`
		UpdatedAt time.Time         `json:"updatedAt"`
	}
	shown.ID, shown.Reference, shown.Status, shown.UpdatedAt = r.ID, r.Reference, r.Status, r.UpdatedAt
	shown.User = map[string]string{"email": r.User.Email, "firstName": r.User.FirstName, "lastName": r.User.LastName}
	for name, sent := range map[string]*string{"email": patch.Email, "firstName": patch.FirstName, "lastName": patch.LastName} {
		if sent == nil {
			delete(shown.User, name)
		}
	}
	var answers []formsvc.Answer
	for _, a := range patch.Answers {
		if !a.Remove {
			answers = append(answers, a.Answer)
		}
	}
	if len(patch.Answers) > 0 {
		shown.Answers = jsontext.Value(formsvc.NewAnswers(answers...).JSON())
	}
	if len(patch.Metadata) > 0 {
		shown.Metadata = r.Metadata.Map()
		maps.DeleteFunc(shown.Metadata, func(name, _ string) bool { return patch.Metadata[name] == nil })
	}
	return wire.AppendReply(b, shown)
}

// unreadable returns err as a client without responses:read may see it: faults of answers that it didn't send, which
// would name stored ones, become one fault that names none. The first faults, as many as given, are the body's own.
func (c *call) unreadable(err error, patch *formsvc.ResponsePatch) error {
	invalid, ok := errors.AsType[*formsvc.ValidationError](err)
	if !ok || c.who.May(formsvc.ResponsesRead) {
		return err
	}
	const answers = "/responses/"
	escape := strings.NewReplacer("~", "~0", "/", "~1") // RFC 6901
	shown := &formsvc.ValidationError{}
	for _, f := range invalid.Fields {
		name, _, _ := strings.Cut(strings.TrimPrefix(f.Pointer, answers), "/")
		sent := func(a formsvc.AnswerPatch) bool { return escape.Replace(a.Name) == name }
		if !strings.HasPrefix(f.Pointer, answers) || slices.ContainsFunc(patch.Answers, sent) {
			shown.Fields = append(shown.Fields, f)
		}
	}
	if len(shown.Fields) == len(invalid.Fields) {
		return err
	}
	shown.Fields = append(shown.Fields, formsvc.FieldError{
		Pointer: "/responses", Code: "stored_answers",
		Detail: "answers that you didn't send break the campaign's rules; a key with responses:read sees which",
	})
	return shown
}

func (h *Handler) listComments(c *call) error {
	return serveList(c, pageParams, func(q *listQuery) (formsvc.Page[formsvc.Comment], error) {
		return h.svc.Comments.List(c.ctx(), c.responseKey(), q.page)
	}, func(b []byte, x *formsvc.Comment) ([]byte, formsvc.ID) {
		return x.AppendJSON(b), x.ID
	})
}

// author returns the author of a comment. The name of a host application's principal is cut to the limit for authors,
// since the client can't change it.
func author(who *formsvc.Principal) string {
	if name := []rune(who.KeyName); len(name) > formsvc.MaxAuthor {
		return string(name[:formsvc.MaxAuthor])
	}
	return who.KeyName
}

// createComment adds a comment by the key's owner. The reply has no Location, since a comment has no address.
func (h *Handler) createComment(c *call) error {
	in, err := c.body.CommentInput()
	if err != nil {
		return err
	}
	in.Author = author(c.who)
	comment, err := once(c, func(svc *formsvc.Service) (formsvc.Comment, error) {
		return svc.Comments.Create(c.ctx(), c.responseKey(), in)
	})
	if err != nil {
		return err
	}
	c.out = comment.AppendJSON(c.out)
	return c.sendDone(http.StatusCreated)
}

func (h *Handler) listSignatures(c *call) error {
	return serveList(c, pageParams, func(q *listQuery) (formsvc.Page[formsvc.Signature], error) {
		return h.svc.Signatures.List(c.ctx(), c.responseKey(), q.page)
	}, func(b []byte, x *formsvc.Signature) ([]byte, formsvc.ID) {
		return x.AppendJSON(b), x.ID
	})
}

// createSignature records a signature. The reply has no Location, since a signature has no address.
func (h *Handler) createSignature(c *call) error {
	in, err := c.body.SignatureInput()
	if err != nil {
		return err
	}
	sig, err := once(c, func(svc *formsvc.Service) (formsvc.Signature, error) {
		return svc.Signatures.Create(c.ctx(), c.responseKey(), in)
	})
	if err != nil {
		return c.body.WithoutPerson(err)
	}
	c.out = sig.AppendJSON(c.out)
	return c.sendDone(http.StatusCreated)
}
