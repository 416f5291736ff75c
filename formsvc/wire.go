package formsvc

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// AppendJSON appends the response as the JSON object that clients get and webhooks carry: the fields of the
// specification, then those that this service adds (campaignUuid, updatedAt, completedAt, metadata).
func (r *Response) AppendJSON(b []byte) []byte {
	return appendResponse(b, r, true)
}

// appendResponse appends the response, without the answers if answers is false.
func appendResponse(b []byte, r *Response, answers bool) []byte {
	b = appendText(b, `{"uuid":`, string(r.ID))
	b = appendText(b, `,"reference":`, r.Reference)
	b = appendText(b, `,"status":`, r.Status)
	b = appendUser(b, `,"user":`, &r.User)
	if answers {
		b = append(b, `,"responses":`...)
		b = append(b, r.Answers.JSON()...)
	}
	b = appendTime(b, `,"createdAt":`, r.CreatedAt)
	b = appendText(b, `,"campaignUuid":`, string(r.CampaignID))
	b = appendTime(b, `,"updatedAt":`, r.UpdatedAt)
	b = appendTime(b, `,"completedAt":`, r.CompletedAt)
	b = append(append(b, `,"metadata":`...), r.Metadata.JSON()...)
	return append(b, '}')
}

func appendUser(b []byte, name string, u *User) []byte {
	b = append(b, name...)
	b = appendText(b, `{"email":`, u.Email)
	b = appendText(b, `,"firstName":`, u.FirstName)
	b = appendText(b, `,"lastName":`, u.LastName)
	return append(b, '}')
}

// appendText appends a member with the text s; name has its punctuation.
func appendText(b []byte, name, s string) []byte { return appendString(append(b, name...), s) }

// appendOptional is appendText, with null for "".
func appendOptional(b []byte, name, s string) []byte {
	if s == "" {
		return append(append(b, name...), "null"...)
	}
	return appendText(b, name, s)
}

// appendTime appends a member with t as a JSON string in RFC 3339, in UTC with milliseconds and Z; the
// zero time as null.
func appendTime(b []byte, name string, t time.Time) []byte {
	b = append(b, name...)
	if t.IsZero() {
		return append(b, "null"...)
	}
	b = t.UTC().AppendFormat(append(b, '"'), time.RFC3339) // much faster than a layout with milliseconds
	ms := t.Nanosecond() / int(time.Millisecond)
	return append(b[:len(b)-1], '.', byte('0'+ms/100%10), byte('0'+ms/10%10), byte('0'+ms%10), 'Z', '"')
}

// appendString appends s as a JSON string in the minimal form of RFC 8785. Invalid UTF-8 becomes U+FFFD.
func appendString(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}

func appendStrings[S ~string](b []byte, list []S) []byte {
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, string(s))
	}
	return append(b, ']')
}
