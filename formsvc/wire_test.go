package formsvc_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

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

// TestAppendTimeAgreesWithPackageTime compares AppendTime with the standard library's formatting.
func TestAppendTimeAgreesWithPackageTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		zone := time.FixedZone("", rapid.IntRange(-14*3600, 14*3600).Draw(t, "zone"))
		at := time.UnixMicro(rapid.Int64Range(-70_000_000_000_000_000, 300_000_000_000_000_000).Draw(t, "micros")).In(zone)
		want := `"` + at.UTC().Format("2006-01-02T15:04:05.000Z") + `"`
		if at.IsZero() {
			want = "null"
		}
		if got := string(formsvc.AppendTime(nil, at)); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	})
}
