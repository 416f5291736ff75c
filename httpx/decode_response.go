package httpx

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/formsvc/toolkit/formsvc"
)

// responseInput decodes the body of a POST.
func (d *decoder) responseInput() (in formsvc.ResponseInput, err error) {
	if !d.open() {
		return in, d.close()
	}
	var responses bool
	for d.member() {
		switch string(d.name) {
		case "user":
			d.hasUser = true
			d.user(&in.User)
		case "responses":
			responses = true
			in.Answers = d.answers()
		default:
			d.unknown()
		}
	}
	d.require(responses, "/responses")
	return in, d.close()
}

// withoutUser lets the error about a missing address name the whole user, if that is missing.
func (d *decoder) withoutUser(err error) error {
	if invalid, ok := errors.AsType[*formsvc.ValidationError](err); ok && !d.hasUser {
		for i := range invalid.Fields {
			if f := &invalid.Fields[i]; f.Pointer == "/user/email" && f.Code == "required" {
				f.Pointer = "/user"
			}
		}
	}
	return err
}

// require records that a required field is missing.
func (d *decoder) require(there bool, pointer string) {
	if !there && d.err == nil {
		d.faults.add(pointer, "required", "is required")
	}
}

// user reads a person. The service itself refuses a missing address.
func (d *decoder) user(u *formsvc.User) {
	if !d.object() {
		return
	}
	for d.member() {
		switch string(d.name) {
		case "email":
			u.Email, _ = d.string()
		case "firstName":
			u.FirstName = d.optionalString()
		case "lastName":
			u.LastName = d.optionalString()
		default:
			d.unknown()
		}
	}
}

func (d *decoder) answers() []formsvc.Answer {
	if !d.object() {
		return nil
	}
	usual := min(len(d.raw)/48, 64) // a guess of the number of answers
	list := make([]formsvc.Answer, 0, usual)
	values := make([]string, 0, usual)
	for d.member() {
		if len(list) == maxMembers {
			d.overflow()
			break
		}
		a := formsvc.Answer{Name: d.strings.string(d.name)}
		a.Value, values = d.answer(values)
		list = append(list, a)
	}
	return list
}

// answer reads {"value": [strings]}. The strings are appended to values, so
// that all answers share a few slices.
func (d *decoder) answer(values []string) (value, all []string) {
	if !d.enter(jsontext.KindBeginObject, `must be an object such as {"value":["text"]}`) {
		return nil, values
	}
	there, start := false, len(values)
	for d.member() {
		if string(d.name) != "value" {
			d.unknown()
			continue
		}
		there = true
		if !d.array() {
			continue
		}
		for d.element() {
			s, _ := d.string()
			values = append(values, s) // also if it is invalid, so that the others keep their position
		}
	}
	if !there && d.err == nil {
		d.faults.add(bounded(d.json.StackPointer()+"/value"), "required", "is required")
	}
	return values[start:len(values):len(values)], values
}

// responsePatch decodes the body of a PATCH, a merge patch (RFC 7396).
func (d *decoder) responsePatch() (patch formsvc.ResponsePatch, err error) {
	if d.open() {
		for d.member() {
			d.patchMember(&patch)
		}
	}
	return patch, d.close()
}

func (d *decoder) patchMember(patch *formsvc.ResponsePatch) {
	switch string(d.name) {
	case "status":
		if s, ok := d.string(); ok {
			patch.Status = &s
		}
	case "user":
		d.patchUser(patch)
	case "responses":
		patch.Answers = d.patchAnswers()
	case "uuid", "reference", "createdAt", "updatedAt", "campaignUuid", "completedAt":
		d.skip()
	default:
		d.unknown()
	}
}

func (d *decoder) patchUser(patch *formsvc.ResponsePatch) {
	if d.null() {
		d.note("required", "can't be removed")
		return
	}
	if !d.object() {
		return
	}
	for d.member() {
		switch string(d.name) {
		case "email":
			patch.Email = d.patchString()
		case "firstName":
			patch.FirstName = d.patchString()
		case "lastName":
			patch.LastName = d.patchString()
		default:
			d.unknown()
		}
	}
}

// patchString reads a string. It returns "" for null, which removes the field; the service decides whether the field
// may be empty.
func (d *decoder) patchString() *string {
	s := ""
	if !d.null() {
		s, _ = d.string()
	}
	return &s
}

func (d *decoder) patchAnswers() []formsvc.AnswerPatch {
	if d.null() {
		d.note("required", "can't be removed; remove its fields")
		return nil
	}
	if !d.object() {
		return nil
	}
	var list []formsvc.AnswerPatch
	var values []string
	for d.member() {
		if len(list) == maxMembers {
			d.overflow()
			break
		}
		a := formsvc.AnswerPatch{Answer: formsvc.Answer{Name: d.strings.string(d.name)}}
		if a.Remove = d.json.PeekKind() == jsontext.KindNull; a.Remove {
			d.skip()
		} else {
			a.Value, values = d.answer(values)
		}
		list = append(list, a)
	}
	return list
}

// commentInput decodes a comment. The author isn't part of the input.
func (d *decoder) commentInput() (in formsvc.CommentInput, err error) {
	if !d.open() {
		return in, d.close()
	}
	body := false
	for d.member() {
		if string(d.name) != "body" {
			d.unknown()
			continue
		}
		body = true
		in.Body, _ = d.string()
	}
	d.require(body, "/body")
	return in, d.close()
}

// signatureInput decodes a signature.
func (d *decoder) signatureInput() (in formsvc.SignatureInput, err error) {
	if !d.open() {
		return in, d.close()
	}
	signer := false
	for d.member() {
		switch string(d.name) {
		case "signer":
			signer = true
			d.user(&in.Signer)
		case "fileUuid":
			in.FileID = d.optionalID()
		case "provider":
			in.Provider = d.optionalString()
		case "signedAt":
			in.SignedAt = d.optionalTime()
		default:
			d.unknown()
		}
	}
	d.require(signer, "/signer")
	return in, d.close()
}
