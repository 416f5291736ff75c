package wire

import (
	"errors"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/formsvc/toolkit/formsvc"
)

type userBody struct {
	Email     text   `json:"email"`
	FirstName string `json:"firstName"`
	LastName  string `json:"lastName"`
}

func (u *userBody) user() formsvc.User {
	return formsvc.User{Email: string(u.Email), FirstName: u.FirstName, LastName: u.LastName}
}

// answersBody is an object of answers. An answer without a value is noted in incomplete, so that the service can list it with
// all other faults.
type answersBody struct {
	list       []formsvc.AnswerPatch
	incomplete []string // pointers
	patch      bool     // whether null removes an answer
}

func (a *answersBody) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var values []string // of all answers, so that they share a few slices
	return members(dec, "must be an object", func(name string) (err error) {
		answer := formsvc.AnswerPatch{Answer: formsvc.Answer{Name: name}}
		if answer.Remove = a.patch && null(dec); !answer.Remove {
			var there bool
			if answer.Value, values, there, err = readAnswer(dec, values); err == nil && !there {
				a.incomplete = append(a.incomplete, bounded(dec.StackPointer()+"/value"))
			}
		}
		a.list = append(a.list, answer)
		return err
	})
}

// readAnswer reads {"value": [strings]}. The strings are appended to values.
func readAnswer(dec *jsontext.Decoder, values []string) (value, all []string, there bool, err error) {
	start := len(values)
	err = members(dec, `must be an object such as {"value":["text"]}`, func(name string) error {
		if name != "value" {
			return unknownField(dec.StackPointer())
		}
		there = true
		return elements(dec, func() error {
			s, err := readText[string](dec)
			values = append(values, s)
			return err
		})
	})
	return values[start:len(values):len(values)], values, there, err
}

// ResponseInput decodes the body of a POST. A visitor's has no metadata.
func (d *Body) ResponseInput(visitor bool) (in formsvc.ResponseInput, err error) {
	var body struct {
		User      member[userBody]          `json:"user"`
		Responses member[answersBody]       `json:"responses"`
		Metadata  member[map[string]string] `json:"metadata"`
	}
	if err := d.decode(&body); err != nil {
		return in, err
	}
	if visitor && body.Metadata.there {
		return in, unknownField("/metadata")
	}
	if body.User.null {
		return in, unfit("/user", "invalid_type", "must be an object")
	}
	if body.Responses.null {
		return in, unfit("/responses", "invalid_type", "must be an object")
	}
	if !body.Responses.there {
		d.Noted.Add("/responses", "required", "is required")
	}
	in.User, in.Metadata = body.User.value.user(), body.Metadata.value
	if !body.User.there {
		d.nobody = "/user"
	}
	list := d.answers(&body.Responses.value)
	in.Answers = make([]formsvc.Answer, len(list))
	for i := range list {
		in.Answers[i] = list[i].Answer
	}
	return in, nil
}

// WithoutPerson lets the error about a missing address name the whole person, if that is missing.
func (d *Body) WithoutPerson(err error) error {
	if invalid, ok := errors.AsType[*formsvc.ValidationError](err); ok && d.nobody != "" {
		for i := range invalid.Fields {
			if f := &invalid.Fields[i]; f.Pointer == d.nobody+"/email" && f.Code == "required" {
				f.Pointer = d.nobody
			}
		}
	}
	return err
}

// ResponsePatch decodes the body of a PATCH, a merge patch (RFC 7396). For null, which removes a field, a string is "": the
// service decides whether it may be empty.
func (d *Body) ResponsePatch() (patch formsvc.ResponsePatch, err error) {
	var body struct {
		Status member[text] `json:"status"`
		User   member[struct {
			Email     member[text] `json:"email"`
			FirstName member[text] `json:"firstName"`
			LastName  member[text] `json:"lastName"`
		}] `json:"user"`
		Responses member[answersBody] `json:"responses"`
		Metadata  member[pairsPatch]  `json:"metadata"`

		UUID        ignored `json:"uuid"`
		Reference   ignored `json:"reference"`
		CreatedAt   ignored `json:"createdAt"`
		UpdatedAt   ignored `json:"updatedAt"`
		CampaignID  ignored `json:"campaignUuid"`
		CompletedAt ignored `json:"completedAt"`
	}
	body.Responses.value.patch = true
	if err := d.decode(&body); err != nil {
		return patch, err
	}
	if body.Status.null {
		return patch, unfit("/status", "invalid_type", "must be a string")
	}
	if body.User.null {
		d.Noted.Add("/user", "required", "can't be removed")
	}
	if body.Responses.null {
		d.Noted.Add("/responses", "required", "can't be removed; remove its fields")
	}
	if body.Metadata.null {
		d.Noted.Add("/metadata", "required", "can't be removed; remove its names")
	}
	user := &body.User.value
	for to, from := range map[**string]*member[text]{
		&patch.Status: &body.Status, &patch.Email: &user.Email, &patch.FirstName: &user.FirstName, &patch.LastName: &user.LastName,
	} {
		if from.there {
			*to = (*string)(&from.value)
		}
	}
	patch.Answers, patch.Metadata = d.answers(&body.Responses.value), body.Metadata.value
	return patch, nil
}

// answers returns the answers, and notes those without a value.
func (d *Body) answers(a *answersBody) []formsvc.AnswerPatch {
	for _, pointer := range a.incomplete {
		d.Noted.Add(pointer, "required", "is required")
	}
	return a.list
}

// CommentInput decodes a comment. The author isn't part of the input.
func (d *Body) CommentInput() (formsvc.CommentInput, error) {
	var body struct {
		Body text `json:"body"`
	}
	err := d.decode(&body)
	return formsvc.CommentInput{Body: string(body.Body)}, err
}

// SignatureInput decodes a signature.
func (d *Body) SignatureInput() (formsvc.SignatureInput, error) {
	var body struct {
		Signer   member[userBody] `json:"signer"`
		FileID   formsvc.ID       `json:"fileUuid"`
		Provider string           `json:"provider"`
		SignedAt time.Time        `json:"signedAt"`
	}
	err := d.decode(&body)
	switch {
	case err != nil:
	case body.Signer.null:
		err = unfit("/signer", "invalid_type", "must be an object")
	case !body.Signer.there:
		d.nobody = "/signer"
	}
	return formsvc.SignatureInput{
		Signer: body.Signer.value.user(), FileID: body.FileID, Provider: body.Provider, SignedAt: body.SignedAt,
	}, err
}
