package httpx

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/formsvc/toolkit/formsvc"
)

// responseInput decodes the body of a POST.
func (d *decoder) responseInput() (in formsvc.ResponseInput, err error) {
	if !d.open() {
		return in, d.close()
	}
	var user, responses bool
	for d.member() {
		switch string(d.name) {
		case "user":
			user = true
			d.user(&in.User)
		case "responses":
			responses = true
			in.Answers = d.answers()
		default:
			d.unknown()
		}
	}
	d.require(user, "/user")
	d.require(responses, "/responses")
	return in, d.close()
}

// require notes that a required member is missing.
func (d *decoder) require(there bool, pointer string) {
	if !there && d.err == nil {
		d.faults.add(pointer, "required", "is required")
	}
}

// user reads a person. An address that is missing is the service's to refuse.
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
	usual := min(len(d.raw)/48, 64) // about how many there are
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
			values = append(values, s) // also of one that can't be read, so that the others keep their place
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

// patchString reads a string, or null, which removes the member: it is empty
// then, and the service says whether it may be.
func (d *decoder) patchString() *string {
	s := ""
	if !d.null() {
		s, _ = d.string()
	}
	return &s
}

func (d *decoder) patchAnswers() []formsvc.AnswerPatch {
	if d.null() {
		d.note("required", "can't be removed; remove its members")
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

// commentInput decodes a comment; who wrote it is not the client's to say.
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
