package formsvc_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/formsvc/toolkit/formsvc"
)

// jsonResponse is a response as clients read it.
type jsonResponse struct {
	UUID      string `json:"uuid"`
	Reference string `json:"reference"`
	Status    string `json:"status"`
	User      struct {
		Email     string `json:"email"`
		FirstName string `json:"firstName"`
		LastName  string `json:"lastName"`
	} `json:"user"`
	Responses    map[string]jsonAnswer `json:"responses"`
	CreatedAt    time.Time             `json:"createdAt"`
	CampaignUUID string                `json:"campaignUuid"`
	UpdatedAt    time.Time             `json:"updatedAt"`
	CompletedAt  *time.Time            `json:"completedAt"`
}

func TestAppendResponse(t *testing.T) {
	milliseconds := rapid.Map(rapid.Int64Range(0, 4e12), func(ms int64) time.Time { return time.UnixMilli(ms).UTC() })
	rapid.Check(t, func(t *rapid.T) {
		list := answerLists().Draw(t, "answers")
		r := formsvc.Response{
			ID: formsvc.EncodeID(sixteenBytes(t, "id")), CampaignID: formsvc.EncodeID(sixteenBytes(t, "campaign")),
			Reference: texts().Draw(t, "reference"), Status: texts().Draw(t, "status"),
			User: formsvc.User{
				Email: texts().Draw(t, "email"), FirstName: texts().Draw(t, "first"), LastName: texts().Draw(t, "last"),
			},
			Answers:   formsvc.NewAnswers(list...),
			CreatedAt: milliseconds.Draw(t, "created"), UpdatedAt: milliseconds.Draw(t, "updated"),
		}
		want := jsonResponse{
			UUID: string(r.ID), Reference: r.Reference, Status: r.Status, CampaignUUID: string(r.CampaignID),
			Responses: make(map[string]jsonAnswer), CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
		}
		want.User.Email, want.User.FirstName, want.User.LastName = r.User.Email, r.User.FirstName, r.User.LastName
		for _, a := range list {
			want.Responses[a.Name] = jsonAnswer{append([]string{}, a.Value...)}
		}
		if rapid.Bool().Draw(t, "completed") {
			r.CompletedAt = milliseconds.Draw(t, "completedAt")
			want.CompletedAt = &r.CompletedAt
		}
		b := r.AppendJSON([]byte("before"))
		if string(b[:6]) != "before" {
			t.Fatal("it does not append")
		}
		var got jsonResponse
		if err := json.Unmarshal(b[6:], &got); err != nil {
			t.Fatalf("%s: %v", b[6:], err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
	})
}

// Strings that aren't UTF-8 are written as encoding/json reads them.
func TestAppendResponseOfAnyBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := string(rapid.SliceOf(rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte("\xc3\xa9\xed\xa0\x80\"\\\n")))).Draw(t, "name"))
		quoted, err := json.Marshal(name)
		if err != nil {
			t.Fatal(err)
		}
		var want string
		if err := json.Unmarshal(quoted, &want); err != nil {
			t.Fatal(err)
		}
		b := (&formsvc.Response{User: formsvc.User{FirstName: name}}).AppendJSON(nil)
		if !utf8.Valid(b) {
			t.Fatalf("%q is written %q", name, b)
		}
		var got jsonResponse
		if err := json.Unmarshal(b, &got); err != nil || got.User.FirstName != want {
			t.Fatalf("%q is written %s and read %q, %v", name, b, got.User.FirstName, err)
		}
	})
}

// Text keeps its bytes: only what JSON can't hold is escaped.
func TestStringsKeepTheirBytes(t *testing.T) {
	b := (&formsvc.Response{Reference: "</é\u2028🌍\x7f\"\\/\n\r\t\b\x00"}).AppendJSON(nil)
	const want = `{"uuid":"","reference":"</é` + "\u2028🌍\x7f" + `\"\\/\n\r\t\u0008\u0000","status":"",` +
		`"user":{"email":"","firstName":"","lastName":""},"responses":{},"createdAt":null,"campaignUuid":"",` +
		`"updatedAt":null,"completedAt":null}`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
}

func TestAppendTime(t *testing.T) {
	for _, c := range []struct {
		t    time.Time
		want string
	}{
		{time.Time{}, `null`},
		{time.Unix(0, 0), `"1970-01-01T00:00:00.000Z"`},
		{start(), `"2026-11-21T08:30:00.123Z"`},
		{start().Add(999_999), `"2026-11-21T08:30:00.123Z"`}, // truncated, not rounded
		{start().In(time.FixedZone("", -9*60*60-30*60)), `"2026-11-21T08:30:00.123Z"`},
		{time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC), `"9999-12-31T23:59:59.999Z"`},
	} {
		if got := string(formsvc.AppendTime([]byte("x"), c.t)); got != "x"+c.want {
			t.Errorf("%v is written %s", c.t, got)
		}
	}
}
